// SPDX-License-Identifier: LGPL-2.1-or-later
// Decides whether the light was switched or the scene was cut: on the device, in the middle of a frame, without the
// host.
//
//   compare   every block: adds its changed pixels to State::above
//             the last block: above > light_limit, and the reference not too young?
//                 ->  State::light, State::began, Verdict (for the host); clears the sums
//   open      if light: nothing changed, and the frame becomes the reference (for a mixture, cuda_mog2.cu runs again
//             before that)
//
// The kernels run in order on one stream, so each sees the decision; any number of frames may be in flight.
#pragma once

#include <type_traits>

#include "kernels/core/sample.hpp"
#include "kernels/cuda/ordered.cuh"
#include "kernels/diff/arithmetic.hpp"
#include "kernels/diff/cuda_params.cuh"

namespace cudavision::diff {

/// Whether the reference began so recently that the frame is not compared yet.
__device__ __forceinline__ bool waits_for_reference(const KernelParams& p) {
  return p.interval > 1 && p.number < __ldcg(&p.state->began) + p.interval;
}

/// Adds the changed pixels of a block. Returns whether it is the last block of the grid, which sees the results of all
/// others. Called by one thread of each block.
__device__ __forceinline__ bool is_last_block(State& state, unsigned above) {
  if (above) atomicAdd(&state.above, above);
  const unsigned last = gridDim.x * gridDim.y - 1;
  return cuda::ordered_increment(state.blocks, last) == last;  // the increment also resets the counter to 0
}

/// Adds the sum of the differences of a block, and the number of its changed pixels, which may be 0. The last block of
/// the grid decides, and reports to the host. Called by one thread of each block. State::compared holds the sum in its
/// low bits and the number of blocks in its high bits: one atomic access updates both.
__device__ __forceinline__ void finish_comparison(const KernelParams& p, bool compared, std::uint32_t sum,
                                                  std::uint32_t above) {
  constexpr int sum_bits = 44;  // 2^14 × 2^14 pixels of 16 bits
  constexpr unsigned long long block = 1ull << sum_bits;
  State& state = *p.state;
  // A block with changed pixels releases its count together with its sum. The additions of other blocks pass it on,
  // because each reads and writes the sum in one step, and the last block acquires it. Blocks without changed pixels
  // need no ordering.
  if (above) atomicAdd(&state.above, above);
  const unsigned long long before =
      above ? cuda::ordered_add(state.compared, block + sum) : atomicAdd(&state.compared, block + sum);
  if (before >> sum_bits != gridDim.x - 1) return;
  state.compared = 0;
  bool light = false;
  if (p.detects_light) {
    cuda::ordered_from_here();
    light = atomicExch(&state.above, 0) > p.light_limit && p.number >= state.began + p.light_age;
    state.light = light;
    if (light) state.began = p.number;
  }
  *p.verdict = {compared, light ? Cause::light : Cause::none, 0, 0, (before & (block - 1)) + sum};
}

/// Makes the frame the reference. Each block copies its share of the rows of all planes.
///
///     src |s s s s …|  ->  first      |s s s s …|        as stored
///                      ->  background |S · S · …|        sample values with 8 or 16 fractional bits
///
/// Not inlined, because it is rare.
template <typename T>
__device__ __noinline__ void restart_rows(const Restart& r) {
  using Fixed = typename std::conditional<sizeof(T) == 1, std::uint16_t, std::uint32_t>::type;
  for (const Restart::Plane& plane : r.planes) {
    for (int row = int(blockIdx.x); row < plane.rows; row += int(gridDim.x)) {
      const auto at = [row](const View& view) { return view.data + std::ptrdiff_t(row) * view.pitch; };
      const T* const from = reinterpret_cast<const T*>(at(plane.src));
      for (int i = int(threadIdx.x); i < plane.samples; i += int(blockDim.x)) {
        if (plane.first.data) reinterpret_cast<T*>(at(plane.first))[i] = from[i];
        if (plane.background.data)
          reinterpret_cast<Fixed*>(at(plane.background))[i] =
              Fixed(std::uint32_t(sample_of(from[i], r.shift, r.max)) << background_bits(sizeof(T)));
      }
    }
  }
}

}  // namespace cudavision::diff
