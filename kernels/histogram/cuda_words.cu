// SPDX-License-Identifier: LGPL-2.1-or-later
// Counts planes of 16-bit samples by value: 65536 counters of 32 bits do not fit in shared memory. Each multiprocessor
// runs one block, whose counters have 16 bits:
//
//   word (32 bits)   | value 0 | value 1 |     Word i is at i ^ (i / 32 % 32). Otherwise samples with equal low bits,
//                    | value 2 | value 3 |     such as 10 bits stored in the high bits of 16, would all use one bank
//                    | …
//
// A thread adds a sample with an atomic that returns the old word. If this makes a counter reach 2^15, the thread moves
// 2^15 from the counter to the device's sums before the round ends. In a round, the block adds at most 2^15. At the
// end, one 64-bit atomic adds each word to the sums of two values.
#include "kernels/cuda/overlap.hpp"
#include "kernels/histogram/cuda_chunks.cuh"
#include "kernels/histogram/cuda_gather.cuh"

namespace cudavision::histogram {
namespace {

using Held = Chunk<std::uint16_t, 1>;
static_assert(tuning.pixel_threads * chunks_ahead<Held> * Held::pixels <= 1 << 15, "a counter would overflow");

constexpr std::uint32_t top_bits = 0x80008000u;

/// The position of word i of the counters.
__device__ __forceinline__ std::uint32_t swizzled(std::uint32_t i) { return i ^ (i >> 5 & 31); }
/// The number that must be added to a word to count a value.
__device__ __forceinline__ std::uint32_t one_of(std::uint32_t value) { return (value & 1) * 0xffffu + 1; }

/// Adds the block's counters to the sums of its table. Blocks begin at different words, so that they do not add to the
/// same sums at the same time.
__device__ __forceinline__ void add_to_sums(const std::uint32_t* counters, std::uint32_t* sums, int block) {
  const int threads = blockDim.x;
  for (int k = threadIdx.x; k < word_values / 2; k += threads) {
    const int i = (k + block * threads) % (word_values / 2);
    const std::uint32_t both = counters[i];
    if (both > 0)
      atomicAdd(reinterpret_cast<unsigned long long*>(sums) + swizzled(i),
                (unsigned long long)(both >> 16) << 32 | (both & 0xffff));
  }
}

__global__ void __launch_bounds__(tuning.pixel_threads, 1) count_words(const __grid_constant__ WordParams params) {
  extern __shared__ uint4 shared[];
  std::uint32_t* const counters = reinterpret_cast<std::uint32_t*>(shared);
  cuda::let_next_start();
  const int threads = blockDim.x, thread = threadIdx.x, block = int(blockIdx.x);
  const WordJob& job =
      params.jobs[(block >= params.jobs[1].share.first_block) + (block >= params.jobs[2].share.first_block)];
  std::uint32_t* const sums = params.gather.sums + job.table * word_values;
  bool cleared = false;
  const auto clear = [&] {
    if (cleared) return;
    for (int i = thread; i < word_counter_bytes / 16; i += threads) shared[i] = make_uint4(0, 0, 0, 0);
    __syncthreads();
    cleared = true;
  };

  // Adds a value `count` times. Returns the bits of the word that have changed.
  const auto add = [&](std::uint32_t value, std::uint32_t count) {
    const std::uint32_t more = one_of(value) * count, old = atomicAdd(counters + swizzled(value / 2), more);
    return (old + more) ^ old;
  };
  // Moves 2^15 from a counter to the sums. Must be called if a top bit has changed.
  const auto move = [&](std::uint32_t value) {
    atomicSub(counters + swizzled(value / 2), one_of(value) << 15);
    atomicAdd(sums + value, 1u << 15);
  };
  // Adds the samples of a chunk that `mask` selects.
  const auto count = [&](const auto& chunk, unsigned mask) {
    constexpr int samples = std::remove_reference_t<decltype(chunk)>::pixels;
    std::uint32_t changed[samples], any = 0;
#pragma unroll
    for (int i = 0; i < samples; ++i) {
      changed[i] = mask >> i & 1 ? add(chunk.sample(i, 0), 1) : 0;
      any |= changed[i];
    }
    if (any & top_bits) {
#pragma unroll
      for (int i = 0; i < samples; ++i)
        if (changed[i] & top_bits) move(chunk.sample(i, 0));
    }
  };
  Rows rows(job.view, job.access);
  rows.hold_in_registers();
  for (int r = 0; r < job.share.rect_count; ++r) {
    const Rect rect = job.share.rects[r];
    const auto load = [&](int x, int y, Held& held) { load_chunk(rows, x, y, held); };
    const auto work = [&](const Held& held, int, int, unsigned callers) {
      // Atomics of a warp at one address would be serialised. If all samples of a warp are equal, one lane adds them.
      bool equal = held.word[0] == __byte_perm(held.word[0], 0, 0x1032);
#pragma unroll
      for (int i = 1; i < Held::words; ++i) equal = equal && held.word[i] == held.word[0];
      const unsigned lanes = __ballot_sync(callers, equal);
      if (!equal) return count(held, ~0u);
      const int first = __ffs(lanes) - 1;
      const bool all = __all_sync(lanes, __shfl_sync(lanes, held.word[0], first) == held.word[0]);
      if (all && int(threadIdx.x % 32) != first) return;
      const std::uint32_t value = held.sample(0, 0);
      if (add(value, Held::pixels * (all ? __popc(lanes) : 1)) & top_bits) move(value);
    };
    const auto side = [&](int x, int y) {
      Chunk<std::uint16_t, 1, 1> quad;
      quad.set_quad(0, cuda::load_quad<std::uint16_t, 1>(job.view, x, y));
      count(quad, side_mask(rect, x));
    };
    for_chunks<Held, true>(rect, unsigned(block - job.share.first_block) * threads + thread,
                           unsigned(job.share.blocks * threads), job.access >= 4, load, clear, work, side);
  }
  __syncthreads();
  add_to_sums(counters, sums, block);
  block_done(params.gather);
}

/// Gathers many entries: a grid of threads, one bin each. Few entries are gathered by the last block that counts.
__global__ void __launch_bounds__(tuning.gather_threads) gather_all(const __grid_constant__ Gather gather) {
  cuda::wait_for_previous();
  gather_entries_of(gather, blockIdx.x * blockDim.x + threadIdx.x, gridDim.x * blockDim.x);
}

}  // namespace

const void* word_kernel() { return reinterpret_cast<const void*>(&count_words); }
const void* gather_kernel() { return reinterpret_cast<const void*>(&gather_all); }

}  // namespace cudavision::histogram
