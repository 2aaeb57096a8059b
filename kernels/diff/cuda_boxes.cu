// SPDX-License-Identifier: LGPL-2.1-or-later
// Fills rectangles, the sides of boxes around moving regions.
//
//   grid: a block for each rectangle; its threads go through the pixels row by row
#include "kernels/diff/cuda_params.cuh"

namespace cudavision::diff {
namespace {

template <typename T>
__global__ void fill_boxes(const __grid_constant__ Boxes boxes) {
  const Box& box = boxes.boxes[blockIdx.x];
  for (int at = threadIdx.x; at < box.width * box.rows; at += blockDim.x) {
    const int y = at / box.width, x = at - y * box.width;
    T* const pixel = reinterpret_cast<T*>(box.data + y * box.pitch) + std::ptrdiff_t(x) * box.channels;
    for (int c = 0; c < box.channels; ++c)
      if (box.own >> c & 1) pixel[c] = T(box.words[c]);
  }
}

}  // namespace

const void* box_kernel(int sample_bytes) {
  return sample_bytes == 1 ? reinterpret_cast<const void*>(fill_boxes<std::uint8_t>)
                           : reinterpret_cast<const void*>(fill_boxes<std::uint16_t>);
}

}  // namespace cudavision::diff
