// SPDX-License-Identifier: LGPL-2.1-or-later
// Counting planes of bytes. One block a multiprocessor; a lane counts 16 samples (a chunk) at a time:
//
//   plane    | head |  chunk  |  chunk  | … |  chunk  | tail |     chunks are aligned to 16 bytes; head and tail are counted by
//                      lane 0    lane 1        lane n              atomics
//
// Every lane has its own 256 counters of a byte, so neither equal samples nor bank conflicts slow the block down:
//
//   shared memory   [group of 4 warps][value][lane][warp of the group]: bytes; the counters of a lane lie in its own bank
//   wide            [value]: 32 bits; a byte that wraps adds 256 here, and at the end all bytes of a value are added
#include "kernels/histogram/cuda_gather.cuh"
#include "kernels/histogram/cuda_kernels.hpp"
#include "kernels/histogram/cuda_walk.hpp"

namespace cudavision::histogram {
namespace {

/// Counters in shared memory, by their 32-bit address: through pointers each access takes two more instructions.
__device__ __forceinline__ std::uint32_t load_counter(unsigned address) {
  std::uint32_t count;
  asm volatile("ld.shared.u8 %0, [%1];" : "=r"(count) : "r"(address));
  return count;
}
__device__ __forceinline__ void store_counter(unsigned address, std::uint32_t count) {
  asm volatile("st.shared.u8 [%0], %1;" ::"r"(address), "r"(count));
}

/// Volatile: the compiler would move a load in advance behind the work that does not need it.
__device__ __forceinline__ uint4 load_chunk(const unsigned char* from) {
  uint4 chunk;
  asm volatile("ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(chunk.x), "=r"(chunk.y), "=r"(chunk.z), "=r"(chunk.w)
               : "l"(from));
  return chunk;
}

/// The address of a value's counter. `own`: the address of the lane's counter of value 0.
__device__ __forceinline__ unsigned counter_of(std::uint32_t value, unsigned own) {
  unsigned address;  // one multiply-add; without asm the compiler takes two instructions
  asm("mad.lo.u32 %0, %1, 128, %2;" : "=r"(address) : "r"(value), "r"(own));
  return address;
}

/// Counts 16 samples. A counter that wraps to zero adds 256 to `wide`.
__device__ __forceinline__ void count_chunk(const uint4& chunk, unsigned own, std::uint32_t* wide) {
  const std::uint32_t words[4] = {chunk.x, chunk.y, chunk.z, chunk.w};
  std::uint32_t now[16], any = 0;
#pragma unroll
  for (int i = 0; i < 16; ++i) {
    const unsigned address = counter_of(__byte_perm(words[i / 4], 0, 0x4440 + i % 4), own);
    now[i] = load_counter(address) + 1;
    store_counter(address, now[i]);
    any |= now[i];
  }
  if (any & 256) {
#pragma unroll
    for (int i = 0; i < 16; ++i)
      if (now[i] & 256) atomicAdd(wide + (words[i / 4] >> (i % 4 * 8) & 255), 256u);
  }
}

__global__ void __launch_bounds__(tuning.byte_warps * 32, 1) count_bytes(const __grid_constant__ ByteParams params) {
  extern __shared__ uint4 shared[];
  __shared__ std::uint32_t wide[256];
  const int threads = blockDim.x, thread = threadIdx.x, warp = thread / 32, lane = thread % 32;
  const unsigned own = unsigned(__cvta_generic_to_shared(shared)) + warp / 4 * (256 * 128) + lane * 4 + warp % 4;
  const int block = int(blockIdx.x);
  const ByteJob& job = params.jobs[(block >= params.jobs[1].share.first_block) + (block >= params.jobs[2].share.first_block)];
  const unsigned first = unsigned(block - job.share.first_block) * threads + thread, stride = unsigned(job.share.blocks) * threads;

  bool cleared = false;
  const auto clear = [&] {
    for (int i = thread; i < threads / 32 * 512; i += threads) shared[i] = make_uint4(0, 0, 0, 0);
    for (int i = thread; i < 256; i += threads) wide[i] = 0;
    __syncthreads();
    cleared = true;
  };
  for (int r = 0; r < job.share.rect_count; ++r) {
    const Rect rect = job.share.rects[r];
    const unsigned char* const rows = job.data + rect.y * job.pitch;
    const int begin = (rect.x + 15) & ~15, end = (rect.x + rect.width) & ~15;  // of whole chunks
    // The chunks of this lane: how many are left, the address of the next, and the steps to the one after it.
    const unsigned width = unsigned(max(end - begin, 0)) / 16, chunks = width * unsigned(rect.height);
    Walk walk(first, stride, max(width, 1u));
    int left = first < chunks ? int((chunks - first + stride - 1) / stride) : 0, x = walk.x;
    const unsigned char* next = rows + walk.y * job.pitch + begin + std::ptrdiff_t(x) * 16;
    const std::ptrdiff_t step = walk.step_y * job.pitch + std::ptrdiff_t(walk.step_x) * 16,
                         wrap = job.pitch - std::ptrdiff_t(walk.width) * 16;
    uint4 ahead[tuning.byte_ahead];
    const auto load = [&] {
#pragma unroll
      for (int i = 0; i < tuning.byte_ahead; ++i) {
        if (i >= left) break;
        ahead[i] = load_chunk(next);
        next += step;
        x += walk.step_x;
        if (x >= walk.width) x -= walk.width, next += wrap;
      }
    };
    load();
    if (!cleared) clear();  // while the first loads are in flight
    while (left > 0) {
      uint4 now[tuning.byte_ahead];
#pragma unroll
      for (int i = 0; i < tuning.byte_ahead; ++i) now[i] = ahead[i];
      const int count = left;
      left -= tuning.byte_ahead;
      load();
#pragma unroll
      for (int i = 0; i < tuning.byte_ahead; ++i)
        if (i < count) count_chunk(now[i], own, wide);
    }
    // The samples of each row before the first and after the last whole chunk, one by one.
    const int head = min(begin, rect.x + rect.width) - rect.x, tail = begin <= end ? rect.x + rect.width - end : 0;
    if (head + tail > 0) {
      for (Walk walk(first, stride, unsigned(head + tail)); walk.y < rect.height; walk.next()) {
        const int x = walk.x < head ? rect.x + walk.x : end + walk.x - head;
        atomicAdd(wide + rows[walk.y * job.pitch + x], 1u);
      }
    }
  }
  __syncthreads();

  // Each thread adds up the 128 counters of a value; lanes begin at different words, so that they read different banks.
  for (int i = thread; i < 256 * (threads / 128); i += threads) {
    const uint4* const row = shared + i * 8;
    std::uint32_t sum = 0;
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      const uint4 words = row[(k + lane) % 8];
      sum = __dp4a(words.x, 0x01010101u, sum);
      sum = __dp4a(words.y, 0x01010101u, sum);
      sum = __dp4a(words.z, 0x01010101u, sum);
      sum = __dp4a(words.w, 0x01010101u, sum);
    }
    if (sum > 0) atomicAdd(wide + i % 256, sum);
  }
  __syncthreads();
  std::uint32_t* const sums = params.gather.sums + std::size_t(job.table) * params.gather.fine;
  for (int i = thread; i < 256; i += threads)
    if (wide[i] > 0) atomicAdd(sums + i, wide[i]);
  block_done(params.gather);
}

}  // namespace

const void* byte_kernel() { return reinterpret_cast<const void*>(&count_bytes); }

}  // namespace cudavision::histogram
