// SPDX-License-Identifier: LGPL-2.1-or-later
// Measures the changed pixels of each cell (looks.hpp, structure.hpp), from the bits of the final mask, which the
// kernel that counted has stored. Runs after it.
//
//   grid: a warp for 4 cells of a row of cells, or for one cell if cells are large
//
//     | cell | cell | cell | cell |     a group of 8 lanes has a cell (the warp has a large one)
//
//     1. Look for bits: each lane has every 8th row. A warp without bits ends: most warps of most frames.
//     2. Measure: a lane has runs of 4 pixels of a row, or pixels if the analysis is smaller than the frame.
//                        | lane 0 | lane 1 | lane 2 | lane 3 |     a cell of 16 pixels
//                        | lane 4 | lane 5 | lane 6 | lane 7 |     … then the next two rows
//     3. Add up what the lanes of a group have. They store the sums in page-locked host memory, a word each, since
//        neighbouring words cross the bus together. Cells without bits store nothing.
//
// Where to change what:
//   what is measured of a pixel      looks.hpp and structure.hpp, for both backends
//   four bytes of luma at once       Share::add_word()
//   cells of a warp                  lanes_of_cell()
#include "kernels/cuda/warp.cuh"
#include "kernels/diff/cuda_looks.hpp"

namespace cudavision::diff {
namespace {

constexpr int threads = 128;
/// Lanes that have a cell.
constexpr int lanes_of_cell(int cell_size) { return cell_size < 64 ? 8 : 32; }

/// Bits of a word at column `first` of the word that lie in columns begin … end − 1.
__device__ __forceinline__ std::uint32_t columns(int first, int begin, int end) {
  std::uint32_t bits = ~0u;
  if (begin > first) bits &= begin - first >= 32 ? 0 : ~0u << (begin - first);
  if (end < first + 32) bits &= end <= first ? 0 : ~0u >> (first + 32 - end);
  return bits;
}

/// Whether a pixel of the rows first, first + step … of a cell changed.
__device__ __forceinline__ bool any_changed(const LooksArguments& p, const Rect& cell, int first, int step) {
  std::uint32_t any = 0;
  for (int x = cell.x / 32 * 32; x < cell.x + cell.width; x += 32) {
    const std::uint32_t in = columns(x, cell.x, cell.x + cell.width);
#pragma unroll 4
    for (int y = cell.y + first; y < cell.y + cell.height; y += step)
      any |= __ldcg(reinterpret_cast<const std::uint32_t*>(p.mask + y * p.mask_pitch) + x / 32) & in;
  }
  return any != 0;
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

/// What a lane has seen of a cell. Its sums fit 32 bits, because it has at most 1024 × 1024 ÷ 32 pixels.
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
  /// Adds those of the 4 pixels from (x, y) on whose bit is set. Their luma is an aligned word of bytes.
  __device__ __forceinline__ void add_word(const LooksJob& job, int x, int y, std::uint32_t bits) {
    const std::uint32_t which = (bits * 0x00204081u & 0x01010101u) * 0xff;  // bit k: byte k
    const std::uint32_t word =
        *reinterpret_cast<const std::uint32_t*>(job.channels[0].data + y * job.channels[0].pitch + x);
    luma = __dp4a(word & which, 0x01010101u, luma);
    luma_squares = __dp4a(word & which, word & which, luma_squares);
    if (job.count == 1) return;
    const int shift = job.channels[1].shift_x;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      if (k & ((1 << shift) - 1)) continue;
      const int count = __popc(bits >> k & ((1 << (1 << shift)) - 1));
      cb += count * (job.channels[1].template word<std::uint8_t>(x + k, y) - 128);
      cr += count * (job.channels[2].template word<std::uint8_t>(x + k, y) - 128);
    }
  }
  /// The sums of the lanes of a group, in each of them.
  template <int Lanes>
  __device__ __forceinline__ CellLooks sum(bool votes_too) const {
    const auto most = [](int value) {
#pragma unroll
      for (int d = Lanes / 2; d > 0; d /= 2) value = max(value, __shfl_xor_sync(~0u, value, d));
      return std::uint16_t(value);
    };
    const auto least = [&](int value) { return std::uint16_t(0xffff - most(0xffff - value)); };
    const auto total = [](auto value) {
#pragma unroll
      for (int d = Lanes / 2; d > 0; d /= 2) value += __shfl_xor_sync(~0u, value, d);
      return value;
    };
    unsigned long long any = columns;
#pragma unroll
    for (int d = Lanes / 2; d > 0; d /= 2) any |= __shfl_xor_sync(~0u, any, d);
    CellLooks looks{least(left),
                    least(top),
                    most(right),
                    most(bottom),
                    total(pixels),
                    total(luma),
                    total(cb),
                    total(cr),
                    total((unsigned long long)(luma_squares)),
                    any,
                    {}};
    if (votes_too)
      looks.structure = {total(votes.edges), total(votes.reference_edges), total(votes.same), total(votes.other)};
    return looks;
  }
};

/// Measures a cell by a group of lanes, which lie beside each other, in as many rows as there is room for. `lane`: the
/// number of this one in its group.
template <typename T, int Lanes>
__device__ __forceinline__ Share measure_cell(const LooksArguments& p, int x, int y, int lane) {
  const LooksJob& job = p.job;
  const CellSpan across = span_of_cell(x, p.cell_size, job.width, job.log2_scale);
  const CellSpan down = span_of_cell(y, p.cell_size, job.height, job.log2_scale);
  const int log2_run = job.log2_scale ? 0 : 2, run = 1 << log2_run, begin = across.first >> log2_run << log2_run;
  const int runs = ((across.last - begin) >> log2_run) + 1, log2 = log2_columns(across);
  const int log2_beside = min(Lanes == 8 ? 3 : 5, 32 - __clz(runs - 1));
  const auto changed = [&p](int x, int y) { return changed_at(p, x, y); };
  Share share;
  for (int at_x = begin + ((lane & ((1 << log2_beside) - 1)) << log2_run); at_x <= across.last;
       at_x += run << log2_beside) {
    const std::uint32_t in = columns(at_x, across.first, across.last + 1);
    const bool word = p.words && at_x + run <= job.width;
    std::uint32_t seen = 0;
    for (int at_y = down.first + (lane >> log2_beside); at_y <= down.last; at_y += Lanes >> log2_beside) {
      const std::uint32_t bits =
          (run == 1 ? changed(at_x, at_y) : p.mask[at_y * p.mask_pitch + at_x / 8] >> at_x % 8 & 15) & in;
      if (job.structure.frame)
        for (int k = 0; k < run; ++k)
          if (in >> k & 1) job.structure.vote(at_x + k, at_y, changed, share.votes);
      if (bits == 0) continue;
      seen |= bits;
      share.pixels += __popc(bits);
      share.top = min(share.top, at_y), share.bottom = max(share.bottom, at_y);
      if (word) {
        share.add_word(job, at_x, at_y, bits);
      } else {
#pragma unroll
        for (int k = 0; k < 4; ++k)
          if (bits >> k & 1) share.add(looks_of<T>(job, at_x + k, at_y));
      }
    }
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      if (!(seen >> k & 1)) continue;
      share.left = min(share.left, at_x + k), share.right = max(share.right, at_x + k);
      share.columns |= 1ull << ((at_x + k - across.first) >> log2);
    }
  }
  return share;
}

template <typename T, int Lanes>
__global__ void __launch_bounds__(threads) measure_looks(const __grid_constant__ LooksArguments p) {
  const int x = (blockIdx.x * threads + threadIdx.x) / Lanes, y = blockIdx.y, lane = threadIdx.x % Lanes;
  const bool any = x < p.cells_x && any_changed(p, cell_at(p, x, y), lane, Lanes);
  const unsigned found = __ballot_sync(~0u, any);
  if (found == 0) return;
  const bool mine = found >> threadIdx.x % 32 / Lanes * Lanes & ~0u >> (32 - Lanes);  // a lane of this group
  Share share;
  if (mine) share = measure_cell<T, Lanes>(p, x, y, lane);
  __syncwarp();
  const CellLooks looks = share.sum<Lanes>(p.job.structure.frame);
  if (!mine) return;
  constexpr int words = sizeof(CellLooks) / sizeof(std::uint64_t);
  std::uint64_t values[words], value = 0;
  memcpy(values, &looks, sizeof looks);
#pragma unroll
  for (int i = 0; i < words; ++i)
    if (lane == i) value = values[i];
  // All words, also those of votes that nobody casts: the bus carries what has no gaps in half of the time.
  if (lane < words) reinterpret_cast<std::uint64_t*>(p.looks + std::size_t(y) * p.cells_x + x)[lane] = value;
}

template <typename T>
const void* kernel_for(int cell_size) {
  return lanes_of_cell(cell_size) == 8 ? reinterpret_cast<const void*>(measure_looks<T, 8>)
                                       : reinterpret_cast<const void*>(measure_looks<T, 32>);
}
const void* kernel_for(bool bytes, int cell_size) {
  return bytes ? kernel_for<std::uint8_t>(cell_size) : kernel_for<std::uint16_t>(cell_size);
}

}  // namespace

Status load_looks(bool bytes, int cell_size) {
  return cuda::load_kernel(kernel_for(bytes, cell_size), "cannot load the kernel of the looks of cells");
}

Status launch_looks(const LooksArguments& arguments, bool bytes, cudaStream_t stream) {
  LooksArguments p = arguments;
  const LooksChannel& luma = p.job.channels[0];
  p.words = bytes && !p.job.rgb && p.job.log2_scale == 0 && luma.step == 1 && luma.pitch % 4 == 0 &&
            reinterpret_cast<std::uintptr_t>(luma.data) % 4 == 0;
  void* list[] = {&p};
  const dim3 grid(unsigned(divide_up(p.cells_x, threads / lanes_of_cell(p.cell_size))), unsigned(p.cells_y));
  return cuda::check(cudaLaunchKernel(kernel_for(bytes, p.cell_size), grid, dim3(threads), list, 0, stream),
                     "cannot measure the looks of cells");
}

}  // namespace cudavision::diff
