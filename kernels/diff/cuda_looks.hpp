// SPDX-License-Identifier: LGPL-2.1-or-later
// The looks of cells on the device, for the plan in cuda.cu.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/core/image.hpp"
#include "kernels/core/status.hpp"
#include "kernels/cuda/device.hpp"
#include "kernels/diff/looks.hpp"

namespace cudavision::diff {

/// What a frame gives: a head, then an entry for each cell that changed, in any order. A plan that measures nothing but
/// extents has small entries.
struct LooksHead {
  std::uint32_t count;  ///< of the entries
  std::uint32_t unused[15];
};
struct LooksEntry {
  std::uint32_t cell, unused;
  CellLooks looks;
};
static_assert(sizeof(LooksEntry) == 64 && sizeof(LooksHead) == 64, "entries cross the bus in whole pieces");
/// The size of an entry of a plan in bytes. A small one ends with the extent of CellLooks.
constexpr int looks_entry_bytes(bool only_extents) { return only_extents ? 16 : 64; }

struct LooksArguments {
  LooksJob job;
  const unsigned char* mask;  ///< bits of the frame: 1 where a pixel changed
  std::ptrdiff_t mask_pitch;  ///< bytes
  int cells_x, cells_y, cell_size;
  const std::uint32_t *cells, *count;  ///< those to measure, see CellList
  std::uint32_t* next_count;           ///< of the next frame, which is set to 0
  unsigned char* found;                ///< in page-locked host memory: see LooksHead
  bool small_entries;                  ///< of extents alone
  bool words = false;                  ///< set by launch_looks(): the luma of 4 pixels is an aligned word of bytes
};

Status load_looks(bool bytes, int cell_size);
/// Measures the cells of the list. `bytes`: whether stored words are bytes. device: of the current context.
Status launch_looks(const LooksArguments& arguments, bool bytes, const cuda::Device& device, bool overlaps,
                    cudaStream_t stream);

}  // namespace cudavision::diff
