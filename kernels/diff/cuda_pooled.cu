// SPDX-License-Identifier: LGPL-2.1-or-later
// The background of Reference::pooled: the steps of pooled.hpp, each a kernel, one after the other.
//
//   pixels    (width / 128, height) blocks; a lane has one pixel. For change, a warp stores the bits of 32 pixels as one word
//   cells     a block for each cell of 16 × 16 pixels (and channel); a lane has one pixel:
//
//               pixels of the cell -> histogram in shared memory -> warp 0 finds the median: each lane adds 16 bins, the lane in which
//                                                                   the sum passes the half looks into its own
//   fill      one block (for each channel); its lanes go over the cells, round by round, until no cell is empty
//
// Where to change what:
//   the arithmetic         pooled.hpp, for both backends
//   another block shape    cuda_tuning.hpp (pooled_threads, fill_threads)
#include <algorithm>

#include "kernels/cuda/device.hpp"
#include "kernels/diff/cuda_pooled.hpp"
#include "kernels/diff/cuda_tuning.hpp"

namespace cudavision::diff {
namespace {

using pooled::bins, pooled::empty, pooled::Job;
constexpr int cell_threads = pooled::cell * pooled::cell;

/// Calls work(x, y) for the pixels of the lane. x may lie beyond the frame.
template <typename Work>
__device__ __forceinline__ void each_pixel(const Job& job, Work work) {
  const int x = blockIdx.x * tuning.pooled_threads + threadIdx.x;
  for (int y = blockIdx.y; y < job.height; y += gridDim.y) work(x, y);
}

/// `state`: the means begin if light was switched, and nothing happens else; null: the frame is prepared.
template <typename T>
__global__ void __launch_bounds__(tuning.pooled_threads) prepare(const __grid_constant__ Job job, const State* state) {
  if (state && !state->light) return;
  each_pixel(job, [&](int x, int y) {
    if (x >= job.width) return;
    pooled::prepare<T>(job, x, y, job.begin || state, job.begin && !state);
    pooled::show_mean<T>(job, x, y);
  });
}

__device__ __forceinline__ void clear(unsigned* histogram) {
  for (int i = threadIdx.x; i < bins; i += blockDim.x) histogram[i] = 0;
  __syncthreads();
}
/// The median of a histogram in shared memory, which is complete; of the lanes of warp 0.
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

/// Channel 0: the gain; others: the offset. A block has one cell, and one channel from `first` on.
__global__ void __launch_bounds__(cell_threads) measure_cells(const __grid_constant__ Job job, int first) {
  __shared__ unsigned histogram[bins];
  const int c = first + blockIdx.z, x = blockIdx.x * pooled::cell + threadIdx.x % pooled::cell;
  for (int cell_y = blockIdx.y; cell_y < job.cells_y; cell_y += gridDim.y) {
    const int y = cell_y * pooled::cell + threadIdx.x / pooled::cell, cell = cell_y * job.cells_x + blockIdx.x;
    clear(histogram);
    const bool inside = x < job.width && y < job.height, counts = inside && !job.left_out[job.at(x, y)];
    if (counts) {
      const std::size_t at = job.at(x, y);
      atomicAdd(&histogram[c == 0 ? pooled::gain_bin(job, at) : pooled::offset_bin(job, c, at, job.light[0][cell])], 1u);
    }
    const unsigned area = unsigned(__syncthreads_count(inside)), total = unsigned(__syncthreads_count(counts));
    if (threadIdx.x < 32) {
      float value = empty;
      if (total > 0 && 2 * total >= area) {
        const float middle = median(histogram, total);
        value = c == 0 ? pooled::gain_of(middle) : pooled::offset_of(middle);
      }
      if (threadIdx.x == 0) job.light[c][cell] = value;
    }
    __syncthreads();
  }
}

/// The gain of the frame, if no cell has one. All threads of the block get it.
__device__ float gain_of_frame(const Job& job, unsigned* histogram) {
  __shared__ unsigned total;
  __shared__ float gain;
  if (threadIdx.x == 0) total = 0, gain = 1;
  clear(histogram);
  for (std::size_t at = threadIdx.x; at < job.pixels(); at += blockDim.x) {
    if (job.left_out[at]) continue;
    atomicAdd(&histogram[pooled::gain_bin(job, at)], 1u);
    atomicAdd(&total, 1u);
  }
  __syncthreads();
  if (threadIdx.x < 32 && 8 * std::size_t(total) > job.pixels()) {
    const float value = pooled::gain_of(median(histogram, total));
    if (threadIdx.x == 0) gain = value;
  }
  __syncthreads();
  return gain;
}

/// Fills empty cells; smooths the gain.
__global__ void __launch_bounds__(tuning.fill_threads) fill_cells(const __grid_constant__ Job job, int first) {
  __shared__ unsigned histogram[bins];
  const int c = first + blockIdx.x, cells = job.cells_x * job.cells_y;
  float *const light = job.light[c], *const spare = job.spare + (c == 2 ? cells : 0);
  const auto each_cell = [&](auto work) {
    for (int i = threadIdx.x; i < cells; i += blockDim.x) work(i, i % job.cells_x, i / job.cells_x);
    __syncthreads();
  };
  bool any = false, left = false;
  each_cell([&](int i, int, int) { (light[i] == empty ? left : any) = true; });
  if (!__syncthreads_or(any)) {
    const float value = c == 0 ? gain_of_frame(job, histogram) : 0;
    each_cell([&](int i, int, int) { light[i] = value; });
    left = false;
  }
  while (__syncthreads_or(left)) {
    left = false;
    each_cell([&](int i, int x, int y) {
      spare[i] = pooled::filled(job, light, x, y);
      left = left || spare[i] == empty;
    });
    each_cell([&](int i, int, int) { light[i] = spare[i]; });
  }
  if (c > 0) return;
  each_cell([&](int i, int x, int y) { spare[i] = pooled::smooth(job, light, x, y); });
  each_cell([&](int i, int, int) { light[i] = spare[i]; });
}

__global__ void __launch_bounds__(tuning.pooled_threads) expect(const __grid_constant__ Job job) {
  each_pixel(job, [&](int x, int y) {
    if (x < job.width) pooled::expect(job, x, y);
  });
}
__global__ void __launch_bounds__(tuning.pooled_threads) pool(const __grid_constant__ Job job) {
  each_pixel(job, [&](int x, int y) {
    if (x < job.width) pooled::pool(job, x, y);
  });
}
__global__ void __launch_bounds__(tuning.pooled_threads)
    change(const __grid_constant__ Job job, unsigned char* foreground, int pitch) {
  each_pixel(job, [&](int x, int y) {
    const bool changed = x < job.width && pooled::change(job, x, y);
    const unsigned bits = __ballot_sync(~0u, changed);
    if (threadIdx.x % 32 == 0) *reinterpret_cast<unsigned*>(foreground + std::ptrdiff_t(y) * pitch + x / 8) = bits;
  });
}
__global__ void __launch_bounds__(tuning.pooled_threads) learn(const __grid_constant__ Job job, const State* state) {
  const std::uint64_t age = job.number - state->began;
  each_pixel(job, [&](int x, int y) {
    if (x < job.width) pooled::learn(job, x, y, age);
  });
}

const void* prepare_kernel(int sample_bytes) {
  return sample_bytes == 1 ? reinterpret_cast<const void*>(prepare<std::uint8_t>)
                           : reinterpret_cast<const void*>(prepare<std::uint16_t>);
}

/// Launches kernels until one fails.
class Launches {
 public:
  explicit Launches(cudaStream_t stream) : stream_(stream) {}
  template <typename... Arguments>
  void run(const void* kernel, dim3 grid, int threads, Arguments... values) {
    if (error_ != cudaSuccess) return;
    void* arguments[] = {&values...};
    error_ = cudaLaunchKernel(kernel, grid, dim3(unsigned(threads)), arguments, 0, stream_);
  }
  Status status() const { return cuda::check(error_, "cannot launch the background"); }

 private:
  const cudaStream_t stream_;
  cudaError_t error_ = cudaSuccess;
};

dim3 pixels_of(const Job& job, int most_rows) {
  constexpr int threads = tuning.pooled_threads;
  return dim3(unsigned((job.width + threads - 1) / threads), unsigned(std::min(job.height, most_rows)));
}
template <typename... Arguments>
const void* address(void (*kernel)(Arguments...)) {
  return reinterpret_cast<const void*>(kernel);
}

}  // namespace

Status load_pooled(int sample_bytes) {
  for (const void* kernel : {prepare_kernel(sample_bytes), address(measure_cells), address(fill_cells), address(expect),
                             address(pool), address(change), address(learn)})
    if (Status status = cuda::load_kernel(kernel, "cannot load the kernels of the background"); !status.ok()) return status;
  return {};
}

Status launch_pooled(const Job& job, int sample_bytes, unsigned char* foreground, int pitch, const State* state,
                     cudaStream_t stream) {
  Launches launches(stream);
  const dim3 pixels = pixels_of(job, job.height);
  constexpr int threads = tuning.pooled_threads;
  launches.run(prepare_kernel(sample_bytes), pixels, threads, job, static_cast<const State*>(nullptr));
  if (!job.begin) {
    const unsigned across = unsigned(job.cells_x), down = unsigned(job.cells_y), chroma = unsigned(job.channels - 1);
    if (job.compensates) {
      launches.run(address(measure_cells), dim3(across, down), cell_threads, job, 0);
      launches.run(address(fill_cells), dim3(1), tuning.fill_threads, job, 0);
    }
    if (job.compensates && chroma > 0) {
      launches.run(address(measure_cells), dim3(across, down, chroma), cell_threads, job, 1);
      launches.run(address(fill_cells), dim3(chroma), tuning.fill_threads, job, 1);
    }
    for (const void* kernel : {address(expect), address(pool)}) launches.run(kernel, pixels, threads, job);
    launches.run(address(change), pixels, threads, job, foreground, pitch);
    launches.run(address(learn), pixels, threads, job, state);
  }
  return launches.status();
}

Status launch_pooled_anew(const Job& job, int sample_bytes, const State* state, cudaStream_t stream) {
  Launches launches(stream);
  launches.run(prepare_kernel(sample_bytes), pixels_of(job, tuning.restart_blocks), tuning.pooled_threads, job, state);
  return launches.status();
}

}  // namespace cudavision::diff
