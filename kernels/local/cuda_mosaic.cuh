// SPDX-License-Identifier: LGPL-2.1-or-later
// Launches mosaics. See cuda_mosaic.cu.
#pragma once

#include "kernels/core/queue.hpp"
#include "kernels/local/cuda_mosaic_schedule.hpp"

namespace cudavision::local {

/// One channel set.
struct MosaicSet {
  const unsigned char* src = nullptr;
  unsigned char* dst = nullptr;
  std::ptrdiff_t src_pitch = 0, dst_pitch = 0;  ///< bytes
  int width = 0, height = 0;                    ///< size of the grid
  int first_sum = 0;                            ///< index of the first cell of the set in `sums`
  std::uint8_t channels = 1, shift_x = 0, shift_y = 0;
  std::uint8_t filtered = 1, own = 1;  ///< bit c: channel c gets means; channel c is written
  bool words = false;                  ///< whether rows are aligned to chunks
};

/// The parameters of a launch: shapes that do not overlap, each with up to three channel sets.
struct MosaicJobs {
  MosaicSet sets[3];
  int width = 0, height = 0;  ///< size of the picture
  int max_value = 255, shift = 0;
  std::uint64_t* sums = nullptr;  ///< sums of the cells, which must be zero at first; used if a cell has several pieces
  MosaicPart parts[mosaic_parts];
  Point corners[max_outline_corners];
};
static_assert(sizeof(MosaicJobs) < 4096, "older drivers allow no more for the parameters of a kernel");

/// Loads the kernels for a format. Errors: resource.
Status load_mosaic(const FormatInfo& format);
/// Launches the kernels. `blocks`: the largest number of blocks of a set of a shape. Errors: resource.
Status launch_mosaic(const FormatInfo& format, const MosaicJobs& jobs, int parts, int blocks, Queue queue);

}  // namespace cudavision::local
