// SPDX-License-Identifier: LGPL-2.1-or-later
// Windows that slide over a channel set without tables of the picture: the launch. See cuda_windows.cu.
#pragma once

#include "kernels/core/queue.hpp"
#include "kernels/cuda/rows.cuh"
#include "kernels/local/cuda_schedule.hpp"

namespace cudavision::local {

/// A channel set that can_slide().
struct WindowJob {
  cuda::SetView view;
  WindowSchedule schedule;
  int radius_x = 0, radius_y = 0;  ///< in samples of the grid
  /// Memory for the stored sums (see stored_bytes); not used without intervals.
  std::uint16_t* sums = nullptr;
  std::uint32_t* squares = nullptr;
  bool words = false;  ///< chunks of source and destination begin at multiples of their size
};

/// One launch.
struct WindowJobs {
  std::array<WindowJob, 3> sets;
  int count = 0;  ///< of sets
  int rows = 0, batch = 0;
  double factor = 1;  ///< threshold
};

/// Loads the kernels. Errors: resource.
Status load_windows(Operation operation, int shared_limit);
/// Errors: resource.
Status launch_windows(Operation operation, const WindowJobs& jobs, const WindowLaunch& launch, Queue queue);

}  // namespace cudavision::local
