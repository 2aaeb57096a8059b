// SPDX-License-Identifier: LGPL-2.1-or-later
// Counts samples with atomics in shared memory, with one block per multiprocessor.
//
//   rectangle: chunks, one per thread at a time (cuda_chunks.cuh)
//
//   counters by lane, if they fit: neither equal samples nor      one counter for an entry, for all lanes; if these
//   bank conflicts slow down the block                           do not fit, each block counts some of the entries
//   entry 0   | lane 0 | lane 1 | … | lane 31 |  128 bytes,       | entry 0 | entry 1 | …
//   entry 1   | lane 0 | …                       one bank each
//
// The counters of a block include all tables of a channel set. In both cases, a sample's counter is at entry ·
// entry_bytes + first_counter.
#include "kernels/cuda/overlap.hpp"
#include "kernels/histogram/cuda_chunks.cuh"
#include "kernels/histogram/cuda_gather.cuh"
#include "kernels/histogram/cuda_luma.cuh"

namespace cudavision::histogram {
namespace {

/// Increments a counter in shared memory by its 32-bit address. A pointer would cost two more instructions.
__device__ __forceinline__ void increment_shared(unsigned address) {
  asm volatile("red.shared.add.u32 [%0], 1;" ::"r"(address));
}

/// The sum over the counters of all lanes. The lanes of a warp begin at different words, to read different banks.
__device__ __forceinline__ std::uint32_t sum_of_lanes(const uint4* row) {
  std::uint32_t sum = 0;
#pragma unroll
  for (int k = 0; k < 8; ++k) {
    const uint4 words = row[(k + threadIdx.x) % 8];
    sum += words.x + words.y + words.z + words.w;
  }
  return sum;
}

/// Loads the quad at pixel x of row y, of a set or of three planes.
template <typename T, int C>
__device__ __forceinline__ void load_side(const cuda::SetView* views, int x, int y, Chunk<T, C, 1>& quad) {
  quad.set_quad(0, cuda::load_quad<T, C>(views[0], x, y));
}
template <typename T>
__device__ __forceinline__ void load_side(const cuda::SetView* views, int x, int y, PlaneChunks<T, 1>& quad) {
#pragma unroll
  for (int c = 0; c < 3; ++c) quad.plane[c].set_quad(0, cuda::load_quad<T, 1>(views[c], x, y));
}

/// Loads the chunk at pixel x of row y, of a set or of three planes. `rows`: rows of the set, or of the first plane.
template <typename T, int C>
__device__ __forceinline__ void load_held(const PixelJob&, const Rows& rows, int x, int y, Chunk<T, C>& held) {
  load_chunk(rows, x, y, held);
}
template <typename T>
__device__ __forceinline__ void load_held(const PixelJob& job, const Rows&, int x, int y, PlaneChunks<T>& held) {
#pragma unroll
  for (int c = 0; c < 3; ++c) load_chunk(Rows(job.views[c], job.access), x, y, held.plane[c]);
}

/// The counters of a block, and how samples become entries. C: channels of the set.
template <typename T, int C>
struct Counters {
  unsigned entries, entry_bytes;               ///< number of entries that the block counts, and bytes of an entry
  unsigned base[C + 1], first_counter[C + 1];  ///< of the table of channel c; [C]: of luma computed from RGB
  unsigned counted = 0;                        ///< bit c: channel c; bit C: luma computed from RGB
  int position[3];
  LumaWeights weights;
  std::uint32_t bins;
  int shift;

  /// Keeps these values in registers: otherwise the inner loop would read them from constant memory at every use.
  /// `first_entry`: the first entry of the block.
  __device__ __forceinline__ Counters(const PixelParams& params, const PixelTables& tables, unsigned first_entry,
                                      unsigned number, const uint4* shared)
      : entries(number), entry_bytes(tables.by_lane ? lane_entry_bytes : 4) {
    const unsigned counters = unsigned(__cvta_generic_to_shared(shared)) + (tables.by_lane ? threadIdx.x % 32 * 4 : 0);
#pragma unroll
    for (int c = 0; c <= C; ++c) {
      const int of_table = c < C ? tables.base[c] : tables.luma_base;
      counted |= unsigned(of_table >= 0) << c;
      base[c] = unsigned(of_table) - first_entry;
      first_counter[c] = counters + base[c] * entry_bytes;
    }
    counted = cuda::warp_uniform(counted);
#pragma unroll
    for (int c = 0; c < 3; ++c) position[c] = cuda::warp_uniform(tables.position[c]);
    weights = params.weights;
    bins = params.bins;
    shift = params.bin_shift;
  }

  /// Counts a sample of channel c, or luma (c = C). `all`: whether the block counts all entries.
  template <typename All>
  __device__ __forceinline__ void add(int c, std::uint32_t sample, All all) const {
    // Bytes are always counted by value.
    const std::uint32_t entry = sizeof(T) == 1 ? sample : sample * bins >> shift;
    if (all || base[c] + entry < entries) increment_shared(entry * entry_bytes + first_counter[c]);
  }

  /// Counts the pixels of a chunk that `mask` selects.
  template <typename Pixels, typename All>
  __device__ __forceinline__ void count(const Pixels& chunk, unsigned mask, All all) const {
    constexpr unsigned channels = (1u << C) - 1;
#pragma unroll
    for (int c = 0; c < C && (C < 3 || counted & channels); ++c) {
      if (!(counted >> c & 1)) continue;
#pragma unroll
      for (int pixel = 0; pixel < chunk.pixels; ++pixel)
        if (mask >> pixel & 1) add(c, chunk.sample(pixel, c), all);
    }
    if constexpr (C >= 3) {
      if (!(counted >> C & 1)) return;
#pragma unroll
      for (int pixel = 0; pixel < chunk.pixels; ++pixel)
        if (mask >> pixel & 1) add(C, luma_of_pixel(chunk, pixel, position, weights), all);
    }
  }
};

/// Counts the part of a job that belongs to one block. C: channels of the set.
template <typename T, int C, bool ThreePlanes>
__device__ __forceinline__ void count_job(const PixelParams& params, const PixelJob& job, uint4* shared) {
  using Held = std::conditional_t<ThreePlanes, PlaneChunks<T>, Chunk<T, C>>;
  using Side = std::conditional_t<ThreePlanes, PlaneChunks<T, 1>, Chunk<T, C, 1>>;
  const int threads = blockDim.x, thread = threadIdx.x;
  const PixelTables& tables = job.tables;
  const bool all_entries = cuda::warp_uniform(tables.passes) == 1;
  const int of_job = int(blockIdx.x) - job.share.first_block, worker = all_entries ? of_job : of_job / tables.passes;
  const int pass = of_job - worker * tables.passes;
  const unsigned first_entry = unsigned(pass) * unsigned(tables.pass_entries);
  const unsigned entries = min(unsigned(tables.pass_entries), unsigned(tables.entries) - first_entry);
  const Counters<T, C> counters(params, tables, first_entry, entries, shared);
  bool cleared = false;
  const auto clear = [&] {
    if (cleared) return;
    for (unsigned i = thread; i < (entries * counters.entry_bytes + 15) / 16; i += threads)
      shared[i] = make_uint4(0, 0, 0, 0);
    __syncthreads();
    cleared = true;
  };
  const cuda::SetView& view = job.views[0];
  Rows rows(view, job.access);
  rows.hold_in_registers();
  for (int r = 0; r < job.share.rect_count; ++r) {
    const Rect rect = job.share.rects[r];
    const auto load = [&](int x, int y, Held& held) { load_held(job, rows, x, y, held); };
    const auto work = [&](Held& held, int, int) {
      held.to_samples(view);
      if (all_entries)
        counters.count(held, ~0u, std::true_type());
      else
        counters.count(held, ~0u, std::false_type());
    };
    const auto side = [&](int x, int y) {
      Side quad;
      load_side(job.views, x, y, quad);
      counters.count(quad, side_mask(rect, x), std::false_type());
    };
    for_chunks<Held>(rect, unsigned(worker * threads + thread), unsigned(job.share.blocks * threads), job.access >= 4,
                     load, clear, work, side);
  }
  clear();  // for a launch without rectangles
  __syncthreads();
  std::uint32_t* const sums = sums_of_block(params.gather) + tables.first_entry + first_entry;
  for (unsigned i = thread; i < entries; i += threads) {
    const std::uint32_t sum = tables.by_lane ? sum_of_lanes(shared + i * (lane_entry_bytes / 16))
                                             : reinterpret_cast<const std::uint32_t*>(shared)[i];
    if (sum > 0) atomicAdd(sums + i, sum);
  }
}

/// First, Rest: numbers of channels of the first set and of the other sets.
template <typename T, int First, int Rest, bool ThreePlanes>
__global__ void __launch_bounds__(tuning.pixel_threads, 1) count_pixels(const __grid_constant__ PixelParams params) {
  extern __shared__ uint4 shared[];
  cuda::let_next_start();
  const int block = int(blockIdx.x);
  if (First == Rest || block < params.jobs[1].share.first_block)
    count_job<T, First, ThreePlanes>(params,
                                     params.jobs[First == Rest ? (block >= params.jobs[1].share.first_block) +
                                                                     (block >= params.jobs[2].share.first_block)
                                                               : 0],
                                     shared);
  else
    count_job<T, Rest, ThreePlanes>(params, params.jobs[1], shared);
  block_done(params.gather);
}

}  // namespace

const void* pixel_kernel(const FormatInfo& format, bool three_planes) {
  if (three_planes)
    return format.sample_bytes() == 1 ? reinterpret_cast<const void*>(&count_pixels<std::uint8_t, 3, 3, true>)
                                      : reinterpret_cast<const void*>(&count_pixels<std::uint16_t, 3, 3, true>);
  return cuda::with_layout(format, [](auto sample, auto first, auto rest) {
    return reinterpret_cast<const void*>(
        &count_pixels<decltype(sample), decltype(first)::value, decltype(rest)::value, false>);
  });
}

}  // namespace cudavision::histogram
