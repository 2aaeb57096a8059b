// SPDX-License-Identifier: LGPL-2.1-or-later
// The numbers that decide the speed of the CUDA kernels but not their results. None of them has been measured yet.
#pragma once

namespace cudavision::local {

struct Tuning {
  /// Box filters: warps of a block, one above the other. Each computes 128 pixels of a row.
  int box_warps = 4;  // sweep: 2 4 8
  /// Non-local means: width of a block's tile, a multiple of nlm_run.
  int nlm_width = 64;  // sweep: 32 64 128
  /// Non-local means: height of a block's tile, a multiple of nlm_run.
  int nlm_height = 32;  // sweep: 16 32
  /// Non-local means: results of a thread, side by side. Each run begins with a sum over a whole patch.
  int nlm_run = 8;  // sweep: 4 8 16
};
inline constexpr Tuning tuning;

}  // namespace cudavision::local
