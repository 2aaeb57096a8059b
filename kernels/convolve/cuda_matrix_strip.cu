// SPDX-License-Identifier: LGPL-2.1-or-later
// Kernels of up to 7 × 7 weights on 8-bit samples: a block moves down a strip; weights and sums stay in registers.
//
//   grid: the sets of the format one after another; in a set, the first and the last column of blocks come first. These
//   fill in samples outside the frame, so they have fewer rows (strip_place in cuda_schedule.hpp)
//
//   |<-- 128 pixels -->|
//   +------------------+--------- … -+ -         a block: strip_warps warps side by side. In each step, for a group
//   | warp 0           | warp 1      | |         of rows:
//   | K − 1 rows of    |             | place.rows  1. wait for the rows, which are copied to shared memory in advance
//   | sums, registers  |             | |              (kernels/cuda/row_ring.cuh)
//   |                  |             | |           2. multiply each row by each of the K rows of weights
//   |                  |             | |              (cuda_matrix.cuh); add to K rows of sums; the oldest row is
//   |                  |             | |              complete: scale and round it
//   |                  |             | |           3. write the complete rows (cuda_units.cuh)
//   +------------------+--------- … -+ -
//
//   Lane 4·g + t of a warp has the results 2t and 2t + 1 of the segments (8 pixels) g and g + 8. The drawing in
//   cuda_matrix.cuh shows the product of a row of samples and a row of weights.
//
//   shared memory: ring of groups of source rows | complete rows of each warp | map of the sides      (StripLayout)
//
// There are two versions of the loop. Plain groups have no special cases: results are whole units of 16 bytes; all of
// one to three channels are computed, or three of four; there are no absolute values and no pixels to replace. Their
// loop has half the instructions. If there are four channels, it computes three, and Units::write adds the fourth one
// from the input.
//
// Where to change what:
//   another border         "Walks" in CONTRIBUTING.md; one whose pixels are not computed:
//                          edges_of() and replace_edges() in cuda_units.cuh
//   another sample type    cuda_matrix.cuh (halves_of), StripSums::step and StripSums::store; 16-bit samples run in
//                          cuda_small.cu and cuda_tile.cu
//   another block shape    cuda_tuning.hpp (strip_…), StripLayout and strip_place in cuda_schedule.hpp
//   which groups are plain find_plain_groups(), RowRing::plain, Units::plain
//   which kernels run here cuda_schedule.cpp (make_schedule); another side: tuning.small_reach,
//                          choose() below, MatrixStripParams
#include "kernels/convolve/cuda_matrix.cuh"
#include "kernels/convolve/cuda_units.cuh"
#include "kernels/cuda/overlap.hpp"
#include "kernels/cuda/row_ring.cuh"

namespace cudavision::convolve {
namespace {

/// The rows of a tile; see kernels/cuda/row_ring.cuh. Bytes of other channel sets are 0.
struct Bytes {
  using T = std::uint8_t;
  using Job = MatrixJob;
  static constexpr bool skips_edges = true, plain_sides = true;

  __device__ __forceinline__ static int source_byte(const MatrixJob& job, int byte) {
    const SetView& view = job.view;
    const int C = view.channels, mapped = cuda::source_sample(byte, C, view.width, view.border);
    // `byte` is at least −strip_lead; adding a multiple of 1 to 4 channels makes it positive.
    if (!(view.own >> (byte + strip_lead * 12) % C & 1)) return ~0;
    return mapped < 0 ? ~int(cuda::border_sample(view, byte)) : mapped;
  }
};

/// Four values as bytes, the lowest first: rounded half to even, saturated. Compiles to two instructions.
__device__ __forceinline__ std::uint32_t to_bytes(float a, float b, float c, float d) {
  const float values[4] = {a, b, c, d};
  int rounded[4];
  std::uint32_t bytes;
#pragma unroll
  for (int i = 0; i < 4; ++i) asm("cvt.rni.s32.f32 %0, %1;" : "=r"(rounded[i]) : "f"(values[i]));
  asm("cvt.pack.sat.u8.s32.b32 %0, %1, %2, 0;" : "=r"(bytes) : "r"(rounded[3]), "r"(rounded[2]));
  asm("cvt.pack.sat.u8.s32.b32 %0, %1, %2, %0;" : "+r"(bytes) : "r"(rounded[1]), "r"(rounded[0]));
  return bytes;
}

/// The weights and sums of a warp, in registers: C channels of a set, K × K weights. `kind`: see Matrix in
/// cuda_schedule.hpp.
template <int C, int K, Matrix kind>
struct StripSums {
  static constexpr int sets = kind == Matrix::gradient ? 2 : 1, parts = kind == Matrix::single ? 1 : 2;

  std::uint32_t weights[parts][K][2];
  float sums[sets][C][K][4];  ///< [k]: of the row that gets weights[k] · the next row of samples; k = 0 is unused
  float scale, before[C];
  bool absolute;
  int filtered;
  // If there are four channels, plain steps compute three.
  std::uint32_t pair, third;  ///< __byte_perm selectors of two pixels: the first two of these channels; the third one
  std::uint32_t merge;        ///< __byte_perm selector of three results and a pixel of the input; see Units

  /// `skips_first`: plain steps of four channels compute the last three, otherwise the first three.
  __device__ __forceinline__ StripSums(const MatrixStripParams& p, const MatrixJob& job, bool skips_first) : sums{} {
    // opaque_register() turns this into a load from memory. Constant memory would serve the lanes one at a time,
    // because each reads another parameter.
    const uint2* fragments = &p.fragments[0][0][threadIdx.x % 32];
    opaque_register(fragments);
#pragma unroll
    for (int part = 0; part < parts; ++part)
#pragma unroll
      for (int k = 0; k < K; ++k) {
        const uint2 fragment = fragments[(part * 7 + k) * 32];
        weights[part][k][0] = fragment.x;
        weights[part][k][1] = fragment.y;
      }
    filtered = cuda::warp_uniform(job.view.filtered);
    scale = cuda::warp_uniform(job.scale);
    absolute = job.absolute;
    pair = cuda::warp_uniform(skips_first ? 0x6521u : 0x5410u);
    third = cuda::warp_uniform(skips_first ? 0x0703u : 0x0602u);
    merge = cuda::warp_uniform(skips_first ? 0x2104u : 0x7210u);
#pragma unroll
    for (int c = 0; c < C; ++c) before[c] = cuda::warp_uniform(job.before[min(c + skips_first, C - 1)]);
  }

  /// Loads a row of samples. `from`: the lane's four pixels of segment g; the pixels of segment g + 8 are 64 pixels to
  /// the right.
  __device__ __forceinline__ static void load(const unsigned char* from, std::uint32_t (&words)[2][C]) {
#pragma unroll
    for (int h = 0; h < 2; ++h) load_shared<4 * C>(from + 64 * C * h, words[h]);
  }

  /// Adds a row of samples, and writes the row of results that it completes. `to`: the lane's first pair of results.
  /// Plain: all channels are filtered, or three adjacent channels of four, which become the first three of the results.
  /// There are no absolute values.
  template <bool Plain>
  __device__ __forceinline__ void step(const std::uint32_t (&words)[2][C], unsigned char* to) {
    constexpr int channels = Plain && C == 4 ? 3 : C;
    std::uint32_t samples[C][4];
#pragma unroll
    for (int h = 0; h < 2; ++h)
#pragma unroll
      for (int q = 0; q < 2; ++q) {
        if constexpr (Plain && C == 4) {
          const std::uint32_t two = __byte_perm(words[h][2 * q], words[h][2 * q + 1], pair);
          samples[0][2 * q + h] = two & 0x00ff00ffu;
          samples[1][2 * q + h] = __byte_perm(two, 0, 0x4341);
          samples[2][2 * q + h] = __byte_perm(words[h][2 * q], words[h][2 * q + 1], third) & 0x00ff00ffu;
        } else {
#pragma unroll
          for (int c = 0; c < C; ++c) samples[c][2 * q + h] = halves_of<C>(words[h], c, q);
        }
      }
    float values[C][4] = {};
#pragma unroll
    for (int c = 0; c < channels; ++c)
      if (Plain || C == 1 || filtered >> c & 1) multiply(c, samples[c], values[c]);
    if (!Plain && absolute) {
#pragma unroll
      for (int c = 0; c < channels; ++c)
#pragma unroll
        for (int j = 0; j < 4; ++j) values[c][j] = fabsf(values[c][j]);
    }
#pragma unroll
    for (int h = 0; h < 2; ++h) store<Plain>(values, 2 * h, to + 64 * C * h);
  }

  /// Adds the rows of a group, as step() adds one row. `from`: the lane's pixels of the first row, in shared memory.
  template <bool Plain, typename Layout>
  __device__ __forceinline__ void add_group(const unsigned char* from, unsigned char* to) {
    // Here the next row is loaded before a row is stored (the compiler does not reorder them). Other cases have too few
    // registers.
    constexpr bool early = C <= 2 || (Plain && K < 7);
    constexpr int rows = Layout::group;
    std::uint32_t words[early ? 2 : 1][2][C];
    if constexpr (early) load(from, words[0]);
#pragma unroll
    for (int r = 0; r < rows; ++r) {
      if constexpr (early) {
        if (r + 1 < rows) load(from + (r + 1) * Layout::pitch, words[(r + 1) % 2]);
      } else {
        load(from + r * Layout::pitch, words[0]);
      }
      step<Plain>(words[early ? r % 2 : 0], to + r * (128 * C));
    }
  }

 private:
  /// Adds a row of samples of channel c. `values`: results of the row that it completes.
  __device__ __forceinline__ void multiply(int c, const std::uint32_t (&samples)[4], float (&values)[4]) {
    float complete[sets][4];
#pragma unroll
    for (int s = 0; s < sets; ++s)
#pragma unroll
      for (int k = K - 1; k >= 0; --k) {
        float none[4] = {};
        float(&to_sums)[4] = k == K - 1 ? complete[s] : sums[s][c][(k + 1) % K];
        float(&old)[4] = k == 0 ? none : sums[s][c][k];
        if constexpr (kind == Matrix::pair) {
          float small[4];
          mma(small, samples, weights[1][k], old);
          mma(to_sums, samples, weights[0][k], small);
        } else {
          mma(to_sums, samples, weights[s][k], old);
        }
      }
    if constexpr (kind == Matrix::gradient) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const float u = complete[0][j], v = complete[1][j];
        // Exact after rounding; see ConvolveGradient in tests/kernels/convolve_test.cpp, and cuda_small.cu.
        asm("sqrt.approx.f32 %0, %1;" : "=f"(complete[0][j]) : "f"(fmaf(u, u, v * v)));
      }
    }
#pragma unroll
    for (int j = 0; j < 4; ++j) values[j] = fmaf(complete[0][j], scale, before[c]);
  }

  /// Stores the pixels of values[…][j] and values[…][j + 1]. Plain: the fourth value is not used.
  template <bool Plain>
  __device__ __forceinline__ static void store(const float (&values)[C][4], int j, unsigned char* to) {
    const auto value = [&](int i) { return i < 2 * C ? values[Plain && i % C == 3 ? 2 : i % C][j + i / C] : 0; };
    Pair<C> pair;
#pragma unroll
    for (int w = 0; w < (C + 1) / 2; ++w)
      pair.word[w] = to_bytes(value(4 * w), value(4 * w + 1), value(4 * w + 2), value(4 * w + 3));
    pair.store(to);
  }
};

/// The plain groups of a block (see the top of this file): from `begin` to `end`.
struct PlainGroups {
  int begin, end;
  bool skips_first;  ///< whether they compute the last three of four channels
};

/// Finds the plain groups. All threads of the block call it. `active`: whether the warp has columns in the rectangle.
template <int C, typename Ring, typename Units>
__device__ __forceinline__ PlainGroups find_plain_groups(const MatrixJob& job, const Ring& ring, const Units& units,
                                                         bool active, int groups) {
  constexpr int all = (1 << C) - 1;
  const int filtered = job.view.filtered;
  const bool all_filtered = C == 4 ? filtered == 7 || filtered == 14 : (filtered & all) == all;
  const bool is_plain = __syncthreads_and(ring.plain() && (!active || units.plain()) && all_filtered && !job.absolute);
  const int begin = units.whole_begin;
  int end = is_plain ? min(units.whole_end, groups) : 0;
  if (begin >= end) end = 0;
  bool skips_first = C == 4 && end > 0 && filtered == 14;
  // In plain groups that skip the first channel, the sums of channel c are at c − 1; in other groups, at c. A block
  // must not have both.
  if (skips_first && (begin > 0 || end < groups)) skips_first = false, end = 0;
  return {begin, end, skips_first};
}

/// Computes the strip of a block: finds its position, and moves down. `has_plain`: whether there may be plain groups.
template <int C, int K, Matrix kind, bool has_plain = true>
__device__ __forceinline__ void convolve_strip(const MatrixStripParams& p, const MatrixJob& job,
                                               unsigned char* memory) {
  cuda::let_next_start();
  using Layout = StripLayout<C>;
  constexpr int slots = Layout::slots, rows = Layout::group;
  const SetView& view = job.view;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, t = lane % 4;
  const StripPlace place = strip_place(blockIdx.x - job.first_block, job.cut);
  const int x = (view.x0 & -16) + place.x * strip_width, y = view.y0 + place.y;
  const int count = min(place.rows, view.y1 - y), groups = (count + K - 1 + rows - 1) / rows;
  const int own_x = x + 128 * warp;

  constexpr int strips = strip_width * C, margin = 4 * C;  // bytes of a row of the strip; windows extend no further
  const int begin = x * C - strip_lead;
  const cuda::RowColumns columns(job, begin, strip_lead - margin,
                                 min(strip_lead + strips + margin, view.x1 * C + margin - begin));
  const cuda::RowRing<Bytes, tuning.strip_warps, rows, strips, Layout::pitch> ring(
      job, columns, strip_lead, K / 2, y - K / 2, y - K / 2 + count + K - 1, memory, memory + Layout::map);
  unsigned char* const stage = memory + Layout::stage + warp * (rows * 128 * C);
  const Units<Layout, C, K> units(job, memory + strip_lead + warp * (128 * C), stage, own_x, y, count);
  const unsigned char* const from = memory + strip_lead + (128 * warp + 8 * g + 4 * t - 4) * C;
  unsigned char* const to = stage + (8 * g + 2 * t) * C;
  const bool active = own_x < view.x1, has_sides = ring.has_sides();

  PlainGroups plain{};
  if constexpr (has_plain) plain = find_plain_groups<C>(job, ring, units, active, groups);
  if (has_sides) ring.make_map();
  StripSums<C, K, kind> strip(p, job, plain.skips_first);
  cuda::wait_for_previous();
#pragma unroll
  for (int i = 0; i < Layout::ahead; ++i) {
    if (i < groups) ring.template copy<false>(i, i);
    cuda::commit();
  }

  int group = 0, slot = 0, before = 0, next = Layout::ahead % slots;  // before: the slot of the previous group
  const auto march = [&](auto is_plain, int end) {
    constexpr bool Plain = decltype(is_plain)::value;
#pragma unroll 1
    for (; group < end; ++group) {
      cuda::wait<Layout::ahead - 1>();
      __syncthreads();
      if (has_sides) {
        ring.fill(group, slot);
        __syncthreads();
      }
      if (group + Layout::ahead < groups) ring.template copy<Plain>(group + Layout::ahead, next);
      cuda::commit();
      __syncwarp();
      if (active) {
        strip.template add_group<Plain, Layout>(from + slot * (rows * Layout::pitch), to);
        __syncwarp();
        units.template write<Plain>(group, slot, before, strip.merge);
        __syncwarp();
      }
      before = slot;
      slot = slot + 1 < slots ? slot + 1 : 0;
      next = next + 1 < slots ? next + 1 : 0;
    }
  };
  while (group < groups) {
    if (has_plain && group >= plain.begin && group < plain.end)
      march(std::bool_constant<has_plain>{}, plain.end);
    else
      march(std::false_type{}, group < plain.end ? plain.begin : groups);
  }
}

/// Sets have C0 or C1 channels.
template <int C0, int C1, int K, Matrix kind>
__global__ void __launch_bounds__(32 * tuning.strip_warps, strip_blocks(C1, K))
    convolve_strips(const __grid_constant__ MatrixStripParams p) {
  extern __shared__ uint4 shared_memory[];
  unsigned char* const memory = reinterpret_cast<unsigned char*>(shared_memory);
  const int set = (blockIdx.x >= p.jobs[1].first_block) + (blockIdx.x >= p.jobs[2].first_block);
  const MatrixJob& job = p.jobs[set];
  // Luma of packed 4:2:2 has one of two channels, so it has no plain groups.
  if (C0 != C1 && job.view.channels == C0)
    convolve_strip<C0, K, kind, C0 != 2>(p, job, memory);
  else
    convolve_strip<C1, K, kind>(p, job, memory);
}

template <int C0, int C1, int K, Matrix kind>
const void* kernel() {
  return reinterpret_cast<const void*>(convolve_strips<C0, C1, K, kind>);
}
/// A kernel of 3 × 3; the side is 5 if the anchor is not in the middle.
template <int C0, int C1>
const void* choose_gradient(int side) {
  return side == 3 ? kernel<C0, C1, 3, Matrix::gradient>() : kernel<C0, C1, 5, Matrix::gradient>();
}
template <int C0, int C1>
const void* choose(int side, Matrix kind) {
  if (kind == Matrix::gradient) return choose_gradient<C0, C1>(side);
  const bool pair = kind == Matrix::pair;
  if (side == 3) return pair ? kernel<C0, C1, 3, Matrix::pair>() : kernel<C0, C1, 3, Matrix::single>();
  if (side == 5) return pair ? kernel<C0, C1, 5, Matrix::pair>() : kernel<C0, C1, 5, Matrix::single>();
  return pair ? kernel<C0, C1, 7, Matrix::pair>() : kernel<C0, C1, 7, Matrix::single>();
}

}  // namespace

const void* matrix_strip_kernel(const FormatInfo& format, int side, Matrix kind) {
  // Sets of one channel use the kernels of NV12, and sets of four the kernels of packed 4:2:2, which need as many
  // registers. But gradients of four channels have a separate kernel: with the shared kernel they took 1.22 times as
  // long (H200, RGBA).
  const int channels = format.sets[0].channels;
  if (kind == Matrix::gradient && channels == 4) return choose_gradient<4, 4>(side);
  return channels == 1 ? choose<1, 2>(side, kind) : channels == 3 ? choose<3, 3>(side, kind) : choose<2, 4>(side, kind);
}

}  // namespace cudavision::convolve
