// SPDX-License-Identifier: LGPL-2.1-or-later
// Counting any samples, by atomics in shared memory.
//
//   rectangle: rows of units; a warp counts a unit at a time         block: `copies` of the counters of all tables of the set,
//   +--------+--------+--------+                                     or of some entries if it counts in several passes
//   | warp 0 | warp 1 | warp 2 |                                     +-------------+-------------+
//   +--------+--------+--------+                                     | copy 0      | copy 1      | …   warp w counts in copy
//   | warp 3 | …                                                     +-------------+-------------+     w % copies
//
//   unit: 1, 2 or 4 × 128 pixels. Lane l loads the quad of pixels 4l … 4l + 3 of each 128.
#include "kernels/histogram/cuda_gather.cuh"
#include "kernels/histogram/cuda_kernels.hpp"
#include "kernels/histogram/cuda_luma.cuh"
#include "kernels/histogram/cuda_walk.hpp"

namespace cudavision::histogram {
namespace {

/// A counter in shared memory, by its 32-bit address: through a pointer this takes two more instructions.
__device__ __forceinline__ void increment_shared(unsigned address) { asm volatile("red.shared.add.u32 [%0], 1;" ::"r"(address)); }

/// The part of a job that one block counts. C: channels of the set.
template <typename T, int C, bool ThreePlanes>
__device__ __forceinline__ void count_job(const PixelParams& params, const PixelJob& job, std::uint32_t* shared) {
  // Quads that a thread loads at once: about 16 bytes.
  constexpr int quads = C * sizeof(T) >= 4 ? 1 : 4 / (C * int(sizeof(T)));
  const int threads = blockDim.x, thread = threadIdx.x, warp = thread / 32, lane = thread % 32, warps = threads / 32;
  const int worker = (int(blockIdx.x) - job.share.first_block) / job.tables.passes;
  const int pass = (int(blockIdx.x) - job.share.first_block) - worker * job.tables.passes;
  const unsigned first_entry = unsigned(pass) * unsigned(job.tables.pass_entries);
  const unsigned entries = min(unsigned(job.tables.pass_entries), unsigned(job.tables.entries) - first_entry);
  const int copies = params.copies;
  for (unsigned i = thread; i < entries * copies; i += threads) shared[i] = 0;
  __syncthreads();

  // The inner loop would read these from constant memory at every use.
  const unsigned counters = unsigned(__cvta_generic_to_shared(shared + warp % copies * entries));
  const bool all_entries = job.tables.passes == 1;
  int base[C];
#pragma unroll
  for (int c = 0; c < C; ++c) base[c] = job.tables.base[c];
  const int luma_base = C >= 3 ? job.tables.luma_base : -1;
  const int position[3] = {job.tables.position[0], job.tables.position[1], job.tables.position[2]};
  const LumaWeights weights = params.weights;
  const std::uint32_t bins = params.bins, max_value = job.views[0].max_value;
  const int shift = params.bin_shift;
  // The entry of a sample; bytes are always counted by value.
  const auto entry_of = [&](std::uint32_t sample) { return sizeof(T) == 1 ? sample : sample * bins >> shift; };
  // Counts those of four samples that the mask selects.
  const auto add = [&](int table, const std::uint32_t(&samples)[4], unsigned mask) {
    if (all_entries && mask == 15) {
      const unsigned at = counters + table * 4;
#pragma unroll
      for (int j = 0; j < 4; ++j) increment_shared(at + entry_of(samples[j]) * 4);
      return;
    }
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const unsigned entry = unsigned(table) + entry_of(samples[j]) - first_entry;
      if (entry < entries && (mask >> j & 1)) increment_shared(counters + entry * 4);
    }
  };
  for (int r = 0; r < job.share.rect_count; ++r) {
    const Rect rect = job.share.rects[r];
    const int begin = rect.x & ~3, end = rect.x + rect.width;
    const auto count_quad = [&](const cuda::Quad<T, C>& quad, int x) {
      unsigned mask = 15;
      if (x < rect.x) mask &= 15u << (rect.x - x);
      if (x + 4 > end) mask &= 15u >> (x + 4 - end);
#pragma unroll
      for (int c = 0; c < C; ++c) {
        if (base[c] < 0) continue;
        const std::uint32_t samples[4] = {quad.sample(c, 0), quad.sample(c, 1), quad.sample(c, 2), quad.sample(c, 3)};
        add(base[c], samples, mask);
      }
      if (C >= 3 && luma_base >= 0) {
        std::uint32_t samples[4];
        luma_of_pixels<T, C, ThreePlanes>(quad, position, weights, max_value, samples);
        add(luma_base, samples, mask);
      }
    };
    constexpr int unit = 32 * 4 * quads;
    Walk walk(unsigned(worker * warps + warp), unsigned(job.share.blocks * warps), unsigned(end - begin + unit - 1) / unit);
    // Samples are counted while the next ones are loaded.
    cuda::Quad<T, C> held[quads];
    int held_left = end;
    for (bool any = true; any;) {
      cuda::Quad<T, C> fresh[quads];
      const int left = begin + walk.x * unit + lane * 4;
      any = walk.y < rect.height;
      if (any) {
#pragma unroll
        for (int q = 0; q < quads; ++q)
          if (left + q * 128 < end) fresh[q] = load_pixels<T, C, ThreePlanes>(job.views, left + q * 128, rect.y + walk.y);
#pragma unroll
        for (int q = 0; q < quads; ++q)
#pragma unroll
          for (int c = 0; c < C; ++c)
#pragma unroll
            for (int k = 0; k < int(sizeof(T)); ++k)
              asm volatile("" : "+r"(fresh[q].word[c][k]));  // keeps the loads before the counting
        walk.next();
      }
#pragma unroll
      for (int q = 0; q < quads; ++q)
        if (held_left + q * 128 < end) count_quad(held[q], held_left + q * 128);
#pragma unroll
      for (int q = 0; q < quads; ++q) held[q] = fresh[q];
      held_left = left;
    }
  }
  __syncthreads();
  std::uint32_t* const sums = params.gather.sums + job.tables.first_entry + first_entry;
  for (unsigned i = thread; i < entries; i += threads) {
    std::uint32_t sum = 0;
    for (int copy = 0; copy < copies; ++copy) sum += shared[copy * entries + i];
    if (sum > 0) atomicAdd(sums + i, sum);
  }
}

/// First, Rest: channels of the first set and of the other sets.
template <typename T, int First, int Rest, bool ThreePlanes>
__global__ void __launch_bounds__(tuning.pixel_threads, tuning.pixel_blocks)
    count_pixels(const __grid_constant__ PixelParams params) {
  extern __shared__ uint4 shared[];
  std::uint32_t* const counters = reinterpret_cast<std::uint32_t*>(shared);
  const int block = int(blockIdx.x);
  if (First == Rest || block < params.jobs[1].share.first_block)
    count_job<T, First, ThreePlanes>(
        params,
        params.jobs[First == Rest ? (block >= params.jobs[1].share.first_block) + (block >= params.jobs[2].share.first_block) : 0],
        counters);
  else
    count_job<T, Rest, ThreePlanes>(params, params.jobs[1], counters);
  block_done(params.gather);
}

}  // namespace

const void* pixel_kernel(const FormatInfo& format, bool three_planes) {
  if (three_planes) return reinterpret_cast<const void*>(&count_pixels<std::uint8_t, 3, 3, true>);
  return cuda::with_layout(format, [](auto sample, auto first, auto rest) {
    return reinterpret_cast<const void*>(&count_pixels<decltype(sample), decltype(first)::value, decltype(rest)::value, false>);
  });
}

}  // namespace cudavision::histogram
