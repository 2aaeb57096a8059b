// SPDX-License-Identifier: LGPL-2.1-or-later
// Launches local filters that use summed-area tables. See cuda_tables.cu.
#pragma once

#include "kernels/core/queue.hpp"
#include "kernels/cuda/rows.cuh"
#include "kernels/integral/integral.hpp"
#include "kernels/local/plan.hpp"

namespace cudavision::local {

/// One channel set, its padded tables and its window.
struct TableJob {
  cuda::SetView view;
  const unsigned char *sums[4], *squares[4];  ///< [channel]; nullptr: chroma that becomes neutral
  std::ptrdiff_t sums_pitch, squares_pitch;
  Window window;
  int neutral;
  Operation operation;
  double factor;
};

/// Loads the kernels for a format's sets. Errors: resource.
Status load_tables(const FormatInfo& format, integral::SumType type);
/// Computes channel set `set`. Errors: resource.
Status launch_tables(const FormatInfo& format, integral::SumType type, int set, const TableJob& job, Queue queue);

}  // namespace cudavision::local
