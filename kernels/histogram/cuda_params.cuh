// SPDX-License-Identifier: LGPL-2.1-or-later
// The parameters of the counting kernels. The order of the fields decides the machine code: parameters are read from constant
// memory at fixed offsets.
#pragma once

#include "kernels/cuda/rows.cuh"
#include "kernels/histogram/cuda_schedule.hpp"

namespace cudavision::histogram {

/// How the sums of a frame become results.
struct Gather {
  std::uint32_t* sums;    ///< [table][fine]; zero between frames
  std::uint32_t* counts;  ///< [channel][bin], on the device
  std::uint32_t* host;    ///< the same in page-locked memory, or null
  unsigned* ticket;       ///< number of blocks that have ended; zero between launches
  int tables, fine, bins, channels, depth;
  bool by_value;  ///< entries are values, which are gathered into bins; else entries are bins
  bool here;      ///< the last block of this launch gathers; else a later launch does
  std::uint8_t table[max_channels];
};

/// One plane of bytes.
struct ByteJob {
  const unsigned char* data;
  std::ptrdiff_t pitch;
  int table;
  Share share;
};
struct ByteParams {
  ByteJob jobs[3];
  Gather gather;
};

/// One channel set, or three planes that are read together.
struct PixelJob {
  cuda::SetView views[3];  ///< of the set, or of the three planes
  PixelTables tables;
  Share share;
};
struct PixelParams {
  PixelJob jobs[3];
  int bins, bin_shift;  ///< entry = sample · bins >> bin_shift
  int copies;           ///< of the counters of a block
  LumaWeights weights;
  Gather gather;
};

}  // namespace cudavision::histogram
