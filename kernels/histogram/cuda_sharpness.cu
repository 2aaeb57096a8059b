// SPDX-License-Identifier: LGPL-2.1-or-later
// Sums of luma in one pass: brightness, gradients, and the difference from the previous frame.
//
//   rectangle: tiles of `rows` rows; a warp sums up a tile at a time, from top to bottom
//   +--------+--------+--------+
//   | warp 0 | warp 1 | warp 2 |   tile: `quads` groups of 32 quads (4 pixels each), side by side
//   +--------+--------+--------+   +-------------+-------------+-----+
//   | warp 3 | …                   | lanes 0 … 31| lanes 0 … 31|  …  |   the last quad of a tile is the first of the
//                                  +-------------+-------------+-----+   next tile: here it is only a neighbour
//
//   row y      Y0 Y1 Y2 Y3 | Y4 …   right: the same words, shifted by a pixel; the next lane's first pixel by shuffle
//   row y + 1  Y0 Y1 Y2 Y3 | Y4 …   below: the row that was loaded while row y − 1 was summed up; it becomes row y
//   kept       K0 K1 K2 K3 | …      luma of the previous frame: read by the lane that then overwrites it
//
// A pixel without a neighbour is its own neighbour: the difference is 0. Blocks add their sums to the sums of the
// device. The last block writes these to the results and clears them. All sums are integers, so the order does not
// matter.
//
// Where to change what
//   another sum            LumaSum (measuring.hpp), add_quad(); the reference in tests/kernels/reference/histogram.cpp
//   another luma           luma_of() (kernels/core/luma.hpp); how it is made of pixels: cuda_luma.cuh
//   another sample type    sharpness_kernel(): its instance; cuda_luma_words.cuh
//   another block shape    Tuning (cuda_tuning.hpp); schedule_sharpness() (cuda_schedule.cpp)
#include <algorithm>

#include "kernels/cuda/device.hpp"
#include "kernels/cuda/memory.hpp"
#include "kernels/cuda/warp.cuh"
#include "kernels/histogram/cuda_gather.cuh"
#include "kernels/histogram/cuda_luma.cuh"
#include "kernels/histogram/cuda_luma_words.cuh"
#include "kernels/histogram/cuda_walk.hpp"
#include "kernels/histogram/measuring.hpp"

namespace cudavision::histogram {
namespace {

struct LumaParams {
  cuda::SetView views[3];  ///< views of the set, or of three planes
  int position[3];         ///< see LumaSource
  LumaWeights weights;
  unsigned char* kept;  ///< the luma of the previous frame; null if it is neither read nor written
  std::ptrdiff_t kept_pitch;
  bool sums, compare, keep;  ///< whether the kernel sums, compares and keeps the pixels of the rectangles
  int rows;                  ///< rows of a tile
  int rect_count;
  Rect rects[max_rects];
  std::uint64_t* device_sums;  ///< sum_count numbers; zero between frames
  /// The results in page-locked memory; null unless this is the frame's last launch with sums.
  std::uint64_t* host_sums;
  unsigned* ticket;  ///< number of blocks that have ended; zero between launches
};

template <typename T, int C, bool ThreePlanes>
__device__ __forceinline__ Luma<T> luma_of_quad(const LumaParams& params, const cuda::Quad<T, C>& quad) {
  Luma<T> luma;
  if constexpr (C >= 3) {
    std::uint32_t samples[4];
    luma_of_pixels<T, C, ThreePlanes>(quad, params.position, params.weights, params.views[0].max_value, samples);
    constexpr int per_word = 4 / int(sizeof(T)), bits = 8 * int(sizeof(T));
#pragma unroll
    for (int k = 0; k < int(sizeof(T)); ++k) {
      luma.word[0][k] = 0;
#pragma unroll
      for (int j = 0; j < per_word; ++j) luma.word[0][k] |= samples[k * per_word + j] << j * bits;
    }
  } else {
#pragma unroll
    for (int k = 0; k < int(sizeof(T)); ++k) luma.word[0][k] = word_at(quad, params.position[0], k);
  }
  return luma;
}

/// The sums of a thread.
template <typename T>
struct ThreadSums {
  std::uint32_t luma = 0, gradients = 0, differences = 0;
  Square<T> squares = 0;
};

/// Adds the pixels of a quad that the mask selects.
template <typename T>
__device__ __forceinline__ void add_quad(ThreadSums<T>& part, const Luma<T>& mask, const Luma<T>& here,
                                         const Luma<T>& right, const Luma<T>& below) {
#pragma unroll
  for (int k = 0; k < int(sizeof(T)); ++k) {
    const std::uint32_t m = mask.word[0][k], word = here.word[0][k] & m;
    part.luma += sum<T>(word);
    part.squares += squares<T>(word);
    part.gradients += differences<T>(word, right.word[0][k] & m) + differences<T>(word, below.word[0][k] & m);
  }
}

/// Sums up a row of a tile, `quads` quads for each lane, and compares and keeps it. All lanes of the warp must call
/// this.
template <typename T, int C>
__device__ __forceinline__ void sum_row(const LumaParams& params, const Luma<T> (&mask)[sharpness_quads(C, sizeof(T))],
                                        int x, int y, const Luma<T> (&here)[sharpness_quads(C, sizeof(T))],
                                        const Luma<T> (&below)[sharpness_quads(C, sizeof(T))], ThreadSums<T>& part) {
  constexpr int quads = sharpness_quads(C, sizeof(T)), words = int(sizeof(T));
#pragma unroll
  for (int q = 0; q < quads; ++q) {
    // A quad belongs to the lane that has at least one pixel of it. If luma is kept, rectangles begin at 0, so this
    // lane has all pixels of the quad.
    const bool is_owner = (mask[q].word[0][0] | mask[q].word[0][words - 1]) != 0;
    unsigned char* const kept = params.kept + y * params.kept_pitch + std::ptrdiff_t(x + q * 128) * words;
    if (params.compare && is_owner) {
      std::uint32_t before[words];
      cuda::load_words<words, 4 * words, false>(kept, before);
#pragma unroll
      for (int k = 0; k < words; ++k)
        part.differences += differences<T>(here[q].word[0][k] & mask[q].word[0][k], before[k] & mask[q].word[0][k]);
    }
    if (params.sums) {
      std::uint32_t next = __shfl_down_sync(~0u, here[q].word[0][0], 1);
      const std::uint32_t beyond = __shfl_sync(~0u, here[q + 1 < quads ? q + 1 : q].word[0][0], 0);
      if (threadIdx.x % 32 == 31) next = beyond;
      if (x + q * 128 + 4 >= params.views[0].width) next = last_of<T>(here[q]);
      add_quad<T>(part, mask[q], here[q], right_of<T>(here[q], next), below[q]);
    }
    if (params.keep && is_owner) cuda::store_words<words, 4 * words>(kept, here[q].word[0]);
  }
}

/// Sums up one tile of a rectangle. All lanes of the warp must call this. `x`: position of the lane's first quad; the
/// other quads of the lane follow at distances of 128 pixels.
template <typename T, int C, bool ThreePlanes>
__device__ __forceinline__ void sum_tile(const LumaParams& params, const Rect& rect, int x, int y,
                                         ThreadSums<T>& part) {
  constexpr int quads = sharpness_quads(C, sizeof(T));
  const int width = params.views[0].width, height = params.views[0].height, end = rect.x + rect.width, begin_y = y,
            end_y = min(y + params.rows, rect.y + rect.height), lane = threadIdx.x % 32;
  Luma<T> mask[quads];
#pragma unroll
  for (int q = 0; q < quads; ++q)
    mask[q] = mask_of<T>(x + q * 128, rect.x, q == quads - 1 && lane == 31 ? rect.x : end);

  // Row y + 2 is loaded while row y is summed up. The first two rounds only load.
  cuda::Quad<T, C> ahead[quads] = {};
  Luma<T> here[quads] = {}, below[quads];
  for (y -= 2; y < end_y; ++y) {
    cuda::Quad<T, C> fresh[quads] = {};
    if (y + 2 <= end_y) {
#pragma unroll
      for (int q = 0; q < quads; ++q)
        if (x + q * 128 < min(end + 4, width))
          fresh[q] = load_pixels<T, C, ThreePlanes>(params.views, x + q * 128, min(y + 2, height - 1));
    }
#pragma unroll
    for (int q = 0; q < quads; ++q) below[q] = luma_of_quad<T, C, ThreePlanes>(params, ahead[q]);
    if (y >= begin_y) sum_row<T, C>(params, mask, x, y, here, below, part);
#pragma unroll
    for (int q = 0; q < quads; ++q) here[q] = below[q], ahead[q] = fresh[q];
  }
}

template <typename T, int C, bool ThreePlanes>
__global__ void __launch_bounds__(tuning.sharpness_threads, tuning.sharpness_blocks)
    sum_luma_of_frame(const __grid_constant__ LumaParams params) {
  constexpr int unit = sharpness_unit(C, sizeof(T)), warps = tuning.sharpness_threads / 32;
  __shared__ std::uint64_t of_warps[sum_count][warps];
  const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32;
  std::uint64_t sums[sum_count] = {};
  for (int r = 0; r < params.rect_count; ++r) {
    const Rect rect = params.rects[r];
    const int begin = rect.x & ~3, across = (rect.x + rect.width - begin + unit - 1) / unit,
              down = (rect.height + params.rows - 1) / params.rows;
    for (Walk walk(blockIdx.x * warps + warp, gridDim.x * warps, unsigned(across)); walk.y < down; walk.next()) {
      ThreadSums<T> part;
      sum_tile<T, C, ThreePlanes>(params, rect, begin + walk.x * unit + lane * 4, rect.y + walk.y * params.rows, part);
      sums[sum_luma] += part.luma;
      sums[sum_squares] += part.squares;
      sums[sum_gradients] += part.gradients;
      sums[sum_differences] += part.differences;
    }
  }
  if (!params.sums) return;
#pragma unroll
  for (int i = 0; i < sum_count; ++i) {
    const std::uint64_t of_warp = cuda::warp_sum(sums[i]);
    if (lane == 0) of_warps[i][warp] = of_warp;
  }
  __syncthreads();
  if (thread < sum_count) {
    std::uint64_t of_block = 0;
    for (int w = 0; w < warps; ++w) of_block += of_warps[thread][w];
    if (of_block > 0) atomicAdd(reinterpret_cast<unsigned long long*>(params.device_sums + thread), of_block);
  }
  if (!params.host_sums || !is_last_block(params.ticket)) return;
  if (thread < sum_count) {
    params.host_sums[thread] = __ldcg(reinterpret_cast<unsigned long long*>(params.device_sums + thread));
    params.device_sums[thread] = 0;
  }
}

const void* sharpness_kernel(const FormatInfo& format, bool three_planes) {
  const auto kernel = [](auto sample, auto channels, auto planes) {
    using T = decltype(sample);
    return reinterpret_cast<const void*>(&sum_luma_of_frame<T, decltype(channels)::value, decltype(planes)::value>);
  };
  const std::integral_constant<int, 3> three;
  if (three_planes)
    return format.sample_bytes() == 1 ? kernel(std::uint8_t(), three, std::true_type())
                                      : kernel(std::uint16_t(), three, std::true_type());
  return cuda::with_layout(format,
                           [&](auto sample, auto first, auto) { return kernel(sample, first, std::false_type()); });
}

class CudaSharpness final : public MeasuringPlan {
 public:
  CudaSharpness(const SharpnessParams& params, const Geometry& geometry)
      : MeasuringPlan(params, geometry, Backend::cuda) {}

  /// The context must be current.
  Status prepare() {
    const auto device = cuda::current_device();
    if (!device.ok()) return device.error();
    multiprocessors_ = device.value().multiprocessors;
    const FormatInfo& format = info(geometry().format);
    kernel_ = sharpness_kernel(format, source().three_planes);
    if (Status status = cuda::load_kernel(kernel_, "cannot load the sharpness kernel"); !status.ok()) return status;
    std::copy(std::begin(source().position), std::end(source().position), params_.position);
    params_.weights = luma_weights(params().luma);
    // Whole quads are kept, so rows are rounded up to 16 pixels.
    params_.kept_pitch = std::ptrdiff_t((geometry().width + 15) & ~15) * format.sample_bytes();
    if (params().compare)
      if (Status status = kept_.allocate(std::size_t(params_.kept_pitch) * geometry().height); !status.ok())
        return status;
    const std::size_t bytes = sum_count * sizeof(std::uint64_t);
    if (Status status = sums_.allocate(bytes + sizeof(unsigned)); !status.ok()) return status;
    if (Status status = results_.allocate(bytes * params().history); !status.ok()) return status;
    params_.kept = kept_.data();
    params_.device_sums = sums_.data<std::uint64_t>();
    params_.ticket = reinterpret_cast<unsigned*>(sums_.data() + bytes);
    cuda::FillStream stream;
    stream.clear(sums_.data(), bytes + sizeof(unsigned));
    return stream.finish();
  }

 private:
  const std::uint64_t* sums_of(int slot) const override { return results_.data<std::uint64_t>() + sum_count * slot; }

  Status measure(const Measuring& work, Queue queue) override {
    set_views(work.src);
    params_.sums = true;
    params_.compare = work.compare;
    params_.keep = work.keep && work.whole;
    for (std::size_t from = 0; from == 0 || from < work.pieces.size(); from += max_rects) {
      const bool last = from + max_rects >= work.pieces.size();
      params_.host_sums = last ? results_.data<std::uint64_t>() + sum_count * work.slot : nullptr;
      if (Status status = launch(work.pieces, from, queue); !status.ok()) return status;
    }
    if (!work.keep || work.whole) return {};
    params_.sums = params_.compare = false;
    params_.keep = true;
    return launch(frame(), 0, queue);
  }

  void set_views(const Image& src) {
    const FormatInfo& format = info(geometry().format);
    const auto view = [&](int set) {
      return cuda::make_view(src, src, set, geometry().grid(format.sets[set]), Border::replicate, {}, false);
    };
    if (source().three_planes)
      for (int i = 0; i < 3; ++i) params_.views[i] = view(source().position[i]);
    else
      params_.views[0] = view(source().set);
  }

  /// Sums up as many rectangles as fit in one launch, beginning with `from`.
  Status launch(const std::vector<Rect>& pieces, std::size_t from, Queue queue) {
    const SharpnessLaunch launch = schedule_sharpness(geometry().format, multiprocessors_, pieces, from);
    params_.rows = launch.rows;
    params_.rect_count = launch.share.rect_count;
    std::copy_n(launch.share.rects, launch.share.rect_count, params_.rects);
    void* arguments[] = {&params_};
    return cuda::check(cudaLaunchKernel(kernel_, dim3(unsigned(launch.share.blocks)), dim3(tuning.sharpness_threads),
                                        arguments, 0, queue.stream),
                       "cannot launch the sharpness");
  }

  cuda::DeviceMemory sums_, kept_;
  cuda::HostMemory results_;
  int multiprocessors_ = 1;
  const void* kernel_ = nullptr;
  LumaParams params_{};
};

}  // namespace

Result<std::unique_ptr<Sharpness>> make_sharpness_cuda(const SharpnessParams& params, const Geometry& geometry) {
  auto made = std::make_unique<CudaSharpness>(params, geometry);
  if (Status status = made->prepare(); !status.ok()) return status;
  return std::unique_ptr<Sharpness>(std::move(made));
}

}  // namespace cudavision::histogram
