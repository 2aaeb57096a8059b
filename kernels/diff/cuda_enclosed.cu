// SPDX-License-Identifier: LGPL-2.1-or-later
// Fills the inside of the outline of an object (enclosed.hpp) in the final mask of the opening. A thread reads the
// pixels of the analysis from the bits of the frame: one bit from each square.
//
//   grid: (words / 32, rows / 4); a thread has a word of 32 pixels
//
//                word above, up to `reach` rows
//         before | word | after                     adjacent words: `reach` is at most 32
//                word below
//
// Most threads find no changed pixels on either side, and copy their word.
//
// Where to change what:
//   which pixels are filled      enclosed.hpp, for both backends
//   how far                      Plan::reach()
#include "kernels/diff/cuda_stages.hpp"
#include "kernels/diff/enclosed.hpp"

namespace cudavision::diff {
namespace {

constexpr int words_of_block = 32, rows_of_block = 4;

/// Packs the even bits of a word into its lower half.
__device__ __forceinline__ std::uint32_t even_bits(std::uint32_t bits) {
  bits &= 0x55555555;
  bits = (bits | bits >> 1) & 0x33333333;
  bits = (bits | bits >> 2) & 0x0f0f0f0f;
  bits = (bits | bits >> 4) & 0x00ff00ff;
  return (bits | bits >> 8) & 0x0000ffff;
}

/// A word of pixels of the analysis; pixels beyond the width are 0.
__device__ std::uint32_t word_at(const Enclosing& p, int x, int y) {
  const auto* const row =
      reinterpret_cast<const std::uint32_t*>(p.mask + (std::ptrdiff_t(y) << p.log2_scale) * p.mask_pitch);
  const int count = 1 << p.log2_scale, bits = 32 >> p.log2_scale;  // frame words, and the bits that each gives
  std::uint32_t word = 0;
  for (int i = 0; i < count; ++i) {
    std::uint32_t part = row[x * count + i];
    for (int halving = 0; halving < p.log2_scale; ++halving) part = even_bits(part);
    word |= part << i * bits;
  }
  const int left = p.width - 32 * x;  // the opening stores no words that are entirely outside the frame
  return left < 32 ? word & ((1u << left) - 1) : word;
}

__global__ void __launch_bounds__(words_of_block* rows_of_block) fill(const __grid_constant__ Enclosing p) {
  const int x = int(blockIdx.x) * words_of_block + int(threadIdx.x),
            y = int(blockIdx.y) * rows_of_block + int(threadIdx.y);
  const int words = (p.width + 31) / 32;
  if (x >= words || y >= p.height) return;
  const std::uint32_t filled = filled_word(p.reach, y, p.height - 1 - y, [&](int dx, int dy) {
    return x + dx < 0 || x + dx >= words ? 0u : word_at(p, x + dx, y + dy);
  });
  const std::uint32_t unmasked = p.unmasked ? reinterpret_cast<const std::uint32_t*>(p.unmasked + y * p.pitch)[x] : ~0u;
  reinterpret_cast<std::uint32_t*>(p.filled + y * p.pitch)[x] = filled & unmasked;  // adds only counted pixels
}

}  // namespace

Status load_enclosing() {
  return cuda::load_kernel(reinterpret_cast<const void*>(fill), "cannot load the filling kernel");
}

Status launch_enclosing(const Enclosing& job, cudaStream_t stream) {
  Enclosing p = job;
  void* arguments[] = {&p};
  const dim3 grid(unsigned(divide_up(divide_up(p.width, 32), words_of_block)),
                  unsigned(divide_up(p.height, rows_of_block)));
  return cuda::check(cudaLaunchKernel(reinterpret_cast<const void*>(fill), grid, dim3(words_of_block, rows_of_block),
                                      arguments, 0, stream),
                     "cannot launch the filling");
}

}  // namespace cudavision::diff
