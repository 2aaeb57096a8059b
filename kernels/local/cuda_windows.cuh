// SPDX-License-Identifier: LGPL-2.1-or-later
// Launches windows that slide over channel sets, without tables of the picture. See cuda_windows.cu.
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
  uint4* stored = nullptr;         ///< memory for the stored sums (see stored_bytes); unused without intervals
  bool words = false;              ///< whether rows of source and destination are aligned to 16 bytes
};

/// The parameters of a launch.
struct WindowJobs {
  std::array<WindowJob, 3> sets;
  int count = 0;      ///< number of sets
  int rows = 0;       ///< rows of a block
  double factor = 1;  ///< factor of the threshold
};

/// Loads the kernels. Errors: resource.
Status load_windows(Operation operation, int shared_limit);
/// Launches the kernels. Errors: resource.
Status launch_windows(Operation operation, const WindowJobs& jobs, const WindowLaunch& launch, Queue queue);

}  // namespace cudavision::local
