// SPDX-License-Identifier: LGPL-2.1-or-later
// The background of Reference::pooled, first kernel: prepares the frame, and measures the light in cells (see pooled.hpp).
//
//   grid: the cells of 16 × 16 pixels; a lane has one pixel
//
//     samples of the frame, mean as samples of the reference
//     pixels of the cell -> histogram of the gain in shared memory -> warp 0: median
//                        -> histograms of the offsets              -> warps 1, 2: medians
//                           each lane of a warp adds 16 bins; the lane in which the sum passes the half looks into its own
//
//   The block that ends last fills empty cells, round by round; its lanes go over all cells. In most frames there is none.
//
// Where to change what:
//   the arithmetic         pooled.hpp, for both backends
#include "kernels/diff/cuda_pooled.hpp"

namespace cudavision::diff {
namespace {

using pooled::bins, pooled::empty, pooled::Job;

/// The median of a histogram in shared memory, which is complete; of the lanes of a warp.
__device__ __forceinline__ float median(const unsigned* histogram, unsigned total) {
  constexpr int own = bins / 32;
  const int lane = threadIdx.x % 32;
  unsigned sum = 0;
  for (int i = 0; i < own; ++i) sum += histogram[lane * own + i];
  unsigned up_to = sum;
  for (int s = 1; s < 32; s *= 2) {
    const unsigned other = __shfl_up_sync(~0u, up_to, s);
    if (lane >= s) up_to += other;
  }
  const int found = __ffs(int(__ballot_sync(~0u, 2 * up_to >= total))) - 1;
  const float here = lane == found ? pooled::median_from(histogram, total, lane * own, up_to - sum) : 0;
  return __shfl_sync(~0u, here, found);
}

struct Shared {
  unsigned histograms[3][bins];
  float light[3];
  bool last;
};

__device__ __forceinline__ void clear(unsigned* histogram, int count) {
  for (int i = threadIdx.x; i < count; i += pooled_threads) histogram[i] = 0;
}

/// Measures the light of the cell of the block.
__device__ __forceinline__ void measure(const Job& job, Shared& shared, bool inside, std::size_t at) {
  const int warp = threadIdx.x / 32;
  clear(shared.histograms[0], 3 * bins);
  const bool counts = inside && !job.left_out[at];
  const unsigned area = unsigned(__syncthreads_count(inside)), total = unsigned(__syncthreads_count(counts));
  if (threadIdx.x < 3) shared.light[threadIdx.x] = empty;
  if (!pooled::enough_in_cell(total, area)) return __syncthreads();
  if (counts) atomicAdd(&shared.histograms[0][pooled::gain_bin(job, at)], 1u);
  __syncthreads();
  if (warp == 0) {
    const float gain = pooled::gain_of(median(shared.histograms[0], total));
    if (threadIdx.x == 0) shared.light[0] = gain;
  }
  __syncthreads();
  if (job.channels == 1) return;
  for (int c = 1; c < 3 && counts; ++c) atomicAdd(&shared.histograms[c][pooled::offset_bin(job, c, at, shared.light[0])], 1u);
  __syncthreads();
  if (warp == 1 || warp == 2) {
    const float offset = pooled::offset_of(median(shared.histograms[warp], total));
    if (threadIdx.x % 32 == 0) shared.light[warp] = offset;
  }
  __syncthreads();
}

/// Stores the light of the cell. Returns whether all other blocks have stored theirs; all lanes get the same.
__device__ __forceinline__ bool store(const Job& job, Shared& shared, State& state) {
  if (threadIdx.x == 0) {
    if (job.compensates && !job.begin) {
      for (int c = 0; c < job.channels; ++c) job.light[c][blockIdx.y * job.cells_x + blockIdx.x] = shared.light[c];
      if (shared.light[0] == empty) atomicAdd(&state.empty_cells, 1u);
    }
    __threadfence();
    const unsigned most = gridDim.x * gridDim.y - 1;
    shared.last = atomicInc(&state.cells, most) == most;  // which sets it to 0 again
    __threadfence();
  }
  __syncthreads();
  return shared.last;
}

/// The gain of the frame, if no cell has one. All lanes get it.
__device__ float gain_of_frame(const Job& job, Shared& shared) {
  __shared__ unsigned total;
  if (threadIdx.x == 0) total = 0, shared.light[0] = 1;
  clear(shared.histograms[0], bins);
  __syncthreads();
  const unsigned across = (job.width + pooled::sparse - 1) / pooled::sparse,
                 down = (job.height + pooled::sparse - 1) / pooled::sparse;
  for (unsigned i = threadIdx.x; i < across * down; i += pooled_threads) {
    const std::size_t at = job.at(int(i % across) * pooled::sparse, int(i / across) * pooled::sparse);
    if (job.left_out[at]) continue;
    atomicAdd(&shared.histograms[0][pooled::gain_bin(job, at)], 1u);
    atomicAdd(&total, 1u);
  }
  __syncthreads();
  if (threadIdx.x < 32 && pooled::enough_in_frame(total, across * down)) {
    const float gain = pooled::gain_of(median(shared.histograms[0], total));
    if (threadIdx.x == 0) shared.light[0] = gain;
  }
  __syncthreads();
  return shared.light[0];
}

/// Fills empty cells. `all`: whether all are empty.
__device__ void fill(const Job& job, Shared& shared, bool all) {
  const auto each_cell = [&](auto work) {
    for (int c = 0; c < job.channels; ++c)
      for (int i = threadIdx.x; i < job.cells_x * job.cells_y; i += pooled_threads) work(c, i);
    __syncthreads();
  };
  if (all) {
    const float gain = gain_of_frame(job, shared);
    return each_cell([&](int c, int i) { job.light[c][i] = c == 0 ? gain : 0; });
  }
  bool left = true;
  while (__syncthreads_or(left)) {
    left = false;
    each_cell([&](int c, int i) {
      const auto of = [&](int x, int y) { return __ldcg(&job.light[c][y * job.cells_x + x]); };
      job.spare[c][i] = pooled::filled(job, i % job.cells_x, i / job.cells_x, of);
      left = left || job.spare[c][i] == empty;
    });
    each_cell([&](int c, int i) { job.light[c][i] = job.spare[c][i]; });
  }
}

template <typename T>
__global__ void __launch_bounds__(pooled_threads) measure_light(const __grid_constant__ Job job, State* state) {
  __shared__ Shared shared;
  const int x = blockIdx.x * pooled::cell + threadIdx.x % pooled::cell, y = blockIdx.y * pooled::cell + threadIdx.x / pooled::cell;
  const bool inside = job.contains(x, y);
  if (inside) pooled::prepare<T>(job, x, y, state->light);
  if (job.compensates && !job.begin) measure(job, shared, inside, job.at(x, y));
  if (!store(job, shared, *state)) return;
  const unsigned empty_cells = state->empty_cells;
  if (empty_cells) fill(job, shared, empty_cells == unsigned(job.cells_x * job.cells_y));
  __syncthreads();
  if (threadIdx.x == 0) state->empty_cells = state->light = 0;
}

}  // namespace

const void* pooled_light_kernel(int sample_bytes) {
  return sample_bytes == 1 ? reinterpret_cast<const void*>(measure_light<std::uint8_t>)
                           : reinterpret_cast<const void*>(measure_light<std::uint16_t>);
}

}  // namespace cudavision::diff
