// SPDX-License-Identifier: LGPL-2.1-or-later
// Measures the changed pixels of the cells of a list (looks.hpp, structure.hpp), from the bits of the final mask. Runs
// after the kernel that counts, which stores the list and the mask.
//
//   grid: at most as many blocks as can run at once; a warp takes 2 cells of the list at a time, or 1 large cell
//
//     | cell | cell |     a group of 16 lanes has a cell (the warp has a large one)
//
//     1. Count the changed pixels: each lane has every 16th row. For a cell that does not move, only the extent is
//        measured.
//     2. Measure: a lane has runs of 4 pixels of a row, or single pixels if the analysis is smaller than the frame.
//                        | lane 0 | lane 1 | lane 2 | lane 3 |     a cell of 16 pixels
//                        | lane 4 | lane 5 | lane 6 | lane 7 |     … 4 rows, then the next 4
//     3. Add up the sums of the lanes of a group. Each lane stores a word of 8 bytes of the entry in page-locked
//        host memory. Entries are contiguous, because the bus transfers contiguous data in half the time.
//
// Where to change what:
//   what is measured of a pixel      looks.hpp and structure.hpp, for both backends
//   four bytes of luma at once       Share::add_word()
//   cells of a warp                  lanes_of_cell()
#include <algorithm>
#include <cstring>

#include "kernels/cuda/overlap.hpp"
#include "kernels/cuda/warp.cuh"
#include "kernels/diff/cuda_stages.hpp"

namespace cudavision::diff {
namespace {

constexpr int threads = 128;
/// All blocks run at once, and most find nothing to do.
constexpr int blocks_of_multiprocessor = 8;
/// The number of lanes that process a cell.
constexpr int lanes_of_cell(int cell_size) { return cell_size < 64 ? 16 : 32; }

/// The bits of a word whose first column is `first` that lie in columns begin … end − 1.
__device__ __forceinline__ std::uint32_t columns(int first, int begin, int end) {
  std::uint32_t bits = ~0u;
  if (begin > first) bits &= begin - first >= 32 ? 0 : ~0u << (begin - first);
  if (end < first + 32) bits &= end <= first ? 0 : ~0u >> (first + 32 - end);
  return bits;
}

/// The changed pixels of the rows first, first + step … of a cell.
__device__ __forceinline__ std::uint32_t count_changed(const LooksArguments& p, const Rect& cell, int first, int step) {
  std::uint32_t count = 0;
  for (int x = cell.x / 32 * 32; x < cell.x + cell.width; x += 32) {
    const std::uint32_t in = columns(x, cell.x, cell.x + cell.width);
#pragma unroll 4
    for (int y = cell.y + first; y < cell.y + cell.height; y += step)
      count += __popc(reinterpret_cast<const std::uint32_t*>(p.mask + y * p.mask_pitch)[x / 32] & in);
  }
  return count;
}

__device__ __forceinline__ Rect cell_at(const LooksArguments& p, int x, int y) {
  const int left = x * p.cell_size, top = y * p.cell_size;
  return {left, top, min(p.cell_size, p.job.width - left), min(p.cell_size, p.job.height - top)};
}

/// Whether a pixel of the analysis changed.
__device__ __forceinline__ bool changed_at(const LooksArguments& p, int x, int y) {
  const int at = x << p.job.log2_scale;
  return p.mask[(y << p.job.log2_scale) * p.mask_pitch + at / 8] >> at % 8 & 1;
}

/// The sum over a group of lanes, in each of them.
template <int Lanes, typename Value>
__device__ __forceinline__ Value group_sum(Value value) {
#pragma unroll
  for (int d = Lanes / 2; d > 0; d /= 2) value += __shfl_xor_sync(~0u, value, d);
  return value;
}

/// The findings of a lane for a cell. The sums fit in 32 bits, because a lane has at most 1024 × 1024 ÷ 32 pixels.
struct Share {
  int left = 0xffff, top = 0xffff, right = 0, bottom = 0;
  std::uint32_t pixels = 0, luma = 0, luma_squares = 0;
  std::int32_t cb = 0, cr = 0;
  unsigned long long columns = 0;
  Structure votes{};

  __device__ __forceinline__ void add(const PixelLooks& looks) {
    luma += looks.luma, luma_squares += looks.luma * looks.luma;
    cb += looks.cb, cr += looks.cr;
  }
  /// Of the 4 pixels beginning at (x, y), adds the pixels whose bit is set. Their luma is an aligned word of bytes.
  /// Loads are unconditional, so that the loads of several rows overlap.
  __device__ __forceinline__ void add_word(const LooksArguments& p, int x, int y, std::uint32_t bits) {
    const LooksJob& job = p.job;
    const std::uint32_t which = (bits * 0x00204081u & 0x01010101u) * 0xff;  // byte k: bit k
    const std::uint32_t word = word_at(job.channels[0], x, y);
    luma = __dp4a(word & which, 0x01010101u, luma);
    luma_squares = __dp4a(word & which, word & which, luma_squares);
    if (job.count == 1) return;
    if (p.pairs) {  // Cb Cr Cb Cr
      const std::uint32_t first = __popc(bits & 3), second = __popc(bits >> 2);
      const std::uint32_t chroma = word_at(job.channels[1], x, y >> 1), counts = first | second << 16;
      const std::int32_t middle = 128 * std::int32_t(first + second);
      cb += std::int32_t(__dp4a(chroma, counts, 0u)) - middle;
      cr += std::int32_t(__dp4a(chroma, counts << 8, 0u)) - middle;
      return;
    }
    const int shift = job.channels[1].shift_x;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      if (k & ((1 << shift) - 1)) continue;
      const int count = __popc(bits >> k & ((1 << (1 << shift)) - 1));
      cb += count * (job.channels[1].template word<const std::uint8_t>(x + k, y) - 128);
      cr += count * (job.channels[2].template word<const std::uint8_t>(x + k, y) - 128);
    }
  }
  /// The aligned word at byte x of a row.
  static __device__ __forceinline__ std::uint32_t word_at(const ChannelView& channel, int x, int row) {
    return *reinterpret_cast<const std::uint32_t*>(channel.data + row * channel.pitch + x);
  }
  /// The sums over the lanes of a group, in each of them.
  template <int Lanes>
  __device__ __forceinline__ CellLooks sum(bool only_extents, bool votes_too) const {
    const auto most = [](int value) {
#pragma unroll
      for (int d = Lanes / 2; d > 0; d /= 2) value = max(value, __shfl_xor_sync(~0u, value, d));
      return std::uint16_t(value);
    };
    const auto least = [&](int value) { return std::uint16_t(0xffff - most(0xffff - value)); };
    const auto total = [](auto value) { return group_sum<Lanes>(value); };
    CellLooks looks{least(left), least(top), most(right), most(bottom)};
    if (votes_too)
      looks.structure = {total(votes.edges), total(votes.reference_edges), total(votes.same), total(votes.other)};
    if (only_extents) return looks;
    looks.pixels = total(pixels);
    looks.luma = total(luma);
    looks.cb = total(cb);
    looks.cr = total(cr);
    looks.luma_squares = total((unsigned long long)(luma_squares));
    unsigned long long any = columns;
#pragma unroll
    for (int d = Lanes / 2; d > 0; d /= 2) any |= __shfl_xor_sync(~0u, any, d);
    looks.columns = any;
    return looks;
  }
};

/// Measures a cell with a group of lanes, which are arranged side by side in as many rows as fit. `lane`: the number of
/// this lane in its group. sums, votes: whether more than the extent is measured.
template <typename T, int Lanes>
__device__ __forceinline__ Share measure_cell(const LooksArguments& p, int x, int y, int lane, bool sums, bool votes) {
  const LooksJob& job = p.job;
  const CellSpan across = span_of_cell(x, p.cell_size, job.width, job.log2_scale);
  const CellSpan down = span_of_cell(y, p.cell_size, job.height, job.log2_scale);
  const int log2_run = job.log2_scale ? 0 : 2, run = 1 << log2_run, begin = across.first >> log2_run << log2_run;
  const int runs = ((across.last - begin) >> log2_run) + 1, log2 = log2_columns(across);
  const int log2_beside = min(Lanes == 16 ? 4 : 5, 32 - __clz(runs - 1));
  const auto changed = [&p](int x, int y) { return changed_at(p, x, y); };
  Share share;
  for (int at_x = begin + ((lane & ((1 << log2_beside) - 1)) << log2_run); at_x <= across.last;
       at_x += run << log2_beside) {
    const std::uint32_t in = columns(at_x, across.first, across.last + 1);
    const bool word = p.words && at_x + run <= job.width;
    std::uint32_t seen = 0;
#pragma unroll 4
    for (int at_y = down.first + (lane >> log2_beside); at_y <= down.last; at_y += Lanes >> log2_beside) {
      const std::uint32_t bits =
          (run == 1 ? changed(at_x, at_y) : p.mask[at_y * p.mask_pitch + at_x / 8] >> at_x % 8 & 15) & in;
      if (votes)
        for (int k = 0; k < run; ++k)
          if (in >> k & 1) job.structure.vote(at_x + k, at_y, changed, share.votes);
      seen |= bits;
      if (bits != 0) share.top = min(share.top, at_y), share.bottom = max(share.bottom, at_y);
      if (!sums) continue;
      share.pixels += __popc(bits);
      if (word) {
        share.add_word(p, at_x, at_y, bits);
      } else if (bits != 0) {
#pragma unroll
        for (int k = 0; k < 4; ++k)
          if (bits >> k & 1) share.add(looks_of<T>(job, at_x + k, at_y));
      }
    }
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      if (!(seen >> k & 1)) continue;
      share.left = min(share.left, at_x + k), share.right = max(share.right, at_x + k);
      if (sums) share.columns |= 1ull << ((at_x + k - across.first) >> log2);
    }
  }
  return share;
}

/// Measures and stores an entry of the list. All lanes of a warp call it; mine: whether the entry exists.
template <typename T, int Lanes>
__device__ __forceinline__ void measure_entry(const LooksArguments& p, std::uint32_t entry, bool mine, int lane) {
  const LooksJob& job = p.job;
  const std::uint32_t index = mine ? __ldcg(p.cells + entry) : 0;
  const int y = int(index) / p.cells_x, x = int(index) - y * p.cells_x;
  bool more = false;
  if (!job.only_extents || job.structure.frame) {
    const Rect cell = cell_at(p, x, y);
    const std::uint32_t changed = group_sum<Lanes>(mine ? count_changed(p, cell, lane, Lanes) : 0);
    more = job.measures(changed, std::uint32_t(cell.width * cell.height));
  }
  Share share;
  if (mine) share = measure_cell<T, Lanes>(p, x, y, lane, more && !job.only_extents, more && job.structure.frame);
  __syncwarp();
  const LooksEntry found{index, 0, share.template sum<Lanes>(job.only_extents, job.structure.frame)};
  constexpr int words = sizeof(LooksEntry) / sizeof(std::uint64_t);
  std::uint64_t values[words], value = 0;
  memcpy(values, &found, sizeof found);
#pragma unroll
  for (int i = 0; i < words; ++i)
    if (lane == i) value = values[i];
  const int stored = p.entry_bytes / int(sizeof(std::uint64_t));
  if (mine && lane < stored)
    reinterpret_cast<std::uint64_t*>(p.found + sizeof(LooksHead))[std::size_t(entry) * stored + lane] = value;
}

template <typename T, int Lanes>
__global__ void __launch_bounds__(threads, blocks_of_multiprocessor)
    measure_looks(const __grid_constant__ LooksArguments p) {
  constexpr int groups = 32 / Lanes;
  __shared__ std::uint32_t number;
  cuda::wait_for_previous();
  if (threadIdx.x == 0) {
    auto* const both = reinterpret_cast<unsigned long long*>(p.count);  // the count is the low half, blocks the high
    const unsigned long long before = atomicAdd(both, 1ull << 32);
    number = std::uint32_t(before);
    if (blockIdx.x == 0) reinterpret_cast<LooksHead*>(p.found)->count = number;
    if (before >> 32 == gridDim.x - 1) *both = 0;  // all blocks have read it
  }
  __syncthreads();
  const std::uint32_t count = number, warps = gridDim.x * (threads / 32);
  const int lane = threadIdx.x % Lanes, group = threadIdx.x % 32 / Lanes;
  for (std::uint32_t first = (blockIdx.x * (threads / 32) + threadIdx.x / 32) * groups; first < count;
       first += warps * groups)
    measure_entry<T, Lanes>(p, first + group, first + group < count, lane);
}

template <typename T>
const void* kernel_for(int cell_size) {
  return lanes_of_cell(cell_size) == 16 ? reinterpret_cast<const void*>(measure_looks<T, 16>)
                                        : reinterpret_cast<const void*>(measure_looks<T, 32>);
}
const void* kernel_for(bool bytes, int cell_size) {
  return bytes ? kernel_for<std::uint8_t>(cell_size) : kernel_for<std::uint16_t>(cell_size);
}

}  // namespace

Status load_looks(bool bytes, int cell_size) {
  return cuda::load_kernel(kernel_for(bytes, cell_size), "cannot load the kernel of the looks of cells");
}

Status launch_looks(const LooksArguments& arguments, bool bytes, const cuda::Device& device, bool overlaps,
                    cudaStream_t stream) {
  LooksArguments p = arguments;
  const ChannelView& luma = p.job.channels[0];
  p.words = bytes && !p.job.rgb && p.job.log2_scale == 0 && luma.step == 1 && luma.pitch % 4 == 0 &&
            reinterpret_cast<std::uintptr_t>(luma.data) % 4 == 0;
  const ChannelView &cb = p.job.channels[1], &cr = p.job.channels[2];
  p.pairs = cb.step == 2 && cr.data == cb.data + 1 && cb.shift_x == 1 && cb.shift_y == 1 && cb.pitch % 4 == 0 &&
            reinterpret_cast<std::uintptr_t>(cb.data) % 4 == 0;
  const int all = divide_up(p.cells_x * p.cells_y, threads / lanes_of_cell(p.cell_size));
  const int blocks = std::min(all, blocks_of_multiprocessor * device.multiprocessors);
  return cuda::check(cuda::launch_overlapping(kernel_for(bytes, p.cell_size), blocks, threads, 0, overlaps, &p, stream),
                     "cannot measure the looks of cells");
}

}  // namespace cudavision::diff
