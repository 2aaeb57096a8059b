// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "kernels/core/border.hpp"
#include "kernels/core/filter.hpp"

namespace cudavision::reference {

/// Where one component's samples lie, as GstVideoFormatInfo says it: its plane, the byte of its first sample in a row,
/// the bytes from sample to sample, log2 of its subsampling.
struct Component {
  Role role;
  int plane, offset, step, shift_x, shift_y;
};

/// A format by GStreamer's definition, written down apart from the table under test (format_test.cpp compares all three).
struct Definition {
  const char* name;
  int depth, shift;
  std::vector<Component> components;

  int sample_bytes() const { return depth > 8 ? 2 : 1; }
  int max_value() const { return (1 << depth) - 1; }
};
const Definition& definition(Format format);

/// One component's samples, in the format's own range.
struct Grid {
  int width = 0, height = 0;
  std::vector<int> values;

  Grid(int w, int h) : width(w), height(h), values(std::size_t(w) * h) {}
  int& at(int x, int y) { return values[std::size_t(y) * width + x]; }
  int at(int x, int y) const { return values[std::size_t(y) * width + x]; }
};

/// Freedom of a plane's place in memory; offset and padding in samples.
struct Layout {
  int offset = 0;                           ///< of the first row from an aligned address
  int padding = 0;                          ///< between rows
  int multiple = 1;                         ///< rows are rounded up to this many bytes, before the padding
  int offset_bytes = 0, padding_bytes = 0;  ///< in addition: an odd number makes the addresses of 16-bit samples odd
};

/// A picture in one block of bytes, with guard bytes of a known pattern around its planes and between their rows.
class Picture {
 public:
  explicit Picture(const Geometry& geometry, Layout layout = {});

  const Geometry& geometry() const { return geometry_; }
  const Definition& format() const { return definition(geometry_.format); }
  std::vector<std::uint8_t>& bytes() { return bytes_; }
  const std::vector<std::uint8_t>& bytes() const { return bytes_; }

  /// The samples; a stored value above the depth is the greatest sample.
  Grid read(const Component& component) const;
  void write(const Component& component, const Grid& grid);
  void write(const Component& component, int x, int y, int sample);
  /// Sets all 16 bits of a stored word (8 of an 8-bit format), whatever the depth.
  void write_word(const Component& component, int x, int y, int word);
  /// Takes a sample's stored word from another picture of the same geometry, bit for bit.
  void copy(const Component& component, int x, int y, const Picture& from) {
    write_word(component, x, y, from.word(component, x, y));
  }
  /// The view of this picture whose bytes lie at `base`.
  Image at(void* base) const;

  /// This picture with every byte inverted: what a destination holds at first, so that no unwritten byte looks right.
  Picture inverted() const;
  /// Empty where `actual` holds this picture's stored words within `tolerance` (in steps of a sample; unused low bits are equal) and
  /// its other bytes are still those of inverted(); else says what differs first. The luma that packed 4:2:2 of odd width has in no
  /// picture is not looked at.
  std::string difference(const Picture& actual, int tolerance) const;
  /// The same of the samples alone.
  std::string sample_difference(const Picture& actual, int tolerance) const;

 private:
  struct Span {
    std::size_t begin;  ///< of the plane in bytes_
    std::ptrdiff_t pitch;
  };
  std::size_t address(const Component& c, int x, int y) const {
    return spans_[c.plane].begin + y * spans_[c.plane].pitch + c.offset + std::ptrdiff_t(x) * c.step;
  }
  int word(const Component& c, int x, int y) const;
  int width(const Component& c) const { return (geometry_.width + (1 << c.shift_x) - 1) >> c.shift_x; }
  int height(const Component& c) const { return (geometry_.height + (1 << c.shift_y) - 1) >> c.shift_y; }

  Geometry geometry_;
  std::vector<Span> spans_;
  std::vector<std::uint8_t> bytes_;
};

/// Whether a component's sample is in the region: a chroma sample is inside if all of its pixels lie in one rectangle, and outside if
/// none lies in any.
bool in_region(const Region& region, const Geometry& geometry, const Component& c, int x, int y);

/// Applies `operation` to the components that are filtered, in the region; the rest is copied bit for bit.
Picture filtered(const Picture& src, const Region& region, bool filter_alpha, Layout layout,
                 const std::function<Grid(const Grid&, const Component&)>& operation);

/// The sample that stands for index i of n, found step by step; −1: the border value.
int extrapolate(int i, int n, Border border);

}  // namespace cudavision::reference
