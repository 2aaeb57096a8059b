// SPDX-License-Identifier: LGPL-2.1-or-later
// Makes a frame the reference if light was switched (see cuda_light.cuh); else every thread ends at once.
//
//   grid: a few blocks; each takes rows of the planes, its threads go along a row
//
//     src |s s s s …|  ->  first      |s s s s …|        as stored
//                      ->  background |S · S · …|        sample values with 8 or 16 fractional bits
#include "kernels/core/sample.hpp"
#include "kernels/diff/arithmetic.hpp"
#include "kernels/diff/cuda_params.cuh"

namespace cudavision::diff {
namespace {

template <typename T>
__device__ T* row_of(const View& view, int row) {
  return reinterpret_cast<T*>(view.data + std::ptrdiff_t(row) * view.pitch);
}

template <typename T>
__global__ void __launch_bounds__(tuning.restart_threads) restart(const __grid_constant__ Restart r) {
  using Fixed = typename std::conditional<sizeof(T) == 1, std::uint16_t, std::uint32_t>::type;
  if (!r.state->light) return;
  for (const Restart::Plane& plane : r.planes) {
    for (int row = blockIdx.x; row < plane.rows; row += gridDim.x) {
      const T* const from = row_of<const T>(plane.src, row);
      for (int i = threadIdx.x; i < plane.samples; i += blockDim.x) {
        if (plane.first.data) row_of<T>(plane.first, row)[i] = from[i];
        if (plane.background.data)
          row_of<Fixed>(plane.background, row)[i] =
              Fixed(std::uint32_t(sample_of(from[i], r.shift, r.max)) << background_bits(sizeof(T)));
      }
    }
  }
}

}  // namespace

const void* restart_kernel(int sample_bytes) {
  return sample_bytes == 1 ? reinterpret_cast<const void*>(restart<std::uint8_t>)
                           : reinterpret_cast<const void*>(restart<std::uint16_t>);
}

}  // namespace cudavision::diff
