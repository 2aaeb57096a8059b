// SPDX-License-Identifier: LGPL-2.1-or-later
// Where the samples of a channel are, and how words store them, for both backends.
#pragma once

#include "kernels/core/host_device.hpp"
#include "kernels/core/image.hpp"

namespace cudavision {

/// The addresses of the samples of one channel of a picture.
struct ChannelView {
  unsigned char* data = nullptr;          ///< the first sample; nullptr: there is no such channel
  std::ptrdiff_t pitch = 0;               ///< distance between rows, in bytes
  int step = 1;                           ///< distance between samples, in bytes
  std::uint8_t shift_x = 0, shift_y = 0;  ///< log2 of the subsampling

  /// The first byte of sample (x, y).
  CUDAVISION_HOST_DEVICE unsigned char* at(int x, int y) const { return data + y * pitch + std::ptrdiff_t(x) * step; }
  /// The stored word of the sample that covers pixel (x, y).
  template <typename T>
  CUDAVISION_HOST_DEVICE T& word(int x, int y) const {
    return *reinterpret_cast<T*>(at(x >> shift_x, y >> shift_y));
  }
  /// Whether pixel (x, y) is the first pixel that its sample covers.
  CUDAVISION_HOST_DEVICE bool is_first(int x, int y) const {
    return (x & ((1 << shift_x) - 1)) == 0 && (y & ((1 << shift_y) - 1)) == 0;
  }
};

/// Channel c of a set of the picture's format.
inline ChannelView channel_of(const Image& image, const ChannelSet& set, int c) {
  const Plane& plane = image.planes[set.plane];
  const int bytes = info(image.geometry.format).sample_bytes();
  if (!plane.data) return {};
  return {static_cast<unsigned char*>(plane.data) + c * bytes, plane.pitch, set.channels * bytes, set.shift_x,
          set.shift_y};
}
/// The channel with this role.
inline ChannelView channel_of(const Image& image, Role role) {
  const FormatInfo& format = info(image.geometry.format);
  for (int i = 0; i < format.set_count; ++i)
    for (int c = 0; c < format.sets[i].channels; ++c)
      if (format.sets[i].roles[c] == role) return channel_of(image, format.sets[i], c);
  return {};
}

/// The sample in a stored word. Unused low bits are ignored; a value above the range of the depth counts as the largest
/// sample.
template <typename T>
CUDAVISION_HOST_DEVICE constexpr int sample_of(T word, int shift, int max_value) {
  if (sizeof(T) == 1) return word;
  const int value = word >> shift;
  return value < max_value ? value : max_value;
}

/// Whether words of this format can hold a value above the range of the depth, because they have bits above the sample.
inline bool can_exceed_depth(const FormatInfo& format) {
  return format.depth + format.shift < 8 * format.sample_bytes();
}

}  // namespace cudavision
