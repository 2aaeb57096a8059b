// SPDX-License-Identifier: LGPL-2.1-or-later
// What the parts of compose_tiles share: its parameters, and the pixels of a thread.
//
//          columns 0 … 31        columns 32 … 63
//   row 0  lane 0, 1 … 31        lane 0, 1 … 31       A thread has `columns` × `rows` pixels. Its columns are 32 apart, so that
//   row 1  lane 0, 1 … 31        lane 0, 1 … 31       the lanes of a warp access neighboring samples.
#pragma once

#include "kernels/blend/arithmetic.hpp"
#include "kernels/blend/cuda_schedule.hpp"

namespace cudavision::blend {
namespace {

using std::uint16_t;
using std::uint32_t;
using std::uint8_t;

constexpr int columns = tuning.columns, rows = tuning.rows;
constexpr int warps = tuning.warps;

/// Parameters of compose_tiles for up to N layers, passed by value.
template <int N>
struct ComposeParams {
  Target target;
  int count, tile_height;
  std::uint64_t hiding;  ///< bit l: layer l hides everything below it
  int4 visible[N];       ///< of each layer: left, top, right, bottom
  Layer layers[N];
};
static_assert(sizeof(ComposeParams<tuning.few_layers>) <= 4096 && sizeof(ComposeParams<max_pads>) <= 32764, "kernel arguments");

/// A value of each of the thread's pixels.
template <typename T>
using Pixels = T[rows][columns];
/// The components of each of the thread's pixels.
using Samples = float[rows][columns][4];

/// The thread's pixels, as coordinates in a pad.
struct PadPoints {
  int x[columns], y[rows];
};

}  // namespace
}  // namespace cudavision::blend
