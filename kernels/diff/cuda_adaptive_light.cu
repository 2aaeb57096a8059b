// SPDX-License-Identifier: LGPL-2.1-or-later
// The background of Reference::adaptive, first kernel: prepares the frame, and measures the light in cells (see
// adaptive.hpp).
//
//   grid: the cells of 16 × 16 pixels; a lane has one pixel
//
//     samples of the frame; the mean as samples of the reference
//     bins of the gain of 256 pixels in shared memory     -> warp 0: median
//     bins of the offsets                                 -> warps 1, 2: medians
//         a lane has 8 bins; the warp tests the bin of the median in the last frame, or halves the range of the
//         median in 9 steps, each of which counts the bins below the middle
//
//   The last block to finish fills empty cells, repeatedly; its lanes go over all cells. Most frames have none.
//
// Where to change what:
//   the arithmetic         adaptive.hpp and adaptive_light.hpp, for both backends
#include "kernels/cuda/ordered.cuh"
#include "kernels/cuda/warp.cuh"
#include "kernels/diff/cuda_adaptive.cuh"
#include "kernels/diff/cuda_adaptive.hpp"
#include "kernels/diff/cuda_tuning.hpp"

namespace cudavision::diff {
namespace {

using adaptive::bins, adaptive::empty, adaptive::Job;

constexpr int threads = adaptive::cell * adaptive::cell;
constexpr std::uint16_t no_bin = 0xffff;  // marks a pixel that does not count

struct Shared {
  std::uint16_t bins[3][threads];
  float light[3];
  bool last;
};

/// The median of `total` bins of the pixels of a cell. All lanes of a warp compute it together. guess: a bin near the
/// median. In nine of ten cells the median is in the same bin as in the last frame, which takes two counts instead of
/// ten.
__device__ __forceinline__ float median(const std::uint16_t (&all)[threads], unsigned total, int guess) {
  constexpr int own = threads / 32;
  int mine[own];
#pragma unroll
  for (int i = 0; i < own; ++i) mine[i] = all[threadIdx.x % 32 + 32 * i];
  const auto count_below = [&](int bin) {
    unsigned count = 0;
#pragma unroll
    for (int i = 0; i < own; ++i) count += mine[i] < bin;
    return cuda::warp_sum(count);
  };
  const unsigned before = count_below(guess), up_to = count_below(guess + 1);
  if (2 * before < total && 2 * up_to >= total) return adaptive::median_in(guess, before, up_to - before, total);
  int low = 0;  // fewer than half of the values are below `low`
  unsigned below = 0;
#pragma unroll
  for (int step = bins / 2; step > 0; step /= 2) {
    const unsigned count = count_below(low + step);
    if (2 * count < total) low += step, below = count;
  }
  return adaptive::median_in(low, below, count_below(low + 1) - below, total);
}

/// The light of the last frame in the cell of the block and the channel of this warp.
__device__ __forceinline__ const float* light_before(const Job& job) {
  return job.light[threadIdx.x / 32] + blockIdx.y * job.cells_x + blockIdx.x;
}
/// Measures the light of the cell of the block.
template <int channels>
__device__ __forceinline__ void measure(const Job& job, Shared& shared, bool inside,
                                        const adaptive::Sampled<channels>& sampled) {
  const int warp = threadIdx.x / 32;
  const float before = warp < channels ? *light_before(job) : 0;
  const bool counts = inside && adaptive::shows_light(sampled.recent);
  shared.bins[0][threadIdx.x] = counts ? std::uint16_t(adaptive::gain_bin(sampled.value[0], sampled.mean[0])) : no_bin;
  if (threadIdx.x < 3) shared.light[threadIdx.x] = empty;
  const unsigned area = unsigned(__syncthreads_count(inside)), total = unsigned(__syncthreads_count(counts));
  if (!adaptive::enough_in_cell(total, area)) return;
  if (warp == 0) {
    const float gain = adaptive::gain_of(median(shared.bins[0], total, adaptive::bin_of_gain(before)));
    if (threadIdx.x == 0) shared.light[0] = gain;
  }
  __syncthreads();
  if constexpr (channels > 1) {
#pragma unroll
    for (int c = 1; c < channels; ++c)
      shared.bins[c][threadIdx.x] =
          counts ? std::uint16_t(adaptive::offset_bin(sampled.value[c], sampled.mean[c], shared.light[0])) : no_bin;
    __syncthreads();
    if (warp == 1 || warp == 2) {
      const float offset = adaptive::offset_of(median(shared.bins[warp], total, adaptive::bin_of_offset(before)));
      if (threadIdx.x % 32 == 0) shared.light[warp] = offset;
    }
    __syncthreads();
  }
}

/// Stores the light of the cell. Returns whether all other blocks have stored theirs; all lanes get the same.
__device__ __forceinline__ bool store(const Job& job, Shared& shared, State& state) {
  if (threadIdx.x == 0) {
    if (job.compensates) {
      for (int c = 0; c < job.channels; ++c)
        job.light[c][blockIdx.y * job.cells_x + blockIdx.x] = job.begin ? empty : shared.light[c];
      if (!job.begin && shared.light[0] == empty) atomicAdd(&state.empty_cells, 1u);
    }
    const unsigned last = gridDim.x * gridDim.y - 1;
    shared.last = cuda::ordered_increment(state.cells, last) == last;  // the increment also resets the counter to 0
  }
  __syncthreads();
  return shared.last;
}

/// The gain of the frame, in all lanes, for the case that no cell has a gain.
__device__ float gain_of_frame(const Job& job) {
  __shared__ unsigned histogram[bins], total;
  __shared__ float gain;
  for (int i = threadIdx.x; i < bins; i += threads) histogram[i] = 0;
  if (threadIdx.x == 0) total = 0;
  __syncthreads();
  const unsigned across = (job.width + adaptive::sparse - 1) / adaptive::sparse,
                 down = (job.height + adaptive::sparse - 1) / adaptive::sparse;
  for (unsigned i = threadIdx.x; i < across * down; i += threads) {
    const std::size_t at = job.at(int(i % across) * adaptive::sparse, int(i / across) * adaptive::sparse);
    if (!adaptive::shows_light(int(job.recent[at]))) continue;
    atomicAdd(&histogram[adaptive::gain_bin(adaptive::value_of(job, 0, at), job.mean[at])], 1u);
    atomicAdd(&total, 1u);
  }
  __syncthreads();
  if (threadIdx.x == 0)
    gain =
        adaptive::enough_in_frame(total, across * down) ? adaptive::gain_of(adaptive::median_of(histogram, total)) : 1;
  __syncthreads();
  return gain;
}

/// Fills empty cells. `all`: whether all are empty.
__device__ void fill(const Job& job, bool all) {
  const auto each_cell = [&](auto work) {
    for (int c = 0; c < job.channels; ++c)
      for (int i = threadIdx.x; i < job.cells_x * job.cells_y; i += threads) work(c, i);
    __syncthreads();
  };
  if (all) {
    const float gain = gain_of_frame(job);
    return each_cell([&](int c, int i) { job.light[c][i] = c == 0 ? gain : 0; });
  }
  bool left = true;
  while (__syncthreads_or(left)) {
    left = false;
    each_cell([&](int c, int i) {
      const auto of = [&](int x, int y) { return __ldcg(&job.light[c][y * job.cells_x + x]); };
      job.spare[c][i] = adaptive::filled(job, i % job.cells_x, i / job.cells_x, of);
      left = left || job.spare[c][i] == empty;
    });
    each_cell([&](int c, int i) { job.light[c][i] = job.spare[c][i]; });
  }
}

template <typename T, int channels, int scale>
__global__ void __launch_bounds__(threads, tuning.light_blocks)
    measure_light(const __grid_constant__ AdaptiveChange p) {
  __shared__ Shared shared;
  const Job& job = p.job;
  State& state = *p.state;
  const int x = blockIdx.x * adaptive::cell + threadIdx.x % adaptive::cell,
            y = blockIdx.y * adaptive::cell + threadIdx.x / adaptive::cell;
  const bool inside = job.contains(x, y);
  // Prefetches the light, without a register, while the lane waits for the samples.
  if (threadIdx.x % 32 == 0 && threadIdx.x / 32 < channels)
    asm volatile("prefetch.global.L2 [%0];" : : "l"(light_before(job)));
  adaptive::Sampled<channels> sampled{};
  if (inside) sampled = adaptive::prepare<T, channels, scale>(job, state, x, y);
  if (job.compensates && !job.begin) measure(job, shared, inside, sampled);
  if (!store(job, shared, state)) return;
  const unsigned empty_cells = state.empty_cells;
  if (empty_cells) fill(job, empty_cells == unsigned(job.cells_x * job.cells_y));
  __syncthreads();
  if (threadIdx.x == 0) state.empty_cells = state.anew = 0;
}

}  // namespace

AdaptiveKernel adaptive_light_kernel(int sample_bytes, int channels, int log2_scale, int width, int height) {
  const void* const function = adaptive::with_channels(channels, [=](auto c) {
    return adaptive::with_scale(log2_scale, [=](auto scale) {
      return sample_bytes == 1 ? reinterpret_cast<const void*>(measure_light<std::uint8_t, c, scale>)
                               : reinterpret_cast<const void*>(measure_light<std::uint16_t, c, scale>);
    });
  });
  return {function, dim3(unsigned(adaptive::cells_along(width)), unsigned(adaptive::cells_along(height))), threads};
}

}  // namespace cudavision::diff
