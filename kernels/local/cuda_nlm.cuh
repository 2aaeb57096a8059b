// SPDX-License-Identifier: LGPL-2.1-or-later
// Non-local means of a warp's tile, on the matrix units. cuda_nlm.cu has a drawing of the steps.
//
// Where to change what: how samples of a depth are stored, and how precise their squares are: cuda_nlm_samples.cuh;
// which samples a lane holds: NlmTile; the edge of the frame: Edge; the weight: exp2_of and its callers.
#pragma once

#include <cstddef>

#include "kernels/core/image.hpp"
#include "kernels/cuda/mma.cuh"
#include "kernels/local/cuda_nlm_samples.cuh"

namespace cudavision::local {

/// The components of a channel set, and the rectangle to compute.
struct NlmJob {
  const unsigned char* src;
  unsigned char* dst;
  std::ptrdiff_t src_pitch, dst_pitch;
  int step;           ///< distance between samples, in bytes
  int width, height;  ///< size of the grid
  Rect rect;
  int radius_x, radius_y, search_x, search_y;
  int shift, max_value;
  int channels[4];  ///< bytes from the first sample of the set to the first one of each component, by blockIdx.z
  NlmGrid grid;
  int warps_x;  ///< warps of a block, side by side
  int pitch;    ///< words from row to row of the shared picture
  int span;     ///< number of offsets whose weights are summed before they are added to the totals
  float band;   ///< nonzero element of the matrix that sums rows of column sums
  float scale;  ///< factor from a result of the matrices to the exponent of a weight, base 2
};

// ---- Tiles

/// The samples of a warp's tile that each lane holds: g = lane / 4, t = lane % 4. Positions are relative to the first
/// result.
template <int reach>
struct NlmTile : NlmShape<reach> {
  using Shape = NlmShape<reach>;
  using Shape::halo, Shape::inset, Shape::group_width, Shape::width;
  static constexpr int blocks = 4;              // blocks of 8 columns that have results
  static constexpr int columns = 4 + halo / 4;  // blocks of 8 columns, including the halo
  static constexpr int pairs = 2 + halo / 4;    // pairs of rows that a lane holds in each of these blocks
  // Blocks of columns that extend into a group of 16 results from either side.
  static constexpr int sides = (halo + 7) / 8;
  static constexpr int kinds = reach == 4 ? 2 : 1;  // kinds of bands for the sides

  /// The first row of a pair of rows.
  __device__ static int row(int pair, int t) {
    if (pair < 2) return 8 * pair + 2 * t - inset;
    if (halo == 4) return (t < 2 ? -4 : 12) + 2 * t;
    const int i = pair - 2;
    return (i < sides ? 8 * i - halo : 16 + 8 * (i - sides)) + 2 * t;
  }
  __device__ static int column(int block, int g) {
    if (block < blocks) return block / 2 * group_width + block % 2 * 8 + g - inset;
    if (halo == 4) return (g < 4 ? -4 : width - 4) + g;
    const int i = block - blocks;
    return (i < sides ? 8 * i - halo : width + 8 * (i - sides)) + g;
  }
  /// The i-th block that extends into a group from the sides.
  static constexpr int side(int group, int i) {
    const int at = 2 * group + (i < sides ? i - sides : 2 + i - sides);
    if (at >= 0 && at < blocks) return at;
    if (halo == 4) return blocks;
    return at < 0 ? blocks + sides + at : blocks + sides + at - blocks;
  }
};

/// The matrices: 1 (or job.band) if a sample belongs to the patch of a result, otherwise 0.
template <typename Tile>
struct Bands {
  uint32_t down[2 * Tile::pairs];                    ///< results × rows: the pairs of rows
  uint32_t along[4];                                 ///< results × columns: the two blocks of a group
  uint32_t sides[Tile::kinds][4 * Tile::sides + 1];  ///< results × columns: the blocks that extend into a group
  uint32_t one;                                      ///< the 8 × 8 unit matrix

  __device__ Bands(const NlmJob& job, int g, int t) {
    const auto entry = [](int radius, int distance) { return distance >= -radius && distance <= radius ? 1.f : 0.f; };
    // Many entries are equal. Without the shuffle, the compiler would keep one copy, and move it for every product.
    const auto placed = [](uint32_t entries) { return __shfl_sync(~0u, entries, threadIdx.x % 32); };
#pragma unroll
    for (int i = 0; i < 2 * Tile::pairs; ++i) {
      const int distance = Tile::row(i / 2, t) - (g + i % 2 * 8 - Tile::inset);
      down[i] = placed(pack(entry(job.radius_y, distance), entry(job.radius_y, distance + 1)));
    }
    const auto across = [&](int group, int block, int lower) {
      const int result = group * Tile::group_width + g + lower * 8 - Tile::inset;
      return placed(pack(job.band * entry(job.radius_x, Tile::column(block, 2 * t) - result),
                         job.band * entry(job.radius_x, Tile::column(block, 2 * t + 1) - result)));
    };
#pragma unroll
    for (int i = 0; i < 4; ++i) along[i] = across(0, i / 2, i % 2);
#pragma unroll
    for (int kind = 0; kind < Tile::kinds; ++kind)
#pragma unroll
      for (int i = 0; i < 4 * Tile::sides; ++i) sides[kind][i] = across(kind, Tile::side(kind, i / 2), i % 2);
    one = pack(g == 2 * t, g == 2 * t + 1);
  }
};

// ---- Weights
//
// A lane has four results of 16 columns × 8 rows: columns g and g + 8, each with the rows 2t and 2t + 1.

__device__ __forceinline__ float exp2_of(float x) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

/// Replaces distances with weights.
__device__ __forceinline__ void weigh(float scale, float (&values)[4]) {
#pragma unroll
  for (float& value : values) value = exp2_of(value * scale);
}

/// Masks and factors for tiles at the edge of the frame. Only that part of a patch counts in which both the sample and
/// the sample at the offset are inside.
template <typename Tile>
struct Edge {
  uint32_t rows[Tile::pairs];                    ///< 0xffff for a row that counts
  uint32_t columns[Tile::columns];               ///< all bits set for a column that counts
  float factor_y[2][2], factor_x[Tile::blocks];  ///< the whole patch divided by the part that counts

  static __device__ float factor(int at, int radius, int low, int high) {
    const int count = min(at + radius + 1, high) - max(at - radius, low);
    return __fdividef(float(2 * radius + 1), float(max(count, 1)));
  }
  __device__ void set_row(const NlmJob& job, int y, int dy, float scale, int t) {
    const int low = max(0, -dy), high = min(job.height, job.height - dy);
#pragma unroll
    for (int i = 0; i < Tile::pairs; ++i) {
      const int at = y + Tile::row(i, t);
      rows[i] = (at >= low && at < high ? 0xffff : 0) | (at + 1 >= low && at + 1 < high ? 0xffff0000 : 0);
      if (i < 2)
#pragma unroll
        for (int which = 0; which < 2; ++which)
          factor_y[i][which] = scale * factor(at + which, job.radius_y, low, high);
    }
  }
  __device__ void set_column(const NlmJob& job, int x, int dx, int g) {
    const int low = max(0, -dx), high = min(job.width, job.width - dx);
#pragma unroll
    for (int i = 0; i < Tile::columns; ++i) {
      const int at = x + Tile::column(i, g);
      columns[i] = at >= low && at < high ? ~0u : 0;
      if (i < Tile::blocks) factor_x[i] = factor(at, job.radius_x, low, high);
    }
  }
  /// Replaces distances with weights; 0 if the sample at the offset is outside.
  __device__ void weigh(int group, int half, float (&values)[4]) const {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int column = 2 * group + i / 2, counts = rows[half] & columns[column] & (i % 2 ? 0x10000 : 1);
      values[i] = counts ? exp2_of(values[i] * (factor_y[half][i % 2] * factor_x[column])) : 0;
    }
  }
};

// ---- Sums

/// Σ w and Σ w · difference over a few offsets, then over all offsets.
template <Samples samples>
struct Sums {
  float weights[4] = {}, differences[4] = {};
  float total_weights[4] = {}, total_differences[4] = {};

  __device__ void add(const float (&w)[4], const Difference<samples>& left, const Difference<samples>& right) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      weights[i] += w[i];
      differences[i] += w[i] * (i < 2 ? left : right).value(i % 2);
    }
  }
  __device__ void flush(uint32_t) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      total_weights[i] += weights[i], total_differences[i] += differences[i];
      weights[i] = differences[i] = 0;
    }
  }
};
/// Sums in half precision, then in float32: the product with the unit matrix converts and adds.
template <>
struct Sums<Samples::bits8> {
  __half2 weights[2] = {}, differences[2] = {};
  float total_weights[4] = {}, total_differences[4] = {};

  __device__ void add(const float (&w)[4], const Difference<Samples::bits8>& left,
                      const Difference<Samples::bits8>& right) {
    const __half2 pairs[2] = {__floats2half2_rn(w[0], w[1]), __floats2half2_rn(w[2], w[3])};
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      weights[i] = __hadd2(weights[i], pairs[i]);
      differences[i] = __hfma2(pairs[i], halves((i ? right : left).both), differences[i]);
    }
  }
  __device__ void flush(uint32_t one) {
    cuda::mma(total_weights, word(weights[0]), word(weights[1]), one, total_weights);
    cuda::mma(total_differences, word(differences[0]), word(differences[1]), one, total_differences);
#pragma unroll
    for (int i = 0; i < 2; ++i) weights[i] = differences[i] = __float2half2_rn(0);
  }
};

/// The sums of squares down a column, for 16 rows of a block. A lane gets rows g and g + 8 of columns 2t and 2t + 1.
template <typename Tile, int parts>
__device__ __forceinline__ void sum_down(const Bands<Tile>& bands, const uint32_t (&squares)[parts][Tile::pairs],
                                         uint32_t (&sums)[parts][2]) {
  const auto accumulate = [&](auto& sum) {
#pragma unroll
    for (int p = 0; p < parts; ++p) {
      if constexpr (Tile::pairs % 2) cuda::mma(sum, bands.down[4], bands.down[5], squares[p][2], sum);
#pragma unroll
      for (int i = 0; i + 1 < Tile::pairs; i += 2)
        cuda::mma(sum, {bands.down[2 * i], bands.down[2 * i + 1], bands.down[2 * i + 2], bands.down[2 * i + 3]},
                  {squares[p][i], squares[p][i + 1]}, sum);
    }
  };
  if constexpr (parts == 1) {
    sums[0][0] = sums[0][1] = 0;
    accumulate(sums[0]);
  } else {
    float sum[4] = {};
    accumulate(sum);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      uint32_t split_sum[2];
      split(sum[2 * half], sum[2 * half + 1], split_sum);
      sums[0][half] = split_sum[0], sums[1][half] = split_sum[1];
    }
  }
}

/// The sums of column sums along 8 rows, for the results of a group.
template <typename Tile, int parts>
__device__ __forceinline__ void sum_along(const Bands<Tile>& bands, const uint32_t (&sums)[Tile::columns][parts][2],
                                          int group, int half, float (&distances)[4]) {
#pragma unroll
  for (int i = 0; i < 4; ++i) distances[i] = 0;
#pragma unroll
  for (int p = 0; p < parts; ++p) {
    cuda::mma(distances, bands.along, {sums[2 * group][p][half], sums[2 * group + 1][p][half]}, distances);
#pragma unroll
    for (int i = 0; i < 2 * Tile::sides; i += 2) {
      const uint32_t(&band)[4 * Tile::sides + 1] = bands.sides[group % Tile::kinds];
      cuda::mma(distances, {band[2 * i], band[2 * i + 1], band[2 * i + 2], band[2 * i + 3]},
                {sums[Tile::side(group, i)][p][half], sums[Tile::side(group, i + 1)][p][half]}, distances);
    }
  }
}

/// Stores the results of a tile that are in the rectangle. (x, y): the first result.
template <Samples samples, typename Tile>
__device__ __forceinline__ void store(const NlmJob& job, int x, int y,
                                      const uint32_t (&centre)[Tile::columns][Tile::pairs],
                                      const Sums<samples> (&sums)[2][2]) {
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  const int first_x = max(job.rect.x - x, 0), end_x = min(job.rect.x + job.rect.width - x, Tile::width);
  const int first_y = max(job.rect.y - y, 0), end_y = min(job.rect.y + job.rect.height - y, Tile::height);
  unsigned char* const dst = job.dst + job.channels[blockIdx.z] + y * job.dst_pitch + std::ptrdiff_t(x) * job.step;
#pragma unroll
  for (int half = 0; half < 2; ++half)
#pragma unroll
    for (int which = 0; which < 2; ++which) {
      const int down = Tile::row(half, t) + which;
      if (down < first_y || down >= end_y) continue;
#pragma unroll
      for (int c = 0; c < Tile::blocks; ++c) {
        const int across = Tile::column(c, g), in_group = across - c / 2 * Tile::group_width;
        if (in_group < 0 || in_group >= Tile::group_width || across < first_x || across >= end_x) continue;
        const Sums<samples>& sum = sums[c / 2][half];
        const int i = c % 2 * 2 + which;
        const float change = unit_of(samples) * __fdividef(sum.total_differences[i], sum.total_weights[i]);
        const int value = __float2int_rn(sample_in<samples>(centre[c][half], which) + change);
        *reinterpret_cast<Stored<samples>*>(dst + down * job.dst_pitch + across * job.step) =
            Stored<samples>(min(max(value, 0), job.max_value) << job.shift);
      }
    }
}

/// Computes the results of a warp. `picture`: the shared words; (x, y): the first result; (at_x, at_y): its word.
template <Samples samples, int reach, bool at_edge>
__device__ __forceinline__ void denoise(const NlmJob& job, const unsigned char* picture, int x, int y, int at_x,
                                        int at_y) {
  using Tile = NlmTile<reach>;
  constexpr int parts = parts_of(samples);
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  const Bands<Tile> bands(job, g, t);

  int rows[Tile::pairs];  // bytes from the first word of the picture to the words of the lane
  uint32_t centre[Tile::columns][Tile::pairs];
#pragma unroll
  for (int i = 0; i < Tile::pairs; ++i) rows[i] = 4 * ((at_y + Tile::row(i, t)) * job.pitch + at_x + g);
  const auto load = [&](int pair, int column, int offset) {
    return *reinterpret_cast<const uint32_t*>(picture + rows[pair] + 4 * (Tile::column(column, g) - g) + offset);
  };
#pragma unroll
  for (int c = 0; c < Tile::columns; ++c)
#pragma unroll
    for (int i = 0; i < Tile::pairs; ++i) centre[c][i] = load(i, c, 0);

  Sums<samples> sums[2][2];  // sums of each group, for its upper and its lower 8 rows
  Edge<Tile> edge;
  for (int dy = -job.search_y; dy <= job.search_y; ++dy) {
    if (at_edge) edge.set_row(job, y, dy, samples == Samples::bits8 ? 1 : job.scale, t);
    for (int begin = -job.search_x; begin <= job.search_x; begin += job.span) {
      const int end = min(begin + job.span - 1, job.search_x);
#pragma unroll 1
      for (int dx = begin; dx <= end; ++dx) {
        if (at_edge) edge.set_column(job, x, dx, g);
        const int offset = 4 * (dy * job.pitch + dx);
        Difference<samples> differences[Tile::blocks][2];
        uint32_t column_sums[Tile::columns][parts][2];
#pragma unroll
        for (int c = 0; c < Tile::columns; ++c) {
          uint32_t squares[parts][Tile::pairs];
#pragma unroll
          for (int i = 0; i < Tile::pairs; ++i) {
            const Difference<samples> difference(load(i, c, offset), centre[c][i]);
            uint32_t square_parts[parts];
            square(difference, square_parts);
#pragma unroll
            for (int p = 0; p < parts; ++p)
              squares[p][i] = at_edge ? square_parts[p] & edge.rows[i] & edge.columns[c] : square_parts[p];
            if (c < Tile::blocks && i < 2) differences[c][i] = difference;
          }
          sum_down<Tile, parts>(bands, squares, column_sums[c]);
        }
#pragma unroll
        for (int group = 0; group < 2; ++group)
#pragma unroll
          for (int half = 0; half < 2; ++half) {
            float weights[4];
            sum_along<Tile, parts>(bands, column_sums, group, half, weights);
            if constexpr (at_edge)
              edge.weigh(group, half, weights);
            else
              weigh(samples == Samples::bits8 ? 1 : job.scale, weights);
            sums[group][half].add(weights, differences[2 * group][half], differences[2 * group + 1][half]);
          }
      }
#pragma unroll
      for (int i = 0; i < 4; ++i) sums[i / 2][i % 2].flush(bands.one);
    }
  }

  store<samples, Tile>(job, x, y, centre, sums);
}

}  // namespace cudavision::local
