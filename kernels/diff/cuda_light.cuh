// SPDX-License-Identifier: LGPL-2.1-or-later
// Whether light was switched, or the scene cut: decided on the device, in the middle of a frame, without the host.
//
//   compare   every block: adds its changed pixels to State::above
//             the last block: above > light_limit, and the reference not too young?
//                 ->  State::light, State::began, Verdict (for the host); clears the sums
//   restart   if light: the frame becomes the reference (cuda_light.cu; of a mixture: cuda_mog2.cu runs again)
//   open      if light: nothing changed
//
// The kernels follow each other on one stream, so each sees the decision; any number of frames may be in flight.
#pragma once

#include "kernels/diff/cuda_params.cuh"

namespace cudavision::diff {

/// Whether the reference began so late that the frame is not compared yet.
__device__ __forceinline__ bool waits_for_reference(const KernelParams& p) {
  return p.interval > 1 && p.number < p.state->began + p.interval;
}

/// What decides that light was switched.
struct LightRule {
  unsigned long long number;  ///< of the frame
  std::uint32_t limit;        ///< pixels; light was switched if more changed
  unsigned age;               ///< frames that the reference must have before
};

/// Adds the changed pixels of a block. Returns whether it is the last block of the grid, which sees what all others
/// stored. Called by one thread of each block.
__device__ __forceinline__ bool is_last_block(State& state, unsigned above) {
  if (above) atomicAdd(&state.above, above);
  __threadfence();
  const unsigned last = gridDim.x * gridDim.y - 1;
  const bool is_last = atomicInc(&state.blocks, last) == last;  // which sets it to 0 again
  __threadfence();
  return is_last;
}

/// Adds the changed pixels of a block; the last block of the grid decides, and tells the host. Called by one thread of
/// each block.
__device__ __forceinline__ void decide_light(State& state, Verdict* verdict, const LightRule& rule, bool compared,
                                             unsigned above) {
  if (!is_last_block(state, above)) return;
  const bool light = atomicExch(&state.above, 0) > rule.limit && rule.number >= state.began + rule.age;
  state.light = light;
  if (light) state.began = rule.number;
  *verdict = {compared, light ? Cause::light : Cause::none, 0, 0, 0};
}

}  // namespace cudavision::diff
