// SPDX-License-Identifier: LGPL-2.1-or-later
// Deviation: the kernels of cuda_lines_kernel.cuh that are compiled.
#include "kernels/local/cuda_lines_kernel.cuh"

namespace cudavision::local {
namespace {

using u8 = std::uint8_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

template <typename T, int C, unsigned mask, typename Sum>
LineKernels kernels() {
  return line_kernels_of<Shape<T, C, mask, Operation::deviation, false>, Sum>();
}

}  // namespace

LineKernels deviation_line_kernels(const LineShape& shape) {
  if (shape.sample_bytes == 2) return {};  // tables are faster
  if (shape.channels == 1) return kernels<u8, 1, 1, u64>();
  if (shape.wide) return {};
  switch (shape.channels * 16 + shape.filtered) {
    case 0x21:
      return kernels<u8, 2, 1, u32>();
    case 0x22:
      return kernels<u8, 2, 2, u32>();
    case 0x37:
      return kernels<u8, 3, 7, u32>();
    case 0x47:
      return kernels<u8, 4, 7, u32>();
    default:
      return kernels<u8, 4, 14, u32>();
  }
}

}  // namespace cudavision::local
