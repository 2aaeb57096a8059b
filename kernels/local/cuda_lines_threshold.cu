// SPDX-License-Identifier: LGPL-2.1-or-later
// Threshold: the kernels of cuda_lines_kernel.cuh that are compiled.
#include "kernels/local/cuda_lines_kernel.cuh"

namespace cudavision::local {
namespace {

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

template <typename T, int C, unsigned mask, typename Sum, bool planes = false>
LineKernels kernels() {
  return line_kernels_of<Shape<T, C, mask, Operation::threshold, planes>, Sum>();
}

}  // namespace

LineKernels threshold_line_kernels(const LineShape& shape) {
  if (shape.sample_bytes == 2) {
    if (shape.channels == 4) return shape.filtered == 7 ? kernels<u16, 4, 7, u64>() : kernels<u16, 4, 14, u64>();
    return kernels<u16, 1, 1, u64>();
  }
  if (shape.wide) return {};
  if (shape.planes) return kernels<u8, 1, 1, u32, true>();
  switch (shape.channels * 16 + shape.filtered) {
    case 0x11:
      return kernels<u8, 1, 1, u32>();
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
