// SPDX-License-Identifier: LGPL-2.1-or-later
// What the two families on the matrix units share: samples in half precision, and from sums to stored pixels.
//
// 128 neighbouring pixels of a row are 16 segments of 8. A segment and the samples that its window adds on both sides are a row of
// a 16 × 16 matrix of samples. Its product with a 16 × 8 matrix of weights (column g: the row of weights, shifted by g) is 128
// sums:
//
//                  column 0 … 15 = sample 8·s − 4 + column        column g = result 8·s + g
//   segment s = 0  | a b c d e f … |        | w0  0  0 … |
//           s = 1  | i j k l m n … |    ×   | w1 w0  0 … |   =  16 × 8 sums of one row of weights
//           …      |               |        | w2 w1 w0 … |
//           s = 15 |               |        |  0 w2 w1 … |
//
// Lane 4·g + t of a warp holds the results 2t and 2t + 1 of the segments g and g + 8 (see kernels/cuda/mma.cuh), so it stores pairs
// of pixels, 64 apart. Half precision holds 8-bit samples exactly. A weight is one number (11 bits) where that is exact or near
// enough, else the sum of two numbers (22 bits). Products are exact; sums are float32. A matrix never mixes rows, so lanes exchange
// no data.
#pragma once

#include "kernels/convolve/cuda_results.cuh"
#include "kernels/cuda/mma.cuh"
#include "kernels/cuda/warp.cuh"

namespace cudavision::convolve {

using cuda::keep;
using cuda::mma;

namespace {

/// Samples 2·pair and 2·pair + 1 of a word in half precision: their bytes become the mantissas of 1024 + sample.
__device__ __forceinline__ std::uint32_t to_halves(std::uint32_t samples, int pair) {
  const std::uint32_t biased = __byte_perm(samples, 0x64646464, pair ? 0x4342 : 0x4140);
  std::uint32_t halves;
  asm("sub.f16x2 %0, %1, %2;" : "=r"(halves) : "r"(biased), "r"(0x64006400u));
  return halves;
}

/// What the code of a warp must handle.
enum class Way {
  inner,   ///< nothing: all samples lie in the frame, and all results in the region
  side,    ///< samples left or right of the frame, results outside the region
  general  ///< also rare cases: unaligned planes, rows of the border value, pixels that keep their input
};

/// The results of the pixels x and x + 1: 2·C bytes, the lowest first.
template <int C>
struct Pair {
  std::uint32_t word[(C + 1) / 2] = {};

  __device__ __forceinline__ void insert(int pixel, int c, std::uint32_t sample) {
    const int byte = pixel * C + c;
    if (byte % 4 == 0 && (C <= 2 || c == 0))
      word[byte / 4] = sample;  // the first byte of its word
    else
      word[byte / 4] = __byte_perm(word[byte / 4], sample, 0x3210 + ((4 - byte % 4) << 4 * (byte % 4)));
  }
  __device__ __forceinline__ void store(unsigned char* at) const {
    if constexpr (C == 1) *reinterpret_cast<std::uint16_t*>(at) = std::uint16_t(word[0]);
    if constexpr (C == 2) *reinterpret_cast<std::uint32_t*>(at) = word[0];
    if constexpr (C == 3) {
      reinterpret_cast<std::uint16_t*>(at)[0] = std::uint16_t(word[0]);
      reinterpret_cast<std::uint16_t*>(at)[1] = std::uint16_t(word[0] >> 16);
      reinterpret_cast<std::uint16_t*>(at)[2] = std::uint16_t(word[1]);
    }
    if constexpr (C == 4) *reinterpret_cast<uint2*>(at) = make_uint2(word[0], word[1]);
  }
};

__device__ __forceinline__ bool lies_in(const Rect& rect, int x, int y) {
  return x >= rect.x && x < rect.x + rect.width && y >= rect.y && y < rect.y + rect.height;
}

/// Stores a pair in any case: region, border, copied channels. Not inlined, because few pairs need it.
template <int C>
__device__ __noinline__ void store_any_pair(const Job<float>& job, int x, int y, std::uint32_t low, std::uint32_t high) {
  const SetView& view = job.view;
  const Rect& whole = job.whole;
  unsigned char* const at = view.dst + y * view.dst_pitch + std::ptrdiff_t(x) * C;
  const unsigned char* const from = view.src + y * view.src_pitch + std::ptrdiff_t(x) * C;
#pragma unroll
  for (int j = 0; j < 2; ++j) {
    if (x + j < view.x0 || x + j >= view.x1) continue;
    const bool outside = !lies_in(whole, x + j, y);
#pragma unroll
    for (int c = 0; c < C; ++c) {
      const int byte = j * C + c;
      if (!(view.own >> c & 1)) continue;
      if (!(view.filtered >> c & 1) || (outside && view.border == Border::copy))
        at[byte] = from[byte];
      else
        at[byte] = outside ? view.border_value[c] : (byte < 4 ? low : high) >> byte % 4 * 8;
    }
  }
}

/// Where the results of a lane go: the pairs at x, x + 64, … (H of them) of `count` rows from y on, one call of store() a row. The
/// first `skip` calls store nothing.
template <int C, int H>
class Output {
 public:
  __device__ __forceinline__ Output(const MatrixJob& job, int x, int y, int count, int skip)
      : job_(job),
        x_(x),
        y_(y - skip),
        row_(-skip),
        count_(count),
        src_pitch_(int(job.view.src_pitch)),
        dst_pitch_(int(job.view.dst_pitch)) {
    const SetView& view = job.view;
    const Rect& whole = job.whole;
    const bool fill = view.border == Border::fill, within = y >= whole.y && y + count <= whole.y + whole.height;
    const bool rows = job.pair_aligned && (fill || within) && (C == 4 ? view.src_aligned : view.own == view.filtered);
    shared_ = (C == 2 || C == 4) && view.own != (1u << C) - 1 ? view.own : 0;
    if (C == 2 || C == 4) keep(shared_);
#pragma unroll
    for (int h = 0; h < H; ++h) {
      const int at = x + 64 * h;
      wanted_[h] = at < view.x1 && at + 2 > view.x0;
      const bool inside = at >= whole.x && at + 2 <= whole.x + whole.width;
      plain_[h] = rows && at >= view.x0 && at + 2 <= view.x1 && (fill || inside);
      fills_ = fills_ || (fill && wanted_[h] && !(within && inside));
    }
    to_ = view.dst + (std::int64_t(y_) * dst_pitch_ + std::int64_t(x) * C);
    keep(dst_pitch_);
    if (C == 4 && (view.own & ~view.filtered)) {
#pragma unroll
      for (int c = 0; c < C; ++c)
        if ((view.own & ~view.filtered) >> c & 1) copies_ |= 0xffu << 8 * c;
      from_ = view.src + (std::int64_t(y) * src_pitch_ + std::int64_t(x) * C);
      keep(copies_);
      keep(src_pitch_);
      fetch();
    }
  }
  __device__ __forceinline__ Way way() const {
    bool all = !fills_, none_else = !fills_;
#pragma unroll
    for (int h = 0; h < H; ++h) all = all && plain_[h], none_else = none_else && (plain_[h] || !wanted_[h]);
    return __all_sync(~0u, all) ? Way::inner : __all_sync(~0u, none_else) ? Way::side : Way::general;
  }
  template <Way way>
  __device__ __forceinline__ void store(Pair<C> (&pairs)[H]) {
    const bool now = unsigned(row_) < unsigned(count_);
    if (way == Way::general && fills_ && now) fill(pairs);
    if (C == 4 && copies_ && now) {
#pragma unroll
      for (int h = 0; h < H; ++h) {
        pairs[h].word[0] = (pairs[h].word[0] & ~copies_) | (copied_[h].x & copies_);
        pairs[h].word[(C - 1) / 2] = (pairs[h].word[(C - 1) / 2] & ~copies_) | (copied_[h].y & copies_);
      }
      if (row_ + 1 < count_) from_ += src_pitch_, fetch();
    }
#pragma unroll
    for (int h = 0; h < H; ++h) {
      const bool plain = way == Way::inner || plain_[h];
      if ((C == 2 || C == 4) && shared_) {
#pragma unroll
        for (int byte = 0; byte < 2 * C; ++byte)
          if (now && plain && (shared_ >> byte % C & 1)) (to_ + 64 * C * h)[byte] = pairs[h].word[byte / 4] >> byte % 4 * 8;
      } else if (now && plain) {
        pairs[h].store(to_ + 64 * C * h);
      }
      if (way == Way::general && now && !plain && wanted_[h])
        store_any_pair<C>(job_, x_ + 64 * h, y_, pairs[h].word[0], pairs[h].word[(C - 1) / 2]);
    }
    to_ += dst_pitch_;
    ++row_;
    if (way == Way::general) ++y_;
  }

 private:
  /// Loads the copied channels of the next row, long before they are stored.
  __device__ __forceinline__ void fetch() {
#pragma unroll
    for (int h = 0; h < H; ++h)
      if (plain_[h]) copied_[h] = __ldg(reinterpret_cast<const uint2*>(from_ + 64 * C * h));
  }

  /// Border::fill: replaces the pixels whose window leaves the frame.
  __device__ __forceinline__ void fill(Pair<C> (&pairs)[H]) const {
#pragma unroll
    for (int h = 0; h < H; ++h)
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        if (lies_in(job_.whole, x_ + 64 * h + j, y_)) continue;
        const std::uint64_t mask = ((std::uint64_t(1) << 8 * C) - 1) << 8 * C * j;
        const std::uint32_t masks[2] = {std::uint32_t(mask), std::uint32_t(mask >> 32)};
#pragma unroll
        for (int w = 0; w < (C + 1) / 2; ++w) pairs[h].word[w] = (pairs[h].word[w] & ~masks[w]) | (job_.border_words[w] & masks[w]);
      }
  }

  const MatrixJob& job_;
  const unsigned char* from_;
  unsigned char* to_;
  int x_, y_, row_, count_, src_pitch_, dst_pitch_;
  std::uint32_t copies_ = 0;  ///< mask of the bytes of a pixel that keep the input
  std::uint32_t shared_;      ///< channels to store one by one, because another set lies between them; 0: store all together
  uint2 copied_[H];
  bool wanted_[H], plain_[H];
  bool fills_ = false;  ///< whether some of its pixels take the border value
};

/// Turns sums into samples; its parameters stay in registers.
template <int C>
struct Scaling {
  float scale, before[C], after[C];
  int absolute;

  /// For C channels from `first` on.
  __device__ __forceinline__ Scaling(const MatrixParams& p, const MatrixJob& job, int first = 0)
      : scale(job.scale), absolute(job.absolute) {
#pragma unroll
    for (int c = 0; c < C; ++c) {
      before[c] = job.before[first + c];
      after[c] = job.after[first + c];
      keep(before[c]);
      keep(after[c]);
    }
    keep(scale);
    keep(absolute);
  }
  /// Sums 0 and 1 of channel c go to the first pair, sums 2 and 3 to the second pair.
  __device__ __forceinline__ void apply(int c, const float (&sums)[4], Pair<C>* pairs) const {
    float values[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) values[j] = fmaf(sums[j], scale, before[c]);
    if (absolute) {
#pragma unroll
      for (int j = 0; j < 4; ++j) values[j] = fabsf(values[j]) + after[c];
    }
#pragma unroll
    for (int j = 0; j < 4; ++j) pairs[j / 2].insert(j % 2, c, to_sample<std::uint8_t>(values[j], 255));
  }
};

}  // namespace
}  // namespace cudavision::convolve
