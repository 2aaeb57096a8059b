// SPDX-License-Identifier: LGPL-2.1-or-later
// The kernels that cuda.cpp launches, and their parameters.
#pragma once

#include "kernels/cuda/rows.cuh"
#include "kernels/histogram/cuda_schedule.hpp"

namespace cudavision::histogram {

/// The number of bytes of a plane that can be accessed at once: 16, 4 or 1.
inline int access_bytes(const void* data, std::ptrdiff_t pitch) {
  return aligned_to(data, pitch, 16) ? 16 : aligned_to(data, pitch, 4) ? 4 : 1;
}

/// How the sums of a frame become results.
struct Gather {
  std::uint32_t* sums;       ///< [copy][table][fine]; zero between frames
  std::uint32_t* counts;     ///< [channel][bin], on the device
  std::uint32_t* host;       ///< the counts in page-locked memory, or null
  unsigned* ticket;          ///< number of blocks that have ended; zero between launches
  int copies, copy_entries;  ///< number of copies of the sums, and entries of a copy: block b adds to copy b % copies
  int tables, fine, bins, channels, depth;
  bool by_value;  ///< entries are values, which are gathered into bins; otherwise entries are bins
  bool here;      ///< whether the last block of this launch gathers; otherwise a later launch does
  std::uint8_t table[max_channels];
};

/// A plane of 16-bit samples that are counted by value.
struct WordJob {
  cuda::SetView view;
  int access;  ///< see access_bytes()
  int table;
  Share share;
};
struct WordParams {
  WordJob jobs[3];
  Gather gather;
};

/// A channel set, or three planes that are read together.
struct PixelJob {
  cuda::SetView views[3];  ///< views of the set, or of the three planes
  PixelTables tables;
  int access;  ///< smallest access of all views: see access_bytes()
  Share share;
};
struct PixelParams {
  PixelJob jobs[3];
  int bins, bin_shift;  ///< entry = sample · bins >> bin_shift
  LumaWeights weights;
  Gather gather;
};

/// The kernel with PixelParams and blocks of tuning.pixel_threads.
const void* pixel_kernel(const FormatInfo& format, bool three_planes);
/// The kernel with WordParams, blocks of tuning.pixel_threads and word_counter_bytes of dynamic shared memory.
const void* word_kernel();
/// The kernel with a Gather and blocks of tuning.gather_threads.
const void* gather_kernel();

}  // namespace cudavision::histogram
