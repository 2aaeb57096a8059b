// SPDX-License-Identifier: LGPL-2.1-or-later
// The looks of cells on the device, for the plan in cuda.cu.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "kernels/core/image.hpp"
#include "kernels/core/status.hpp"
#include "kernels/cuda/device.hpp"
#include "kernels/diff/looks.hpp"

namespace cudavision::diff {

/// The output for a frame: a head, then an entry for each cell that changed, in any order. An entry holds only the
/// fields that the plan measures.
struct LooksHead {
  std::uint32_t count;  ///< number of entries
  std::uint32_t unused[15];
};
struct LooksEntry {
  std::uint32_t cell, unused;
  CellLooks looks;
};
static_assert(sizeof(LooksEntry) == 64 && sizeof(LooksHead) == 64, "entries cross the bus in whole pieces");
/// The size of an entry of a plan in bytes. votes: whether there is a structure.
constexpr int looks_entry_bytes(bool only_extents, bool votes) {
  return votes ? int(sizeof(LooksEntry)) : only_extents ? 16 : 48;
}
static_assert(offsetof(LooksEntry, looks.pixels) == 16 && offsetof(LooksEntry, looks.structure) == 48);

struct LooksArguments {
  LooksJob job;
  const unsigned char* mask;  ///< bits of the frame: 1 where a pixel changed
  std::ptrdiff_t mask_pitch;  ///< bytes
  int cells_x, cells_y, cell_size;
  const std::uint32_t* cells;  ///< cells to measure, see CellList
  std::uint32_t* count;        ///< their number, then a 0, in 8 aligned bytes; the launch sets it to 0
  unsigned char* found;        ///< in page-locked host memory: see LooksHead
  int entry_bytes;             ///< see looks_entry_bytes()
  // Set by launch_looks(): whether the luma of 4 pixels is an aligned word of bytes, and their two Cb and Cr are one.
  bool words = false, pairs = false;
};

Status load_looks(bool bytes, int cell_size);
/// Measures the cells of the list. `bytes`: whether stored words are bytes. device: of the current context.
Status launch_looks(const LooksArguments& arguments, bool bytes, const cuda::Device& device, bool overlaps,
                    cudaStream_t stream);

}  // namespace cudavision::diff
