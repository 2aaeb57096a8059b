// SPDX-License-Identifier: LGPL-2.1-or-later
// Copies a part of a tile from a layer whose stored samples equal the output's.
#pragma once

#include <algorithm>

#include "kernels/blend/cuda_compose.cuh"

namespace cudavision::blend {
namespace {

/// Limits two 16-bit samples in a word to the largest sample, which `most` holds twice. Bytes are not limited.
__device__ __forceinline__ uint32_t capped(uint32_t words, uint32_t most) { return __vminu2(words, most); }
__device__ __forceinline__ uint16_t capped(uint16_t word, uint32_t most) {
  return uint16_t(min(uint32_t(word), most & 0xffff));
}
__device__ __forceinline__ uint8_t capped(uint8_t byte, uint32_t) { return byte; }
__device__ __forceinline__ uint4 capped(uint4 words, uint32_t most) {
  return make_uint4(capped(words.x, most), capped(words.y, most), capped(words.z, most), capped(words.w, most));
}

/// Copies `width` × `height` units of T. Each warp copies some rows. A thread loads several units, then stores them.
template <typename T>
__device__ __forceinline__ void copy_units(const uint8_t* from, std::ptrdiff_t from_pitch, uint8_t* to,
                                           std::ptrdiff_t to_pitch, int width, int height, uint32_t most) {
  constexpr int at_once = 4;
  const int warp = threadIdx.x / 32;
  for (int x = threadIdx.x % 32; x < width; x += 32) {
    const uint8_t* source = from + warp * from_pitch + x * int(sizeof(T));
    uint8_t* target = to + warp * to_pitch + x * int(sizeof(T));
    for (int left = height - warp; left > 0; left -= at_once * warps) {
      T units[at_once];
#pragma unroll
      for (int k = 0; k < at_once; ++k, source += warps * from_pitch)
        if (k * warps < left) units[k] = __ldg(reinterpret_cast<const T*>(source));
#pragma unroll
      for (int k = 0; k < at_once; ++k, target += warps * to_pitch)
        if (k * warps < left) *reinterpret_cast<T*>(target) = capped(units[k], most);
    }
  }
}

/// Copies one of several interleaved channels.
template <typename T>
__device__ __forceinline__ void copy_channel(const ChannelView& from, const uint8_t* data, const ChannelView& to,
                                             const Rect& part, uint32_t most) {
  for (int x = part.x + threadIdx.x % 32; x < part.x + part.width; x += 32)
    for (int y = part.y + threadIdx.x / 32; y < part.y + part.height; y += warps)
      *reinterpret_cast<T*>(to.at(x, y)) =
          capped(*reinterpret_cast<const T*>(data + y * from.pitch + x * from.step), most);
}

/// Adjacent components, beginning with `channel`, that are copied together: one component, Cb and Cr of NV12, RGB,
/// RGBA.
struct CopyGroup {
  int before;  ///< bytes from the first component to `channel`
  uint8_t channel;
  bool chroma;
};
struct CopyGroups {
  CopyGroup group[4];
  int count;
  bool all;  ///< false: other samples lie between the components, as in packed 4:2:2; they are copied one by one
};
inline CopyGroups copy_groups(const Target& target) {
  CopyGroups groups{};
  for (int c = 0; c < 4; ++c) {
    const ChannelView(&channels)[4] = target.channels;
    if (!channels[c].data) continue;
    const int count = channels[c].step / target.sample_bytes;
    std::ptrdiff_t least = 0, most = 0;
    for (int i = c; i < std::min(c + count, 4); ++i) {
      const std::ptrdiff_t distance = channels[i].data - channels[c].data;
      least = std::min(least, distance), most = std::max(most, distance);
    }
    const bool together = count == 1 || ((count == 2) == (c == 1) && !(count == 4 && !channels[3].data));
    if (!together || most - least != (count - 1) * target.sample_bytes) return {};
    groups.group[groups.count++] = {int(-least), uint8_t(c), c == 1 || c == 2};
    c += count - 1;
  }
  groups.all = true;
  return groups;
}

/// Whether a block writes chroma, or the other planes.
__device__ __forceinline__ bool writes(Planes planes, bool chroma) {
  return planes == Planes::all || chroma == (planes == Planes::chroma);
}

/// Copies `part`, which begins and ends between chroma samples or at the sides of the output, from a layer with
/// Layer::copies. All threads of the block must call this function.
__device__ __forceinline__ void copy_layer(const Target& target, const CopyGroups& groups, const LayerPicture& layer,
                                           const Rect& part, Planes planes) {
  const int bytes = layer.sample_bytes;
  const uint32_t most = bytes == 1 ? ~0u : layer.max * 0x10001u;
  const auto units = [](int i, int shift) { return (i + (1 << shift) - 1) >> shift; };
  const auto samples_of_part = [&](const ChannelView& to) {
    return Rect{part.x >> to.shift_x, part.y >> to.shift_y, units(part.width, to.shift_x),
                units(part.height, to.shift_y)};
  };
  // The layer's sample for the first sample of the output.
  const auto first = [&](const ChannelView& from, const ChannelView& to) {
    return from.at((layer.crop.x - layer.place.x) >> to.shift_x, (layer.crop.y - layer.place.y) >> to.shift_y);
  };
#pragma unroll 1
  for (int g = 0; g < groups.count; ++g) {
    const CopyGroup& group = groups.group[g];
    if (!writes(planes, group.chroma)) continue;
    const ChannelView &from = layer.channels[group.channel], &to = target.channels[group.channel];
    const Rect r = samples_of_part(to);
    const uint8_t* const data = first(from, to) + r.y * from.pitch + r.x * from.step - group.before;
    uint8_t* const at = to.at(r.x, r.y) - group.before;
    const int width = r.width * to.step;
    const auto aligned = [&](std::uintptr_t n) { return ((n | from.pitch | to.pitch) & 15) == 0; };
    const auto copy = [&](auto unit, int begin, int end) {
      copy_units<decltype(unit)>(data + begin, from.pitch, at + begin, to.pitch, (end - begin) / int(sizeof unit),
                                 r.height, most);
    };
    const auto copy_samples = [&](int begin, int end) {
      bytes == 2 ? copy(uint16_t(), begin, end) : copy(uint8_t(), begin, end);
    };
    if (aligned(std::uintptr_t(data) ^ std::uintptr_t(at))) {
      const int head = min(int(-std::uintptr_t(at) & 15), width), tail = head + ((width - head) & ~15);
      if (head) copy_samples(0, head);
      copy(uint4(), head, tail);
      if (tail < width) copy_samples(tail, width);
    } else {
      copy_samples(0, width);
    }
  }
  if (groups.all) return;
#pragma unroll 1
  for (int c = 0; c < 4; ++c) {  // other samples lie between them
    const ChannelView &from = layer.channels[c], &to = target.channels[c];
    if (!to.data || !writes(planes, c == 1 || c == 2)) continue;
    bytes == 1 ? copy_channel<uint8_t>(from, first(from, to), to, samples_of_part(to), most)
               : copy_channel<uint16_t>(from, first(from, to), to, samples_of_part(to), most);
  }
}

}  // namespace
}  // namespace cudavision::blend
