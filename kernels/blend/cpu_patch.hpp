// SPDX-License-Identifier: LGPL-2.1-or-later
// Loops over the bytes of planes, for layers with samples like the output's.
#pragma once

#include <cstdint>
#include <cstring>

#include "kernels/blend/plan.hpp"

namespace cudavision::blend {

using Word = std::uint32_t;  ///< a pixel of four bytes; may have any address
inline Word load_word(const std::uint8_t* at) {
  Word word;
  std::memcpy(&word, at, sizeof word);
  return word;
}
inline void store_word(std::uint8_t* at, Word word) { std::memcpy(at, &word, sizeof word); }

/// A rectangle of a plane: the layer's samples, the samples below, and the result. The result may be at the same
/// address as the samples below.
struct Patch {
  const std::uint8_t *above, *below;
  std::uint8_t* dst;
  std::ptrdiff_t above_pitch, below_pitch, dst_pitch;
  int bytes, rows;
  Word set;  ///< bits to set in each pixel of the result: padding, or an opaque alpha

  template <typename F>
  void each_row(F&& f) const {
    const int count = bytes;  // local copies, which no store can change
    const Word bits = set;
    for (int row = 0; row < rows; ++row) {
      std::uint8_t* const to = dst + row * dst_pitch;
      f(above + row * above_pitch, below + row * below_pitch, to, count);
      if (bits == 0) continue;
      for (int i = 0; i < count; i += 4) store_word(to + i, load_word(to + i) | bits);
    }
  }
};

/// Copies the layer.
void copy(const Patch& patch);
/// Computes over and add with this opacity, in 1/256; rounded down.
void mix(const Patch& patch, int opacity);

/// A plane with interleaved channels, whose rows are treated as bytes.
struct Interleaved {
  Interleaved(const FormatInfo& format, const ChannelSet& set, const ChannelView (&channels)[4])
      : all(whole_plane(format, set, channels)) {}
  std::uint8_t* at(int x, int y) const { return &all.word<std::uint8_t>(x, y); }
  int bytes(int width) const { return subsampled(width, all.shift_x) * all.step; }
  int rows(int height) const { return subsampled(height, all.shift_y); }
  /// The position of the channel's first bit in a pixel's word.
  int bit(const ChannelView& channel) const { return int(channel.data - all.data) * 8; }

  ChannelView all;
};

template <typename F>
void each_plane(const FormatInfo& format, F&& f) {
  for (int i = 0; i < format.set_count; ++i)
    if (!format.sets[i].shares_plane() || format.sets[i].shift_x > 0)
      f(format.sets[i]);  // packed 4:2:2: only the set that includes whole words
}

}  // namespace cudavision::blend
