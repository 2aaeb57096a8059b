// SPDX-License-Identifier: LGPL-2.1-or-later
// Column sums for cuda_lines_kernel.cuh: the pixels of a chunk, their sums in registers, and running sums in memory.
#pragma once

#include "kernels/core/luma.hpp"
#include "kernels/local/cuda_lines.cuh"

namespace cudavision::local {

/// The compile-time parameters of a kernel. `mask`: LineShape::mask().
template <typename Sample, int channels, unsigned mask_, Operation operation_, bool planes_>
struct LineKernelShape {
  using T = Sample;
  static constexpr int C = channels, P = LineShape::line_chunk(sizeof(T), C);
  static constexpr unsigned mask = mask_;
  static constexpr Operation operation = operation_;
  static constexpr bool planes = planes_;
  /// Whether the channels of a pixel may be rotated: see LineJob::rotated.
  static constexpr bool rotates = C % 2 == 0 && mask != (1u << C) - 1;
  /// The lines of a channel; threshold: the lines of all channels.
  static constexpr int group = operation == Operation::deviation ? 2 : 1;
  static constexpr int count_lines() {
    int count = 0;
    for (int c = 0; c < C; ++c) count += mask >> c & 1;
    return operation == Operation::threshold ? 1 : count * group;
  }
  static constexpr int lines = count_lines();
  /// Calls f(line, channel, line of the channel).
  template <typename F>
  __device__ static __forceinline__ void each_line(F f) {
    int line = 0;
#pragma unroll
    for (int c = 0; c < C; ++c) {
      if (!(mask >> c & 1)) continue;
#pragma unroll
      for (int k = 0; k < group; ++k)
        if (line < lines) f(line, c, k), ++line;
    }
  }
  static constexpr int most_threads = lines * P > LineShape::most_light_columns ? 512 : 1024;
};

/// The largest power of two, up to 16, that divides a number of bytes.
constexpr int line_alignment(int bytes) { return (bytes & -bytes) < 16 ? bytes & -bytes : 16; }

/// Rotates the channels of pixels of four 16-bit samples by one: down (channel 1 becomes channel 0) or up.
template <bool down, int words>
__device__ __forceinline__ void rotate_channels(std::uint32_t (&raw)[words]) {
#pragma unroll
  for (int i = 0; i + 1 < words; i += 2) {
    const std::uint32_t a = raw[i], b = raw[i + 1];
    raw[i] = down ? __funnelshift_r(a, b, 16) : __funnelshift_l(b, a, 16);
    raw[i + 1] = down ? __funnelshift_r(b, a, 16) : __funnelshift_l(a, b, 16);
  }
}

/// Adjacent pixels of a row in the layout of memory, but with samples instead of stored words. Channels are rotated
/// (LineJob::rotated): 16-bit samples in finish(), bytes when a sample is read.
template <typename S, int pixels>
struct Pixels {
  using T = typename S::T;
  static constexpr int sources = S::planes ? 3 : 1, bytes = pixels * S::C * int(sizeof(T));
  std::uint32_t raw[sources][bytes / 4];

  /// Loads pixels x … of a row inside the frame; pixels to the right of the frame become 0. `words`: all are inside and
  /// aligned. Other loads can begin before finish() is called.
  template <bool words>
  __device__ __forceinline__ void load(const LineJob& job, int x, int row) {
#pragma unroll
    for (int s = 0; s < sources; ++s) {
      const cuda::SetView& view = job.views[s];
      const unsigned char* const from = view.src + row * view.src_pitch + std::ptrdiff_t(x) * (S::C * int(sizeof(T)));
      if constexpr (words) {
        cuda::load_words<bytes / 4, line_alignment(bytes)>(from, raw[s]);
      } else {
        const int valid = (view.width - x) * S::C * int(sizeof(T));
#pragma unroll
        for (int i = 0; i < bytes; ++i) {
          const std::uint32_t byte = i < valid ? from[i] : 0;
          raw[s][i / 4] = i % 4 ? raw[s][i / 4] + (byte << i % 4 * 8) : byte;
        }
      }
    }
  }
  /// Converts stored words to samples. All become zero if `counts` is false.
  __device__ __forceinline__ void finish(const LineJob& job, bool counts) {
#pragma unroll
    for (int s = 0; s < sources; ++s) {
#pragma unroll
      for (int i = 0; i < bytes / 4; ++i) raw[s][i] = counts ? raw[s][i] : 0;
      if constexpr (sizeof(T) == 2) {
        cuda::to_samples(raw[s], job.views[0].shift, job.views[0].max_value);
        if (S::rotates && job.rotated) rotate_channels<true>(raw[s]);
      }
    }
  }

  __device__ __forceinline__ std::uint32_t sample(const LineJob& job, int source, int p, int c) const {
    const int byte = (p * S::C + c) * int(sizeof(T));
    if constexpr (sizeof(T) == 1)
      return __byte_perm(raw[source][byte / 4], 0, S::rotates ? job.selectors[byte % 4] : 0x4440 + byte % 4);
    return byte % 4 ? raw[source][byte / 4] >> 16 : raw[source][byte / 4] & 0xffff;
  }
  __device__ __forceinline__ std::uint32_t luma(const LineJob& job, int p) const {
    if constexpr (!S::planes && S::C < 3) {
      return sample(job, 0, p, 0);
    } else {
      const auto one = [&](int i) {
        return int(S::planes ? sample(job, i % sources, p, 0) : sample(job, 0, p, i % S::C));
      };
      const int a = one(0), b = one(2);
      return luma_of(job.blue_first ? b : a, one(1), job.blue_first ? a : b, luma_weights(LumaMatrix::bt601),
                     job.views[0].max_value);
    }
  }
  /// The value of pixel p that is summed in line k of channel c: at most 16 bits.
  __device__ __forceinline__ std::uint32_t value(const LineJob& job, int c, int k, int p) const {
    if constexpr (S::operation == Operation::threshold) {
      return luma(job, p);
    } else {
      const std::uint32_t value = sample(job, 0, p, c);
      return k == 0 ? value : value * value;
    }
  }
};

/// The column sums of a chunk.
template <typename S>
struct LineColumns {
  static constexpr int L = S::lines, P = S::P;
  using Chunk = Pixels<S, P>;
  std::uint32_t sums[L][P] = {};

  /// Adds a chunk. `sign`: 1, or −1 to subtract it.
  __device__ __forceinline__ void add(const LineJob& job, const Chunk& chunk, int sign) {
    S::each_line([&](int l, int c, int k) {
#pragma unroll
      for (int p = 0; p < P; ++p) sums[l][p] += sign * chunk.value(job, c, k, p);
    });
  }
  __device__ __forceinline__ void move(const LineJob& job, const Chunk& entering, const Chunk& leaving) {
    S::each_line([&](int l, int c, int k) {
#pragma unroll
      for (int p = 0; p < P; ++p) sums[l][p] += entering.value(job, c, k, p) - leaving.value(job, c, k, p);
    });
  }
  /// Adds or subtracts the rows [from, to). Loads several rows before it adds the first one.
  template <bool words, int together>
  __device__ __forceinline__ void add_rows(const LineJob& job, int x, int from, int to, int sign) {
#pragma unroll 1
    for (; from < to; from += together) {
      Chunk rows[together];
#pragma unroll
      for (int i = 0; i < together; ++i) rows[i].template load<words>(job, x, min(from + i, to - 1));
#pragma unroll
      for (int i = 0; i < together; ++i) {
        rows[i].finish(job, from + i < to);
        add(job, rows[i], sign);
      }
    }
  }
  /// Adds or subtracts stored sums. `pitch`: entries of a line.
  __device__ __forceinline__ void add_stored(const std::uint32_t* from, std::ptrdiff_t pitch, int sign) {
#pragma unroll
    for (int l = 0; l < L; ++l)
#pragma unroll
      for (int q = 0; q < P / 4; ++q) {
        const uint4 v = __ldg(reinterpret_cast<const uint4*>(from + l * pitch) + q);
        const std::uint32_t four[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
        for (int k = 0; k < 4; ++k) sums[l][4 * q + k] += sign * four[k];
      }
  }
  __device__ __forceinline__ uint4 quad(int line, int q) const {
    return make_uint4(sums[line][4 * q], sums[line][4 * q + 1], sums[line][4 * q + 2], sums[line][4 * q + 3]);
  }
};

/// Whether `pixels` pixels beginning at x may be loaded at once.
__device__ __forceinline__ bool loads_words(const LineJob& job, int x, int pixels) {
  return job.words && x + pixels <= job.views[0].width;
}

/// Stores running sums. Block (x, y): `line_stored_threads` chunks of band y.
template <typename S>
__global__ void __launch_bounds__(line_stored_threads) running_sums(const __grid_constant__ LineJob job) {
  const LineSchedule& s = job.schedule;
  const int chunk = blockIdx.x * line_stored_threads + threadIdx.x;
  if (chunk >= s.stored_chunks) return;
  const std::ptrdiff_t pitch = std::ptrdiff_t(s.stored_chunks) * S::P;
  const int x = s.stored_first + chunk * S::P, end = min(int(blockIdx.y + 1) * band_entries, s.stored_entries);
  const bool words = loads_words(job, x, S::P);
  LineColumns<S> columns;
#pragma unroll 1
  for (int entry = blockIdx.y * band_entries; entry < end; ++entry) {
    const int from = s.stored_y + entry * stored_rows, to = min(from + stored_rows, job.views[0].height);
    if (words)
      columns.template add_rows<true, 8>(job, x, from, to, 1);
    else
      columns.template add_rows<false, 1>(job, x, from, to, 1);
#pragma unroll
    for (int l = 0; l < S::lines; ++l)
#pragma unroll
      for (int q = 0; q < S::P / 4; ++q)
        reinterpret_cast<uint4*>(job.stored + (std::ptrdiff_t(entry) * S::lines + l) * pitch + chunk * S::P)[q] =
            columns.quad(l, q);
  }
}

}  // namespace cudavision::local
