// SPDX-License-Identifier: LGPL-2.1-or-later
// Copying a tile from a layer whose stored samples are the output's.
#pragma once

#include "kernels/blend/cuda_compose.cuh"

namespace cudavision::blend {
namespace {

/// Limits 16-bit samples to the largest sample, which `most` holds twice, for two samples per word. Bytes are not limited.
__device__ __forceinline__ uint32_t capped(uint32_t words, uint32_t most) { return __vminu2(words, most); }
__device__ __forceinline__ uint16_t capped(uint16_t word, uint32_t most) { return uint16_t(min(uint32_t(word), most & 0xffff)); }
__device__ __forceinline__ uint8_t capped(uint8_t byte, uint32_t) { return byte; }
__device__ __forceinline__ uint2 capped(uint2 words, uint32_t most) {
  return make_uint2(capped(words.x, most), capped(words.y, most));
}
__device__ __forceinline__ uint4 capped(uint4 words, uint32_t most) {
  return make_uint4(capped(words.x, most), capped(words.y, most), capped(words.z, most), capped(words.w, most));
}

/// Copies a part of a plane, in units of T. Unit (0, 0) of the output is at `to`, its source at `from`. `most`: see capped().
template <typename T>
__device__ __forceinline__ void copy_units(const uint8_t* from, std::ptrdiff_t from_pitch, uint8_t* to, std::ptrdiff_t to_pitch,
                                           const Rect& part, uint32_t most) {
  from += part.x * int(sizeof(T)), to += part.x * int(sizeof(T));
  const int bytes = part.width * int(sizeof(T)), chunks = bytes / 16;
  if ((std::uintptr_t(from) | from_pitch | std::uintptr_t(to) | to_pitch | bytes) % 16 == 0) {
    for (int i = threadIdx.x; i < chunks * part.height; i += 32 * warps) {
      const int y = part.y + i / chunks, x = i % chunks;
      reinterpret_cast<uint4*>(to + y * to_pitch)[x] =
          capped(__ldg(reinterpret_cast<const uint4*>(from + y * from_pitch) + x), most);
    }
    return;
  }
  for (int x = threadIdx.x % 32; x < part.width; x += 32) {
#pragma unroll 4
    for (int y = part.y + threadIdx.x / 32; y < part.y + part.height; y += warps)
      reinterpret_cast<T*>(to + y * to_pitch)[x] = capped(reinterpret_cast<const T*>(from + y * from_pitch)[x], most);
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

/// Copies each component; Cb and Cr of NV12 together. T: a sample, Pair: two of them.
template <typename T, typename Pair>
__device__ __forceinline__ void copy_planes(const Target& target, const Layer& layer, int x, int y, const Rect& tile,
                                            uint32_t most) {
#pragma unroll 1
  for (int c = 0; c < 4; ++c) {
    const Channel &from = layer.channels[c], &to = target.channels[c];
    if (!to.data) continue;
    const auto part_of = [](int i, int shift) { return (i + (1 << shift) - 1) >> shift; };
    const Rect part{tile.x >> to.shift_x, tile.y >> to.shift_y, part_of(tile.width, to.shift_x), part_of(tile.height, to.shift_y)};
    const uint8_t* const data = from.data + (y >> to.shift_y) * from.pitch + (x >> to.shift_x) * from.step;
    const std::ptrdiff_t next = c == 1 ? target.channels[2].data - to.data : 0, first = next < 0 ? next : 0;
    const bool paired = to.step == sizeof(Pair) && next - 2 * first == sizeof(T);  // NV12
    const bool aligned =
        (std::uintptr_t(data + first) | from.pitch | std::uintptr_t(to.data + first) | to.pitch) % sizeof(Pair) == 0;
    if (to.step == sizeof(T)) {
      copy_units<T>(data, from.pitch, to.data, to.pitch, part, most);
    } else if (paired && aligned) {
      copy_units<Pair>(data + first, from.pitch, to.data + first, to.pitch, part, most);
      ++c;
    } else {
      copy_channel<T>(from, data, to, part, most);
    }
  }
}

/// Copies the tile from a layer with Layer::copies. All threads of the block take part.
__device__ __forceinline__ void copy_layer(const Target& target, const Layer& layer, const Rect& tile) {
  const int x = layer.crop.x - layer.place.x, y = layer.crop.y - layer.place.y;
  const bool bytes = layer.sample_bytes == 1;
  const uint32_t most = bytes ? ~0u : layer.max * 0x10001u;
  if (target.packed.data && layer.packed.data) {
    const std::ptrdiff_t pitch = layer.channels[0].pitch, to_pitch = target.channels[0].pitch;
    const uint8_t* const from = layer.packed.data + y * pitch + x * 4 * layer.sample_bytes;
    bytes ? copy_units<uint32_t>(from, pitch, target.packed.data, to_pitch, tile, most)
          : copy_units<uint2>(from, pitch, target.packed.data, to_pitch, tile, most);
  } else {
    bytes ? copy_planes<uint8_t, uint16_t>(target, layer, x, y, tile, most)
          : copy_planes<uint16_t, uint32_t>(target, layer, x, y, tile, most);
  }
}

}  // namespace
}  // namespace cudavision::blend
