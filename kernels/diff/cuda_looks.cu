// SPDX-License-Identifier: LGPL-2.1-or-later
// Measures the changed pixels of each cell (looks.hpp, structure.hpp), from the bits of the final mask, which the
// kernel that counted has stored. Runs after it.
//
//   grid: a warp for 4 cells of a row of cells, or for one cell if cells are large
//
//     look for bits      | cell | cell | cell | cell |     8 lanes for each cell (the warp for a large one), each has
//                        every 8th row
//     cells with bits, one after the other; the pixels of the analysis:
//                        | lanes 0 to 15 |                 for a cell of 16 pixels
//                        | lanes 16 to 31|                 … then the next two rows
//     Lane 0 stores the sums in page-locked host memory. Cells without bits store nothing: most cells of most frames.
//
// Where to change what:
//   what is measured of a pixel      looks.hpp and structure.hpp, for both backends
//   cells of a warp                  cells_of_warp()
#include "kernels/cuda/warp.cuh"
#include "kernels/diff/cuda_looks.hpp"

namespace cudavision::diff {
namespace {

constexpr int threads = 128, warps = threads / 32;
/// Cells that a warp looks at. H200, 1920 × 1080 with all pixels changed, cells of 16: 115 µs with 32 cells for a warp,
/// which takes them one after the other; they are few warps then.
__host__ __device__ constexpr int cells_of_warp(int cell_size) { return cell_size < 64 ? 4 : 1; }

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

  __device__ __forceinline__ void add(int y, const PixelLooks& looks) {
    top = min(top, y), bottom = max(bottom, y);
    ++pixels;
    luma += looks.luma, luma_squares += looks.luma * looks.luma;
    cb += looks.cb, cr += looks.cr;
  }
  /// The sums of all lanes, in every lane.
  __device__ __forceinline__ CellLooks sum() const {
    const auto most = [](int value) {
#pragma unroll
      for (int d = 16; d > 0; d /= 2) value = max(value, __shfl_xor_sync(~0u, value, d));
      return std::uint16_t(value);
    };
    const auto least = [&](int value) { return std::uint16_t(0xffff - most(0xffff - value)); };
    unsigned long long any = columns;
#pragma unroll
    for (int d = 16; d > 0; d /= 2) any |= __shfl_xor_sync(~0u, any, d);
    return {least(left),
            least(top),
            most(right),
            most(bottom),
            cuda::warp_sum(pixels),
            cuda::warp_sum(luma),
            cuda::warp_sum(cb),
            cuda::warp_sum(cr),
            cuda::warp_sum((unsigned long long)(luma_squares)),
            any,
            {cuda::warp_sum(votes.edges), cuda::warp_sum(votes.reference_edges), cuda::warp_sum(votes.same),
             cuda::warp_sum(votes.other)}};
  }
};

/// Measures a cell. The lanes lie beside each other, in as many rows as there is room for.
template <typename T>
__device__ __forceinline__ void measure_cell(const LooksArguments& p, int x, int y, int lane) {
  const CellSpan across = span_of_cell(x, p.cell_size, p.job.width, p.job.log2_scale);
  const CellSpan down = span_of_cell(y, p.cell_size, p.job.height, p.job.log2_scale);
  const int bits = min(5, 32 - __clz(across.last - across.first)), log2 = log2_columns(across);
  const auto changed = [&p](int x, int y) { return changed_at(p, x, y); };
  Share share;
  for (int at_x = across.first + (lane & ((1 << bits) - 1)); at_x <= across.last; at_x += 1 << bits) {
    const std::uint32_t before = share.pixels;
    for (int at_y = down.first + (lane >> bits); at_y <= down.last; at_y += 32 >> bits) {
      if (changed(at_x, at_y)) share.add(at_y, looks_of<T>(p.job, at_x, at_y));
      if (p.job.structure.frame) p.job.structure.vote(at_x, at_y, changed, share.votes);
    }
    if (share.pixels == before) continue;
    share.left = min(share.left, at_x), share.right = max(share.right, at_x);
    share.columns |= 1ull << ((at_x - across.first) >> log2);
  }
  const CellLooks looks = share.sum();
  if (lane == 0) p.looks[std::size_t(y) * p.cells_x + x] = looks;
}

template <typename T>
__global__ void __launch_bounds__(threads) measure_looks(const __grid_constant__ LooksArguments p) {
  const int lane = threadIdx.x % 32, warp = blockIdx.x * warps + threadIdx.x / 32, y = blockIdx.y;
  const int cells = cells_of_warp(p.cell_size), lanes = 32 / cells, first = warp * cells, x = first + lane / lanes;
  if (first >= p.cells_x) return;
  const bool any = x < p.cells_x && any_changed(p, cell_at(p, x, y), lane % lanes, lanes);
  const unsigned found = __ballot_sync(~0u, any);
  for (int i = 0; i < cells; ++i)
    if (found >> i * lanes & (lanes == 32 ? ~0u : (1u << lanes) - 1)) measure_cell<T>(p, first + i, y, lane);
}

const void* kernel_for(bool bytes) {
  return bytes ? reinterpret_cast<const void*>(measure_looks<std::uint8_t>)
               : reinterpret_cast<const void*>(measure_looks<std::uint16_t>);
}

}  // namespace

Status load_looks(bool bytes) {
  return cuda::load_kernel(kernel_for(bytes), "cannot load the kernel of the looks of cells");
}

Status launch_looks(const LooksArguments& arguments, bool bytes, cudaStream_t stream) {
  LooksArguments p = arguments;
  void* list[] = {&p};
  const dim3 grid(unsigned(divide_up(divide_up(p.cells_x, cells_of_warp(p.cell_size)), warps)), unsigned(p.cells_y));
  return cuda::check(cudaLaunchKernel(kernel_for(bytes), grid, dim3(threads), list, 0, stream),
                     "cannot measure the looks of cells");
}

}  // namespace cudavision::diff
