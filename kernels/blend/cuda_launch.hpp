// SPDX-License-Identifier: LGPL-2.1-or-later
// The families of CUDA kernels. Each function launches one kernel and does not wait; the caller checks cudaGetLastError().
#pragma once

#include "kernels/blend/cuda_schedule.hpp"

namespace cudavision::blend {

/// Mixes two pictures of the output's 8-bit format.
void mix_pair(const PairLaunch& launch, Queue queue);

/// The same with an operator on R', G' and B'.
void operate_pair(const PairLaunch& launch, const Target& target, Queue queue);

/// Composes the tiles that schedule_compose() gives to lay_tiles, and the others.
void lay_direct(const Target& target, const std::vector<Layer>& layers, const ComposeLaunch& launch, Queue queue);
void compose_pixels(const Target& target, const std::vector<Layer>& layers, const ComposeLaunch& launch, Queue queue);

}  // namespace cudavision::blend
