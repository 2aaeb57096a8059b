// SPDX-License-Identifier: LGPL-2.1-or-later
// How the CUDA backend divides the samples of a frame among kernels, launches and blocks. Plain C++, tested without a
// GPU.
#pragma once

#include <climits>

#include "kernels/core/region.hpp"
#include "kernels/histogram/cuda_tuning.hpp"
#include "kernels/histogram/plan.hpp"

namespace cudavision::histogram {

/// The maximum number of rectangles of a set in one launch; a frame with more takes several launches.
inline constexpr int max_rects = 32;
/// The bytes of an entry if each lane has a separate counter.
inline constexpr int lane_entry_bytes = 32 * 4;
/// The number of values in the word kernel, and the bytes of their counters.
inline constexpr int word_values = 65536, word_counter_bytes = 2 * word_values;

/// Limits of the device.
struct Limits {
  int multiprocessors = 1;
  int shared_bytes = 0;   ///< largest number of bytes of dynamic shared memory of a block
  int pixel_entries = 0;  ///< largest number of 32-bit counters in a block
};
/// `shared_limit`: bytes of shared memory that a block may have.
Limits limits_of(int multiprocessors, int shared_limit);

/// The blocks of one job, and the rectangles that they count.
struct Share {
  int first_block = INT_MAX, blocks = 1;
  int rect_count = 0;
  Rect rects[max_rects];
};

/// The tables in which the pixel kernel counts a set. A job has several passes if its entries do not fit in shared
/// memory: each pass reads all samples and counts some of the entries.
struct PixelTables {
  int base[4];       ///< [channel]: the first entry of its table, relative to first_entry; −1: not counted
  int luma_base;     ///< the first entry of the table of luma computed from R, G and B
  int position[3];   ///< positions of R, G and B among the channels
  int first_entry;   ///< the job's first entry in the sums
  int entries;       ///< number of entries of all tables of the job
  int pass_entries;  ///< number of entries that a block counts
  int passes;
  bool by_lane;  ///< whether each lane has separate counters
};
/// `set`: set of the format; 0 if three planes are read together.
PixelTables pixel_tables(const Plan& plan, int set, const Limits& limits);

/// Whether the word kernel counts a set: one channel, which is counted by value in 65536 entries.
bool counts_words(const Plan& plan, int set, const Limits& limits);

/// One launch of the word kernel. Jobs are consecutive: job i + 1 begins at the block after the last block of job i.
struct WordLaunch {
  int blocks = 0;  ///< 0: nothing to count
  int jobs = 0;
  int sets[3] = {};  ///< the set of each job
  Share shares[3];
};
/// `from`: the first piece of each set in this launch.
WordLaunch schedule_words(const Plan& plan, const Limits& limits, const SetPieces& pieces, std::size_t from);

/// One launch of the pixel kernel. Job i is set i, or the three planes of a frame. A set without samples has no blocks;
/// job 0 always has a block, which ends the launch.
struct PixelLaunch {
  bool any = false;  ///< whether there are samples to count
  int blocks = 0;
  std::size_t shared_bytes = 0;  ///< dynamic shared memory of a block
  PixelTables tables[3] = {};
  Share shares[3];
};
/// The launch that counts those sets that the word kernel does not count.
PixelLaunch schedule_pixels(const Plan& plan, const Limits& limits, const SetPieces& pieces, std::size_t from);

/// The quads of a row that a lane of the sharpness kernel takes at once: about 16 bytes.
constexpr int sharpness_quads(int channels, int sample_bytes) {
  return channels * sample_bytes >= 4 ? 1 : 4 / (channels * sample_bytes);
}
/// The pixels of a row that a warp of the sharpness kernel sums up: all its quads except the last, which is only a
/// neighbour.
constexpr int sharpness_unit(int channels, int sample_bytes) {
  return 128 * sharpness_quads(channels, sample_bytes) - 4;
}

/// One launch of the sharpness kernel.
struct SharpnessLaunch {
  int rows = 1;  ///< rows of a tile
  Share share;
};
/// `from`: the first piece in this launch.
SharpnessLaunch schedule_sharpness(Format format, int multiprocessors, const std::vector<Rect>& pieces,
                                   std::size_t from);

/// Whether a separate kernel gathers the sums into bins, instead of the last block.
bool gathers_apart(const Plan& plan);

}  // namespace cudavision::histogram
