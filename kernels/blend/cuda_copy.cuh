// SPDX-License-Identifier: LGPL-2.1-or-later
// Copying a part of a tile from a layer whose stored samples are the output's.
#pragma once

#include "kernels/blend/cuda_compose.cuh"

namespace cudavision::blend {
namespace {

/// Limits 16-bit samples to the largest sample, which `most` holds twice, for two samples per word. Bytes are not limited.
__device__ __forceinline__ uint32_t capped(uint32_t words, uint32_t most) { return __vminu2(words, most); }
__device__ __forceinline__ uint16_t capped(uint16_t word, uint32_t most) { return uint16_t(min(uint32_t(word), most & 0xffff)); }
__device__ __forceinline__ uint8_t capped(uint8_t byte, uint32_t) { return byte; }
__device__ __forceinline__ uint4 capped(uint4 words, uint32_t most) {
  return make_uint4(capped(words.x, most), capped(words.y, most), capped(words.z, most), capped(words.w, most));
}

/// Copies `width` × `height` units of T. A thread loads several units before it stores them.
template <typename T>
__device__ __forceinline__ void copy_units(const uint8_t* from, std::ptrdiff_t from_pitch, uint8_t* to, std::ptrdiff_t to_pitch,
                                           int width, int height, uint32_t most) {
  constexpr int at_once = 2;
  const uint32_t per_width = ~0u / uint32_t(width) + 1;  // i · per_width / 2^32 is i / width, exactly for i and width below 2^16
  for (int first = threadIdx.x; first < width * height; first += at_once * 32 * warps) {
    T units[at_once];
    const auto each = [&](auto&& f) {
#pragma unroll
      for (int k = 0; k < at_once; ++k) {
        const int i = first + k * 32 * warps, y = width > 1 ? __umulhi(i, per_width) : i;
        if (i < width * height) f(units[k], y, i - y * width);
      }
    };
    each([&](T& unit, int y, int x) { unit = __ldg(reinterpret_cast<const T*>(from + y * from_pitch) + x); });
    each([&](const T& unit, int y, int x) { reinterpret_cast<T*>(to + y * to_pitch)[x] = capped(unit, most); });
  }
}

/// Copies one channel of interleaved ones.
template <typename T>
__device__ __forceinline__ void copy_channel(const Channel& from, const uint8_t* data, const Channel& to, const Rect& part,
                                             uint32_t most) {
  for (int x = part.x + threadIdx.x % 32; x < part.x + part.width; x += 32)
    for (int y = part.y + threadIdx.x / 32; y < part.y + part.height; y += warps)
      *reinterpret_cast<T*>(to.data + y * to.pitch + x * to.step) =
          capped(*reinterpret_cast<const T*>(data + y * from.pitch + x * from.step), most);
}

/// The components that lie side by side from component c on, and all of them together: 1, Cb and Cr of NV12, RGB, RGBA. 0: samples of
/// others lie between, as in packed 4:2:2.
struct Group {
  int count;
  std::ptrdiff_t before;  ///< bytes from the first of them to component c
};
__device__ __forceinline__ Group group_at(const Channel (&channels)[4], int c, int sample_bytes) {
  const int count = channels[c].step / sample_bytes;
  if (count == 1) return {1, 0};
  if ((count == 2) != (c == 1) || (count == 4 && !channels[3].data)) return {0, 0};
  std::ptrdiff_t least = 0, most = 0;
  for (int i = c; i < c + count; ++i) {
    const std::ptrdiff_t distance = channels[i].data - channels[c].data;
    least = min(least, distance), most = max(most, distance);
  }
  return {most - least == (count - 1) * sample_bytes ? count : 0, -least};
}

/// Copies `part`, which begins and ends between samples of chroma or at the sides of the output, from a layer with Layer::copies. All
/// threads of the block take part.
__device__ __forceinline__ void copy_layer(const Target& target, const Layer& layer, const Rect& part) {
  const int bytes = layer.sample_bytes;
  const uint32_t most = bytes == 1 ? ~0u : layer.max * 0x10001u;
#pragma unroll 1
  for (int c = 0; c < 4; ++c) {
    const Channel &from = layer.channels[c], &to = target.channels[c];
    if (!to.data) continue;
    const auto units = [](int i, int shift) { return (i + (1 << shift) - 1) >> shift; };
    const Rect own{part.x >> to.shift_x, part.y >> to.shift_y, units(part.width, to.shift_x), units(part.height, to.shift_y)};
    const uint8_t* data = from.data + ((layer.crop.y - layer.place.y) >> to.shift_y) * from.pitch +
                          ((layer.crop.x - layer.place.x) >> to.shift_x) * from.step;
    const Group group = group_at(target.channels, c, bytes);
    if (!group.count) {
      bytes == 1 ? copy_channel<uint8_t>(from, data, to, own, most) : copy_channel<uint16_t>(from, data, to, own, most);
      continue;
    }
    data += own.y * from.pitch + own.x * from.step - group.before;
    uint8_t* const at = to.data + own.y * to.pitch + own.x * to.step - group.before;
    const int width = own.width * to.step;
    const auto aligned = [&](int n) {
      return ((std::uintptr_t(data) | from.pitch | std::uintptr_t(at) | to.pitch | width) & (n - 1)) == 0;
    };
    const auto copy = [&](auto unit) {
      copy_units<decltype(unit)>(data, from.pitch, at, to.pitch, width / int(sizeof unit), own.height, most);
    };
    aligned(16) ? copy(uint4()) : aligned(4) ? copy(uint32_t()) : bytes == 2 ? copy(uint16_t()) : copy(uint8_t());
    c += group.count - 1;
  }
}

}  // namespace
}  // namespace cudavision::blend
