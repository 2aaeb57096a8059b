// SPDX-License-Identifier: LGPL-2.1-or-later
// Launching windows that slide over a channel set, without tables of the picture. See cuda_windows.cu.
#pragma once

#include <vector_types.h>

#include "kernels/core/queue.hpp"
#include "kernels/cuda/rows.cuh"
#include "kernels/local/cuda_schedule.hpp"

namespace cudavision::local {

/// A channel set for which can_slide() is true.
struct WindowJob {
  cuda::SetView view;
  WindowSchedule schedule;
  int radius_x = 0, radius_y = 0;  ///< radii of the window, in pixels of the grid
  uint4* stored = nullptr;         ///< memory for the stored sums (see stored_bytes); not used without intervals
  bool words = false;              ///< rows of source and destination begin at multiples of 16 bytes
};

/// The parameters of one launch.
struct WindowJobs {
  std::array<WindowJob, 3> sets;
  int count = 0;      ///< number of sets
  int rows = 0;       ///< rows of a block
  double factor = 1;  ///< factor of the threshold
};

/// Loads the kernels. Errors: resource.
Status load_windows(Operation operation, int shared_limit);
/// Errors: resource.
Status launch_windows(Operation operation, const WindowJobs& jobs, const WindowLaunch& launch, Queue queue);

}  // namespace cudavision::local
