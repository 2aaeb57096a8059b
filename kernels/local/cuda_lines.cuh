// SPDX-License-Identifier: LGPL-2.1-or-later
// Launches windows that slide over any channel set. See cuda_lines.cu.
#pragma once

#include "kernels/core/queue.hpp"
#include "kernels/cuda/rows.cuh"
#include "kernels/local/cuda_lines_schedule.hpp"

namespace cudavision::local {

/// One channel set. Samples outside the frame are loaded as zeros.
struct LineJob {
  cuda::SetView views[3];  ///< [0]: the set; all three: the planes from which luma is computed
  LineSchedule schedule;
  int radius_x = 0, radius_y = 0;   ///< radii of the window, in pixels of the set
  std::uint32_t* stored = nullptr;  ///< running column sums; unused if there are none
  double factor = 1;                ///< factor of the threshold
  bool blue_first = false;          ///< order of the interleaved samples of luma: blue, green, red
  bool words = false;         ///< whether chunks of the source, and the pixels of a lane, are aligned to their size
  bool stores_words = false;  ///< whether the pixels of a lane are aligned to their size in source and destination
  /// Whether the kernels use channel c of a pixel as channel c − 1, and channel 0 as the last one:
  /// LineShape::rotated().
  bool rotated = false;
  // For bytes of sets of two and four channels, as selectors of __byte_perm():
  std::uint32_t selectors[4];  ///< [i]: the sample that is byte i of a word after the rotation
  std::uint32_t merger = 0;    ///< from results and stored bytes to bytes in stored order

  void set_rotation(const LineShape& shape) {
    const int channels = shape.channels;
    rotated = shape.rotated();
    for (int i = 0; i < 4; ++i) {
      const int c = i % channels, stored = (c + rotated) % channels, before = (c + channels - rotated) % channels;
      selectors[i] = std::uint32_t(0x4440 + i - c + stored);
      merger |= std::uint32_t(shape.filtered >> c & 1 ? i - c + before : 4 + i) << 4 * i;
    }
  }
};

inline constexpr int line_stored_threads = 128;  ///< threads of a block of running_sums

/// The kernels of a shape, with a LineJob as their parameter; nullptr: no kernel.
struct LineKernels {
  const void *running = nullptr, *sliding = nullptr;
};
LineKernels line_kernels(const LineShape& shape);

/// Loads the kernels for a set. Errors: resource.
Status load_lines(const LineShape& shape, int shared_limit);
/// Fills the own channels of a set with `value`: loads and launches the kernel. Errors: resource.
Status load_fill(const FormatInfo& format, int set);
Status launch_fill(const FormatInfo& format, int set, const cuda::SetView& view, int value, Queue queue);
/// Launches the kernels for a set. Errors: resource.
Status launch_lines(const LineShape& shape, const LineJob& job, Queue queue);

}  // namespace cudavision::local
