// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "kernels/core/luma.hpp"
#include "kernels/core/sample.hpp"

namespace cudavision::cpu {

/// The samples of a channel as numbers, in rows of any format.
struct Rows {
  ChannelView channel;
  int sample_bytes = 1, shift = 0, max = 255;  ///< properties of the format; see sample_of()

  /// Sets `to` to `count` samples starting at sample (x, y).
  void read(int x, int y, int count, int* to) const;
  void read(int x, int y, int count, float* to) const;
  /// Adds the samples times `weight` to the numbers in `to`.
  void add(int x, int y, int count, float weight, float* to) const;
  /// Stores numbers from 0 to `max`, rounded half to even, as samples.
  void write(int x, int y, int count, const float* from) const;

  /// Like read(), for `count` pixels starting at pixel (x, y), which begins a sample. Subsampled samples are repeated.
  void read_pixels(int x, int y, int count, int* to) const;
  /// Stores the numbers, 0 to `max`, of those pixels that begin a sample.
  void write_pixels(int x, int y, int count, const int* from) const;
};
inline Rows rows_of(const Image& image, Role role) {
  const FormatInfo& format = info(image.geometry.format);
  return {channel_of(image, role), format.sample_bytes(), format.shift, format.max_value()};
}

/// The luma of a picture: Y, gray, or computed from red, green and blue.
class LumaRows {
 public:
  LumaRows(const Image& image, const LumaWeights& weights);
  /// Sets `to` to the luma of `count` pixels starting at (x, y).
  void read(int x, int y, int count, int* to) const;

 private:
  Rows first_, green_, blue_;  ///< first_: red, or luma
  LumaWeights weights_;
};

}  // namespace cudavision::cpu
