// SPDX-License-Identifier: LGPL-2.1-or-later
// The families of CUDA kernels. Each function launches one kernel and does not wait; the caller checks
// cudaGetLastError().
#pragma once

#include "kernels/blend/cuda_schedule.hpp"

namespace cudavision::blend {

/// Mixes two pictures of the output's 8-bit format.
void mix_pair(const PairLaunch& launch, Queue queue);

/// Combines two pictures of the output's 8-bit format with an operator on R', G' and B'.
void operate_pair(const PairLaunch& launch, const Target& target, Queue queue);

/// Composes the parts that schedule_parts() assigns to compose_direct_tiles.
void compose_direct(const Target& target, const std::vector<Layer>& layers, const ComposeLaunch& launch,
                    const Parts& parts, Queue queue);
/// Composes the parts that schedule_parts() assigns to compose_simple_parts. `overlaps`: the launch may start before
/// the earlier launch of compose_direct_tiles has ended.
void compose_simple(const Target& target, const std::vector<Layer>& layers, const ComposeLaunch& launch,
                    const Parts& parts, bool overlaps, Queue queue);
/// Composes the tiles that schedule_compose() does not assign to compose_direct_tiles.
void compose_pixels(const Target& target, const std::vector<Layer>& layers, const ComposeLaunch& launch, Queue queue);

}  // namespace cudavision::blend
