// SPDX-License-Identifier: LGPL-2.1-or-later
// Histogram equalisation. After the counting one block makes the table, then a grid of threads maps the picture.
//
//   equalizing_table: warp w takes the values                 equalize: a thread takes quads (4 pixels)
//   +--------+--------+---+---------+                         block: 64 × 4 threads, 256 × 4 pixels; z: channel set
//   | warp 0 | warp 1 | … | warp 31 |  counts of values       +--------+--------+
//   +--------+--------+---+---------+                         | (0, 0) | (1, 0) |
//   1. each warp: the sum of its values                       +--------+--------+
//   2. warp 0: scan over the 32 sums
//   3. each warp: scan over its values, 32 at a time, and the table
//
// To change the rule, see equalized() in arithmetic.hpp.
#include <algorithm>

#include "kernels/core/luma.hpp"
#include "kernels/cuda/filter.hpp"
#include "kernels/cuda/memory.hpp"
#include "kernels/cuda/rows.cuh"
#include "kernels/cuda/warp.cuh"
#include "kernels/histogram/arithmetic.hpp"
#include "kernels/histogram/counting.hpp"
#include "kernels/histogram/cuda_pictures.hpp"

namespace cudavision::histogram {
namespace {

struct Equalizing {
  cuda::SetView views[3];
  int position[3];         ///< of R, G, B among the channels of the first set
  std::uint8_t mapped[3];  ///< by set: bit c where channel c is equalised
  bool rgb;
  LumaWeights weights;
  const std::uint16_t* table;
};

/// The sum of the values of lanes 0 … lane.
__device__ __forceinline__ std::uint32_t scan(std::uint32_t value) {
  std::uint32_t values[1] = {value};
  cuda::warp_scan(values, int(threadIdx.x) % 32);
  return values[0];
}

/// The table of cv::equalizeHist from the counts of 2^depth values, by one block. Each warp takes a range of values, 32 at a time.
__global__ void __launch_bounds__(table_threads) equalizing_table(const std::uint32_t* counts, std::uint16_t* table, int values) {
  __shared__ std::uint32_t of_warps[32], lowest;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, stretch = (values / 32 + 31) / 32 * 32;
  const int begin = min(warp * stretch, values), end = min(begin + stretch, values);  // whole multiples of 32
  std::uint32_t sum = 0;
#pragma unroll 8
  for (int v = begin; v < end; v += 32) sum += counts[v + lane];
  sum = scan(sum);
  if (threadIdx.x == 0) lowest = 0;
  if (lane == 31) of_warps[warp] = sum;
  __syncthreads();
  if (warp == 0) of_warps[lane] = scan(of_warps[lane]);
  __syncthreads();
  std::uint32_t below = warp == 0 ? 0 : of_warps[warp - 1];
  const std::uint32_t total = of_warps[31];
  if (below == 0 && of_warps[warp] > 0) {  // the lowest value that occurs is here
    int v = begin;
    unsigned found;
    while ((found = __ballot_sync(~0u, counts[v + lane] > 0)) == 0) v += 32;
    if (lane == __ffs(found) - 1) lowest = counts[v + lane];
  }
  __syncthreads();
#pragma unroll 4
  for (int v = begin; v < end; v += 32) {
    const std::uint32_t sums = below + scan(counts[v + lane]);
    table[v + lane] = std::uint16_t(equalized(v + lane, sums, lowest, total, values - 1));
    below = __shfl_sync(~0u, sums, 31);
  }
}

template <typename T, int C>
__device__ __forceinline__ void set_sample(cuda::Quad<T, C>& quad, int c, int j, std::uint32_t sample) {
  constexpr int per_word = 4 / sizeof(T), bits = 8 * sizeof(T);
  const int at = j % per_word * bits;
  quad.word[c][j / per_word] = (quad.word[c][j / per_word] & ~(((1u << bits) - 1) << at)) | sample << at;
}

/// Calls work(x, y) for the quads of a set, one to a thread.
template <typename F>
__device__ __forceinline__ void for_quads(const cuda::SetView& view, F work) {
  const int begin = view.x0 & ~3;
  for (int y = view.y0 + int(blockIdx.y * blockDim.y + threadIdx.y); y < view.y1; y += gridDim.y * blockDim.y)
    for (int x = begin + int(blockIdx.x * blockDim.x + threadIdx.x) * 4; x < view.x1; x += gridDim.x * blockDim.x * 4) work(x, y);
}

template <typename T, int C>
__device__ __forceinline__ void equalize_set(const Equalizing& params, int index) {
  const cuda::SetView& view = params.views[index];
  for_quads(view, [&](int x, int y) {
    cuda::Quad<T, C> quad = cuda::load_quad<T, C>(view, x, y);
    if (params.rgb) {
      if constexpr (C >= 3) {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          std::uint32_t rgb[3];
#pragma unroll
          for (int i = 0; i < 3; ++i) {
            rgb[i] = quad.sample(0, j);
#pragma unroll
            for (int c = 1; c < C; ++c) rgb[i] = params.position[i] == c ? quad.sample(c, j) : rgb[i];
          }
          const int luma = luma_of(rgb[0], rgb[1], rgb[2], params.weights, view.max_value);
          const int change = int(__ldg(params.table + luma)) - luma;
#pragma unroll
          for (int c = 0; c < C; ++c)
            if (params.mapped[index] >> c & 1)
              set_sample(quad, c, j, std::uint32_t(min(max(int(quad.sample(c, j)) + change, 0), view.max_value)));
        }
      }
    } else {
#pragma unroll
      for (int c = 0; c < C; ++c) {
        if (!(params.mapped[index] >> c & 1)) continue;
#pragma unroll
        for (int j = 0; j < 4; ++j) set_sample(quad, c, j, __ldg(params.table + quad.sample(c, j)));
      }
    }
    cuda::store_quad<T, C>(view, x, y, quad);
  });
}

template <typename T, int First, int Rest>
__global__ void __launch_bounds__(tuning.picture_threads) equalize(const __grid_constant__ Equalizing params) {
  if (First == Rest || blockIdx.z == 0)
    equalize_set<T, First>(params, blockIdx.z);
  else
    equalize_set<T, Rest>(params, blockIdx.z);
}

/// R, G and B in three planes, which are views 0, 1 and 2.
__global__ void __launch_bounds__(tuning.picture_threads) equalize_planes(const __grid_constant__ Equalizing params) {
  using T = std::uint8_t;
  for_quads(params.views[0], [&](int x, int y) {
    cuda::Quad<T, 1> quads[3];
#pragma unroll
    for (int c = 0; c < 3; ++c) quads[c] = cuda::load_quad<T, 1>(params.views[c], x, y);
    const int max_value = params.views[0].max_value;
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int luma = luma_of(quads[0].sample(0, j), quads[1].sample(0, j), quads[2].sample(0, j), params.weights, max_value);
      const int change = int(__ldg(params.table + luma)) - luma;
#pragma unroll
      for (int c = 0; c < 3; ++c)
        set_sample(quads[c], 0, j, std::uint32_t(min(max(int(quads[c].sample(0, j)) + change, 0), max_value)));
    }
#pragma unroll
    for (int c = 0; c < 3; ++c) cuda::store_quad<T, 1>(params.views[c], x, y, quads[c]);
  });
}

class CudaEqualize final : public cuda::CudaFilter {
 public:
  CudaEqualize(const Plan& plan, std::unique_ptr<Counting> histogram)
      : cuda::CudaFilter(plan.geometry), values_(plan.bins), planes_(plan.three_planes), histogram_(std::move(histogram)) {
    params_.rgb = plan.rgb_luma;
    params_.weights = plan.weights;
    if (planes_)
      kernel_ = reinterpret_cast<const void*>(&equalize_planes);
    else
      kernel_ = cuda::with_layout(info(plan.geometry.format), [](auto sample, auto first, auto rest) {
        return reinterpret_cast<const void*>(&equalize<decltype(sample), decltype(first)::value, decltype(rest)::value>);
      });
  }

  /// With the context current.
  Status prepare() {
    if (Status status = table_.allocate(std::size_t(values_) * sizeof(std::uint16_t)); !status.ok()) return status;
    params_.table = table_.data<std::uint16_t>();
    const Status status = cuda::load_kernel(kernel_, "cannot load the equalisation");
    return status.ok() ? cuda::load_kernel(equalizing_table, "cannot load the equalisation") : status;
  }

 private:
  Status begin(const Image& src, const Region& region, Queue queue) override {
    if (Status status = histogram_->submit(src, region, queue); !status.ok()) return status;
    equalizing_table<<<1, table_threads, 0, queue.stream>>>(histogram_->latest(), table_.data<std::uint16_t>(), values_);
    return cuda::check(cudaGetLastError(), "cannot launch the equalisation");
  }

  Status filter(const Image& src, const Image& dst, const SetRects& rects, Queue queue) override {
    const FormatInfo& format = info(geometry().format);
    int width = 0, height = 0;
    for (int i = 0; i < format.set_count; ++i) {
      const ChannelSet& set = format.sets[i];
      const Role first = set.roles[0];
      const int at = planes_ ? int(first) - int(Role::red) : i;
      cuda::SetView& view = params_.views[at] = cuda::make_view(src, dst, i, rects[i], Border::replicate, {}, true);
      params_.mapped[at] = 0;
      for (int c = 0; c < set.channels; ++c) {
        const Role role = set.roles[c];
        const bool colour = role >= Role::red && role <= Role::blue;
        if (colour && !planes_) params_.position[int(role) - int(Role::red)] = c;
        if (colour || role == Role::luma) params_.mapped[at] |= 1 << c;
      }
      if (params_.mapped[at] == 0) view.shift = 0, view.max_value = 0xffff;  // copied bit for bit
      if (rects[i].empty()) view.y1 = view.y0;
      width = std::max(width, (rects[i].width + 6) / 4);
      height = std::max(height, rects[i].height);
    }
    if (width == 0 || height == 0) return {};
    void* arguments[] = {&params_};
    return cuda::check(cudaLaunchKernel(kernel_, picture_grid(width, height, planes_ ? 1 : format.set_count), picture_block(),
                                        arguments, 0, queue.stream),
                       "cannot launch the equalisation");
  }

  const int values_;
  const bool planes_;
  const std::unique_ptr<Counting> histogram_;
  cuda::DeviceMemory table_;
  const void* kernel_ = nullptr;
  Equalizing params_{};
};

}  // namespace

Result<std::unique_ptr<Filter>> make_equalize_cuda(Plan plan) {
  auto histogram = make_cuda(plan, false);
  if (!histogram.ok()) return histogram.error();
  auto equalize = std::make_unique<CudaEqualize>(plan, std::move(histogram.value()));
  if (Status status = equalize->prepare(); !status.ok()) return status;
  return std::unique_ptr<Filter>(std::move(equalize));
}

}  // namespace cudavision::histogram
