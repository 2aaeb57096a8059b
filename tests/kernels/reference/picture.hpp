// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "kernels/core/border.hpp"
#include "kernels/core/filter.hpp"
#include "kernels/core/luma.hpp"
#include "tests/kernels/positions.hpp"

namespace cudavision::reference {

/// The location of a component's samples, in the terms of GstVideoFormatInfo: the plane, the byte offset of the first
/// sample in a row, the bytes from one sample to the next, and log2 of the subsampling.
struct Component {
  Role role;
  int plane, offset, step, shift_x, shift_y;

  /// For formats of bit fields: the locations of the samples in a group of pixels. `step` is then the number of bytes
  /// of a group.
  struct Field {
    int word, bit, bits;  ///< in the 32-bit words of the group
  };
  std::vector<Field> fields = {};

  int fields_in_group() const { return fields.empty() ? 1 : int(fields.size()); }
  bool is_chroma() const { return role == Role::cb || role == Role::cr; }
  bool is_color() const { return role != Role::alpha && role != Role::padding; }
  /// The pixels of the sample at x, y in a picture of this size.
  Positions pixels(int x, int y, const Geometry& size) const {
    return {x << shift_x, y << shift_y, std::min((x + 1) << shift_x, size.width),
            std::min((y + 1) << shift_y, size.height)};
  }
};

/// GStreamer's definition of a format, independent of the table under test. format_test.cpp compares both with
/// GStreamer.
struct Definition {
  const char* name;
  int depth, shift;
  std::vector<Component> components;
  /// Filters unpack the whole picture, which clears bits outside samples, even where samples are only copied.
  bool unpacked = false;

  int sample_bytes() const { return depth > 8 ? 2 : 1; }
  int max_value() const { return (1 << depth) - 1; }
  /// The component of this role, or nullptr.
  const Component* find(Role role) const {
    for (const Component& component : components)
      if (component.role == role) return &component;
    return nullptr;
  }
  bool is_rgb() const { return find(Role::red); }
  bool has_alpha() const { return find(Role::alpha); }
};
const Definition& definition(Format format);

/// The samples of one component, in the format's range.
struct Grid {
  int width = 0, height = 0;
  std::vector<int> values;

  Grid(int w, int h) : width(w), height(h), values(std::size_t(w) * h) {}
  int& at(int x, int y) { return values[std::size_t(y) * width + x]; }
  int at(int x, int y) const { return values[std::size_t(y) * width + x]; }
};

/// The placement of planes in memory. Offset and padding are in samples.
struct Layout {
  int offset = 0;                           ///< from an aligned address to the first row
  int padding = 0;                          ///< between rows
  int multiple = 1;                         ///< rows are rounded up to this many bytes, before the padding
  int offset_bytes = 0, padding_bytes = 0;  ///< added in bytes; an odd number makes the addresses of 16-bit samples odd
};

/// A picture in one block of bytes. Guard bytes with a known pattern lie around its planes and between rows.
class Picture {
 public:
  explicit Picture(const Geometry& geometry, Layout layout = {});

  const Geometry& geometry() const { return geometry_; }
  const Definition& format() const { return definition(geometry_.format); }
  std::vector<std::uint8_t>& bytes() { return bytes_; }
  const std::vector<std::uint8_t>& bytes() const { return bytes_; }

  /// Reads the samples. A stored value above the depth becomes the largest sample.
  Grid read(const Component& component) const;
  void write(const Component& component, const Grid& grid);
  void write(const Component& component, int x, int y, int sample);
  /// Replaces each sample, row by row, with value(x, y, old sample).
  template <typename F>
  void change(const Component& component, F&& value) {
    Grid grid = read(component);
    for (const auto& [x, y] : positions(grid)) grid.at(x, y) = value(x, y, grid.at(x, y));
    write(component, grid);
  }
  /// Sets all 16 bits of a stored word (8 in an 8-bit format), for any depth.
  void write_word(const Component& component, int x, int y, int word);
  /// Copies the stored word of a sample from a picture of the same geometry, bit for bit. For unpacked formats it
  /// copies the sample.
  void copy(const Component& component, int x, int y, const Picture& from) {
    const int shift = format().unpacked ? format().shift : 0;
    write_word(component, x, y, from.word(component, x, y) >> shift << shift);
  }
  /// Packed 4:2:2 of odd width: repeats the last luma sample of each row in the padding. Groups of bit fields: repeats
  /// the last sample of each component, and clears unused bits.
  void fill_padding();
  /// A view of a copy of this picture whose bytes are at `base`.
  Image at(void* base) const;

  /// This picture with every byte inverted. Destinations start with it, so that no unwritten byte looks correct.
  Picture inverted() const;
  /// Compares `actual` with this picture. Samples may differ by `tolerance` steps, unused low bits must be equal, and
  /// all other bytes must still equal inverted(). Returns a description of the first difference, or an empty string.
  /// The padding must be the result of fill_padding().
  std::string difference(const Picture& actual, int tolerance) const;
  /// Like difference(), for the samples only.
  std::string sample_difference(const Picture& actual, int tolerance) const;

 private:
  struct Span {
    std::size_t begin;  ///< offset of the plane in bytes_
    std::ptrdiff_t pitch;
  };
  std::size_t address(const Component& c, int x, int y) const {
    const std::size_t group =
        spans_[c.plane].begin + y * spans_[c.plane].pitch + c.offset + std::ptrdiff_t(x / c.fields_in_group()) * c.step;
    return c.fields.empty() ? group : group + 4 * std::size_t(c.fields[x % c.fields_in_group()].word);
  }
  const Component::Field* field(const Component& c, int x) const {
    return c.fields.empty() ? nullptr : &c.fields[x % c.fields_in_group()];
  }
  /// The largest value of a stored sample.
  int most(const Component& c) const { return c.fields.empty() ? format().max_value() : (1 << c.fields[0].bits) - 1; }
  int word(const Component& c, int x, int y) const;
  std::uint32_t word_32(std::size_t at) const;
  std::string padding_difference() const;
  int width(const Component& c) const { return (geometry_.width + (1 << c.shift_x) - 1) >> c.shift_x; }
  int height(const Component& c) const { return (geometry_.height + (1 << c.shift_y) - 1) >> c.shift_y; }

  Geometry geometry_;
  std::vector<Span> spans_;
  std::vector<std::uint8_t> bytes_;
};

/// The luma of a pixel, in single precision, where each product and sum is rounded.
int luma(LumaMatrix matrix, int red, int green, int blue);
/// The luma of all pixels: the Y plane, or the luma computed from red, green and blue.
Grid luma(LumaMatrix matrix, const Picture& src);

/// Whether a sample of a component is in the region. A chroma sample is inside if all of its pixels lie in one shape,
/// and outside if none of them lies in a shape.
bool in_region(const Region& region, const Geometry& geometry, const Component& c, int x, int y);
inline bool in_region(const Region& region, const Geometry& geometry, const ChannelSet& set, int x, int y) {
  return in_region(region, geometry, Component{Role::luma, 0, 0, 1, set.shift_x, set.shift_y}, x, y);
}

/// Applies `operation` to the filtered components inside the region. Copies the rest bit for bit.
Picture filtered(const Picture& src, const Region& region, bool filter_alpha, Layout layout,
                 const std::function<Grid(const Grid&, const Component&)>& operation);

/// The index of the sample that replaces index i of n, found step by step; −1 for the border value.
int extrapolate(int i, int n, Border border);

}  // namespace cudavision::reference
