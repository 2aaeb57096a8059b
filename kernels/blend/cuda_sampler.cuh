// SPDX-License-Identifier: LGPL-2.1-or-later
// Samples one 8-bit plane at the pixels of a pad. A unit is the interleaved samples of one pixel: 1 byte (gray, a plane
// of I420), 2 (chroma of NV12), 3 (RGB) or 4 (RGBA).
//
//   Linear   two units in each of two rows        a b        a thread keeps Across for its columns, and gets Down for
//                                                 c d        each row
//   Area     `count` rows, the first and the      f m m l    f, l: their own weights; m: one weight for all between
//            last with their own weights          f m m l
//   Box      the same if all weights are equal    m m m m    integers, so that no sample needs a conversion; 2 × 2 also
//                                                            for Linear
//
// Linear and Area use the arithmetic of cuda_read.cuh, in the same order, so that both give the same bits.
#pragma once

#include "kernels/blend/cuda_chunk.cuh"
#include "kernels/blend/cuda_read.cuh"

namespace cudavision::blend {
namespace {

/// The bytes of a unit, as they are loaded.
template <int Unit>
struct Bytes {
  uint32_t word[Unit == 3 ? 3 : 1];
};
template <int Unit>
__device__ __forceinline__ Bytes<Unit> load(const uint8_t* at) {
  if constexpr (Unit == 4)
    return {__ldg(reinterpret_cast<const uint32_t*>(at))};
  else if constexpr (Unit == 3)
    return {__ldg(at), __ldg(at + 1), __ldg(at + 2)};
  else if constexpr (Unit == 2)
    return {__ldg(reinterpret_cast<const uint16_t*>(at))};
  else
    return {__ldg(at)};
}

/// Component c of a unit.
template <int Unit>
__device__ __forceinline__ uint32_t byte_of(const Bytes<Unit>& unit, int c) {
  if constexpr (Unit == 2)
    return c ? unit.word[0] >> 8 : unit.word[0] & 0xff;
  else
    return unit.word[c];
}
/// Component c of a unit as a number. If a unit has four bytes, `order` selects the component: see pixel_order().
template <int Unit>
__device__ __forceinline__ float number_of(const Bytes<Unit>& unit, const uint32_t (&order)[4], int c) {
  if constexpr (Unit == 4)
    return __uint_as_float(__byte_perm(unit.word[0], 0x4b400000, order[c])) - round_bias;
  else
    return float(byte_of<Unit>(unit, c));
}

/// The offset of row y ≥ 0, computed with one instruction.
__device__ __forceinline__ std::uint64_t offset(int y, uint32_t pitch) { return std::uint64_t(uint32_t(y)) * pitch; }

/// A plane of a pad, and the axes from output pixels to its samples.
struct Source {
  const uint8_t* data;
  uint32_t pitch;
  const Axis &across, &down;

  __device__ __forceinline__ const uint8_t* row(int y) const { return opaque_register(data + offset(y, pitch)); }
};

struct Linear {
  /// The units `at` and `at` + 1. At the sides of the crop, the weight selects one of them.
  struct Across {
    uint32_t at;
    float weight;
  };
  struct Down {
    int first, second;
    float weight;
  };

  template <int Unit>
  static __device__ __forceinline__ Across across(const Axis& axis, int i) {
    const std::int64_t position = position_of(axis, i);
    const int before = int(position >> 32);
    const float weight = float(uint32_t(position) >> 8) * axis.weight;
    return {uint32_t(min(max(before, axis.low), axis.high - 1) * Unit), before < axis.low     ? 0
                                                                        : before >= axis.high ? 1
                                                                                              : weight};
  }
  static __device__ __forceinline__ Down down(const Axis& axis, int i) {
    const LinearTaps taps = linear_taps(axis, i);
    return {taps.first, taps.second, taps.weight};
  }
  static __device__ __forceinline__ Down from_lane(const Down& of_lane, int lane) {
    return {__shfl_sync(~0u, of_lane.first, lane), __shfl_sync(~0u, of_lane.second, lane),
            __shfl_sync(~0u, of_lane.weight, lane)};
  }

  template <int Unit, int N, int R>
  static __device__ __forceinline__ void read(const Source& from, const uint32_t (&order)[4], const Across (&x)[N],
                                              const Down (&y)[R], float (&s)[R][N][Unit]) {
#pragma unroll
    for (int i = 0; i < R; ++i) {
      const uint8_t *const above = from.row(y[i].first), *const below = from.row(y[i].second);
#pragma unroll
      for (int j = 0; j < N; ++j) {
        const uint8_t *const a = opaque_register(above + x[j].at), *const b = opaque_register(below + x[j].at);
        const Bytes<Unit> a0 = load<Unit>(a), a1 = load<Unit>(a + Unit), b0 = load<Unit>(b), b1 = load<Unit>(b + Unit);
#pragma unroll
        for (int c = 0; c < Unit; ++c) {
          const auto number = [&](const Bytes<Unit>& unit) { return number_of<Unit>(unit, order, c); };
          const float first = number(a0) + x[j].weight * (number(a1) - number(a0));
          const float second = number(b0) + x[j].weight * (number(b1) - number(b0));
          s[i][j][c] = first + y[i].weight * (second - first);
        }
      }
    }
  }
};

struct Area {
  struct Across {
    uint32_t at;
    int more;  ///< units after the first
    float first_weight, last_weight;
  };
  struct Down {
    int first, more;
    float first_weight, last_weight;

    /// The weight of row i, or 0 after the last row. `weight`: the weight of the rows between the first and the last.
    __device__ __forceinline__ float of(int i, float weight) const {
      return i == 0 ? first_weight : i < more ? weight : i == more ? last_weight : 0;
    }
  };

  template <int Unit>
  static __device__ __forceinline__ Across across(const Axis& axis, int i) {
    const Taps taps = taps_of(Sampling::area, axis, i);
    return {uint32_t(taps.first * Unit), taps.last - taps.first, taps.first_weight, taps.last_weight};
  }
  static __device__ __forceinline__ Down down(const Axis& axis, int i) {
    const Taps taps = taps_of(Sampling::area, axis, i);
    return {taps.first, taps.last - taps.first, taps.first_weight, taps.last_weight};
  }
  static __device__ __forceinline__ Down from_lane(const Down& of_lane, int lane) {
    return {__shfl_sync(~0u, of_lane.first, lane), __shfl_sync(~0u, of_lane.more, lane),
            __shfl_sync(~0u, of_lane.first_weight, lane), __shfl_sync(~0u, of_lane.last_weight, lane)};
  }

  template <int Unit, int N, int R>
  static __device__ __forceinline__ void read(const Source& from, const uint32_t (&order)[4], const Across (&x)[N],
                                              const Down (&y)[R], float (&s)[R][N][Unit]) {
    int most_x = 0, most_y = 0;
#pragma unroll
    for (int j = 0; j < N; ++j) most_x = max(most_x, x[j].more);
#pragma unroll
    for (int i = 0; i < R; ++i) {
      most_y = max(most_y, y[i].more);
#pragma unroll
      for (int j = 0; j < N; ++j)
#pragma unroll
        for (int c = 0; c < Unit; ++c) s[i][j][c] = 0;
    }
    for (int v = 0; v <= most_y; ++v) {
      Bytes<Unit> first[R][N], last[R][N];
      uint32_t between[R][N][Unit] = {};  // units between first and last have equal weights: their sum is an integer
      const uint8_t* row[R];
      float weight[R];
#pragma unroll
      for (int i = 0; i < R; ++i) {
        row[i] = from.row(y[i].first + min(v, y[i].more));
        weight[i] = y[i].of(v, from.down.per);
#pragma unroll
        for (int j = 0; j < N; ++j) {
          first[i][j] = load<Unit>(row[i] + x[j].at);
          last[i][j] = load<Unit>(row[i] + (x[j].at + x[j].more * Unit));
        }
      }
      const auto add = [&](int i, int j, float across, const Bytes<Unit>& unit) {
#pragma unroll
        for (int c = 0; c < Unit; ++c) s[i][j][c] += weight[i] * across * number_of<Unit>(unit, order, c);
      };
      if constexpr (Unit == 4)
#pragma unroll
        for (int i = 0; i < R; ++i)
#pragma unroll
          for (int j = 0; j < N; ++j) add(i, j, x[j].first_weight, first[i][j]);
      for (int u = 1; u < most_x; u += 4)
#pragma unroll
        for (int i = 0; i < R; ++i)
#pragma unroll
          for (int j = 0; j < N; ++j)
#pragma unroll
            for (int k = 0; k < 4; ++k)
              if (u + k < x[j].more) {
                const Bytes<Unit> unit = load<Unit>(row[i] + (x[j].at + (u + k) * Unit));
                if constexpr (Unit == 4)
                  add(i, j, from.across.per, unit);
                else
#pragma unroll
                  for (int c = 0; c < Unit; ++c) between[i][j][c] += byte_of<Unit>(unit, c);
              }
#pragma unroll
      for (int i = 0; i < R; ++i)
#pragma unroll
        for (int j = 0; j < N; ++j)
          if constexpr (Unit == 4)
            add(i, j, x[j].last_weight, last[i][j]);
          else
#pragma unroll
            for (int c = 0; c < Unit; ++c)
              s[i][j][c] += weight[i] * fmaf(x[j].last_weight, number_of<Unit>(last[i][j], order, c),
                                             fmaf(from.across.per, float(between[i][j][c]),
                                                  x[j].first_weight * number_of<Unit>(first[i][j], order, c)));
    }
  }
};

/// Means of Side × Side whole units (1 × 1: the unit itself). Side 0: means of all units that a step covers. After
/// rounding to 8 bits, results equal the float32 sums of Area and Linear: see box_side().
template <int Side>
struct Box {
  struct Across {
    uint32_t at;
  };
  struct Down {
    int first;
  };

  template <int Unit>
  static __device__ __forceinline__ Across across(const Axis& axis, int i) {
    return {uint32_t(point_tap(axis, i) * Unit)};
  }
  static __device__ __forceinline__ Down down(const Axis& axis, int i) { return {point_tap(axis, i)}; }
  static __device__ __forceinline__ Down from_lane(const Down& of_lane, int lane) {
    return {__shfl_sync(~0u, of_lane.first, lane)};
  }

  template <int Unit, int N, int R>
  static __device__ __forceinline__ void read(const Source& from, const uint32_t (&order)[4], const Across (&x)[N],
                                              const Down (&y)[R], float (&s)[R][N][Unit]) {
    constexpr int at_once = Side ? Side : 3;
    const int columns = Side ? Side : int(from.across.step >> 32), rows = Side ? Side : int(from.down.step >> 32);
    const float scale = Side ? 1.0f / (Side * Side) : from.across.per * from.down.per;
    constexpr bool pairs = Unit == 2 || Unit == 4;  // two sums of 16 bits in a word
    constexpr int sums = pairs ? Unit / 2 : Unit;
    uint32_t sum[R][N][sums] = {};
    for (int top = 0; top < rows; top += at_once)
      for (int left = 0; left < columns; left += at_once)
#pragma unroll
        for (int i = 0; i < R; ++i)
#pragma unroll
          for (int v = 0; v < at_once; ++v)
#pragma unroll
            for (int j = 0; j < N; ++j) {
              const uint8_t* const at = opaque_register(from.row(y[i].first + top + v) + (x[j].at + left * Unit));
#pragma unroll
              for (int u = 0; u < at_once; ++u)
                if (Side || (top + v < rows && left + u < columns)) {
                  const Bytes<Unit> unit = load<Unit>(at + u * Unit);
                  if constexpr (pairs)
#pragma unroll
                    for (int k = 0; k < sums; ++k)
                      sum[i][j][k] += __byte_perm(unit.word[0], 0, Unit == 2 ? 0x4140 : 0x4240 + 0x101 * k);
                  else
#pragma unroll
                    for (int c = 0; c < Unit; ++c) sum[i][j][c] += byte_of<Unit>(unit, c);
                }
            }
#pragma unroll
    for (int i = 0; i < R; ++i)
#pragma unroll
      for (int j = 0; j < N; ++j)
#pragma unroll
        for (int c = 0; c < Unit; ++c) {
          uint32_t value = sum[i][j][pairs ? 0 : c];
          if constexpr (Unit == 2) value = c ? value >> 16 : value & 0xffff;
          if constexpr (Unit == 4)
            value = (order[c] & 1 ? sum[i][j][1] : value) >> 8 * (order[c] & 2) & 0xffff;  // byte order[c] & 3
          s[i][j][c] = float(value) * scale;
        }
  }
};

/// Chooses a Box if each pixel is the mean of the same number of whole samples. Returns its Side, 0 for Box<0>, or −1
/// if no Box fits.
///
/// Area: float32 sums of up to 64 samples are less than 2^-10 from the exact mean, and rounded_sample() adds 2^-10:
/// both round to the same integer. Alpha is rounded without this addition, so its mean must be exact, or far from
/// halves. Linear: the arithmetic is exact if all weights are 0, or all are 1/2. A step of at least two samples keeps
/// both samples inside the crop.
__device__ __forceinline__ int box_side(const LayerPicture& layer, const Axis& across, const Axis& down) {
  const uint32_t starts = uint32_t(across.start) | uint32_t(down.start);
  if (uint32_t(across.step) | uint32_t(down.step)) return -1;
  const int x = int(across.step >> 32), y = int(down.step >> 32);
  if (layer.sampling == Sampling::linear) {
    constexpr uint32_t half = 1u << 31;
    if (uint32_t(across.start) != uint32_t(down.start) || min(x, y) < 2) return -1;
    return starts == 0 ? 1 : starts == half ? 2 : -1;
  }
  if (layer.sampling != Sampling::area || starts || across.per == 0 || down.per == 0 || max(x, y) > 64 || x * y > 64)
    return -1;
  if (x == 2 && y == 2) return 2;
  return !layer.channels[3].data || !(x * y & (x * y - 1)) || (x * y % 2 == 1 && layer.opacity == 1) ? 0 : -1;
}

}  // namespace
}  // namespace cudavision::blend
