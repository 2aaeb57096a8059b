// SPDX-License-Identifier: LGPL-2.1-or-later
// The looks of cells on the device, for the plan in cuda.cu.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/core/image.hpp"
#include "kernels/core/status.hpp"
#include "kernels/cuda/device.hpp"
#include "kernels/diff/looks.hpp"

namespace cudavision::diff {

struct LooksArguments {
  LooksJob job;
  const unsigned char* mask;  ///< bits of the frame: 1 where a pixel changed
  std::ptrdiff_t mask_pitch;  ///< bytes
  int cells_x, cells_y, cell_size;
  CellLooks* looks;    ///< for each cell, in page-locked host memory
  bool words = false;  ///< set by launch_looks(): the luma of 4 pixels is an aligned word of bytes
};

Status load_looks(bool bytes, int cell_size);
/// Measures the cells that have changed pixels. `bytes`: whether stored words are bytes.
Status launch_looks(const LooksArguments& arguments, bool bytes, cudaStream_t stream);

}  // namespace cudavision::diff
