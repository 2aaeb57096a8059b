// SPDX-License-Identifier: LGPL-2.1-or-later
// How the CUDA backend divides the tables of a plan: tiles, rows of a warp, one or two blocks per tile, scratch memory.
// Plain C++, tested without a GPU.
#pragma once

#include <vector>

#include "kernels/integral/cuda_params.hpp"
#include "kernels/integral/plan.hpp"

namespace cudavision::integral {

/// All sums of a plan, or all sums of squares, which one kernel computes.
struct Schedule {
  std::vector<int> tables;  ///< the table of each job, as an index into Plan::tables; empty: nothing to compute
  int sample_bytes = 1;
  bool squared = false;
  SumType type = SumType::u32;
  int rows = 0;                   ///< rows of a warp
  std::size_t scratch_bytes = 0;  ///< device memory, aligned to 16 bytes; must be zero before the first launch
  KernelParams params{};          ///< all parameters that do not depend on the frame
};

/// Makes a schedule, without the addresses in scratch memory: see set_scratch().
Schedule make_schedule(const Plan& plan, bool squared);
/// Divides `scratch`, which has scratch_bytes bytes, among the jobs.
void set_scratch(Schedule& schedule, unsigned char* scratch);

/// Where the parts of a job's scratch memory begin, relative to the first part; the column sums come first.
struct ScratchParts {
  std::size_t rows, totals, end;
};
ScratchParts scratch_parts(const Schedule& schedule, const SumJob& job);

}  // namespace cudavision::integral
