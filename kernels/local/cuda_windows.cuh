// SPDX-License-Identifier: LGPL-2.1-or-later
// Windows that slide over a channel set without tables of the picture: the launch. See cuda_windows.cu.
#pragma once

#include <vector_types.h>

#include "kernels/core/queue.hpp"
#include "kernels/cuda/rows.cuh"
#include "kernels/local/cuda_schedule.hpp"

namespace cudavision::local {

/// A channel set that can_slide().
struct WindowJob {
  cuda::SetView view;
  WindowSchedule schedule;
  int radius_x = 0, radius_y = 0;  ///< in pixels of the grid
  uint4* stored = nullptr;         ///< memory for the stored sums (see stored_bytes); not used without intervals
  bool words = false;              ///< rows of source and destination begin at multiples of 16 bytes
};

/// One launch.
struct WindowJobs {
  std::array<WindowJob, 3> sets;
  int count = 0;      ///< of sets
  int rows = 0;       ///< of a block
  double factor = 1;  ///< threshold
};

/// Loads the kernels. Errors: resource.
Status load_windows(Operation operation, int shared_limit);
/// Errors: resource.
Status launch_windows(Operation operation, const WindowJobs& jobs, const WindowLaunch& launch, Queue queue);

}  // namespace cudavision::local
