// SPDX-License-Identifier: LGPL-2.1-or-later
// What is made of a histogram on the device: equalised pictures, and the histogram drawn into one.
#include <algorithm>
#include <climits>

#include "kernels/cuda/memory.hpp"
#include "kernels/cuda/rows.cuh"
#include "kernels/histogram/histogram.hpp"

namespace cudavision {
namespace cuda::histogram {
namespace {

using cudavision::detail::HistogramPlan;
using cudavision::detail::OverlayPlan;

constexpr int table_threads = 1024;
constexpr int pixel_threads = 256;

struct Equalizing {
  SetView views[3];
  int position[3];         ///< of R, G, B among the channels of the first set
  std::uint8_t mapped[3];  ///< by set: bit c where channel c is equalised
  bool rgb;
  LumaWeights weights;
  const std::uint16_t* table;
};

#ifdef __CUDACC__

/// A warp's inclusive sums.
__device__ __forceinline__ std::uint32_t warp_sums(std::uint32_t value) {
  for (int step = 1; step < 32; step *= 2) {
    const std::uint32_t other = __shfl_up_sync(~0u, value, step);
    if (int(threadIdx.x) % 32 >= step) value += other;
  }
  return value;
}

/// The table of cv::equalizeHist from the counts of 2^depth values, by one block. Each warp takes a stretch of them, 32 at a time.
__global__ void __launch_bounds__(table_threads) equalizing_table(const std::uint32_t* counts, std::uint16_t* table, int values) {
  __shared__ std::uint32_t of_warps[32], lowest;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, stretch = (values / 32 + 31) / 32 * 32;
  const int begin = min(warp * stretch, values), end = min(begin + stretch, values);  // whole multiples of 32
  std::uint32_t sum = 0;
#pragma unroll 8
  for (int v = begin; v < end; v += 32) sum += counts[v + lane];
  sum = warp_sums(sum);
  if (threadIdx.x == 0) lowest = 0;
  if (lane == 31) of_warps[warp] = sum;
  __syncthreads();
  if (warp == 0) of_warps[lane] = warp_sums(of_warps[lane]);
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
    const std::uint32_t sums = below + warp_sums(counts[v + lane]);
    table[v + lane] = std::uint16_t(cudavision::detail::equalized(v + lane, sums, lowest, total, values - 1));
    below = __shfl_sync(~0u, sums, 31);
  }
}

template <typename T, int C>
__device__ __forceinline__ void set_sample(Quad<T, C>& quad, int c, int j, std::uint32_t sample) {
  constexpr int per_word = 4 / sizeof(T), bits = 8 * sizeof(T);
  const int at = j % per_word * bits;
  quad.word[c][j / per_word] = (quad.word[c][j / per_word] & ~(((1u << bits) - 1) << at)) | sample << at;
}

/// The set's quads, one to a thread.
template <typename F>
__device__ __forceinline__ void for_quads(const SetView& view, F work) {
  const int begin = view.x0 & ~3;
  for (int y = view.y0 + int(blockIdx.y * blockDim.y + threadIdx.y); y < view.y1; y += gridDim.y * blockDim.y)
    for (int x = begin + int(blockIdx.x * blockDim.x + threadIdx.x) * 4; x < view.x1; x += gridDim.x * blockDim.x * 4) work(x, y);
}

template <typename T, int C>
__device__ __forceinline__ void equalize_set(const Equalizing& params, int index) {
  const SetView& view = params.views[index];
  for_quads(view, [&](int x, int y) {
    Quad<T, C> quad = load_quad<T, C>(view, x, y);
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
    store_quad<T, C>(view, x, y, quad);
  });
}

template <typename T, int First, int Rest>
__global__ void __launch_bounds__(pixel_threads) equalize(const __grid_constant__ Equalizing params) {
  if (First == Rest || blockIdx.z == 0)
    equalize_set<T, First>(params, blockIdx.z);
  else
    equalize_set<T, Rest>(params, blockIdx.z);
}

/// R, G and B in planes of their own; views in that order.
__global__ void __launch_bounds__(pixel_threads) equalize_planes(const __grid_constant__ Equalizing params) {
  using T = std::uint8_t;
  for_quads(params.views[0], [&](int x, int y) {
    Quad<T, 1> quads[3];
#pragma unroll
    for (int c = 0; c < 3; ++c) quads[c] = load_quad<T, 1>(params.views[c], x, y);
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
    for (int c = 0; c < 3; ++c) store_quad<T, 1>(params.views[c], x, y, quads[c]);
  });
}

/// One block a channel: the largest count, then the columns' heights.
__global__ void __launch_bounds__(table_threads)
    bar_heights(const std::uint32_t* counts, std::uint16_t* heights, const __grid_constant__ OverlayPlan plan) {
  __shared__ std::uint32_t largest;
  const std::uint32_t* const of_channel = counts + std::size_t(blockIdx.x) * plan.bins;
  if (threadIdx.x == 0) largest = 0;
  __syncthreads();
  std::uint32_t mine = 0;
  for (int bin = threadIdx.x; bin < plan.bins; bin += blockDim.x) mine = max(mine, of_channel[bin]);
  atomicMax(&largest, mine);
  __syncthreads();
  for (int x = threadIdx.x; x < plan.position.width; x += blockDim.x) {
    const int begin = cudavision::detail::first_bin(x, plan.bins, plan.position.width);
    const int end = max(begin + 1, cudavision::detail::first_bin(x + 1, plan.bins, plan.position.width));
    std::uint32_t count = 0;
    for (int bin = begin; bin < end; ++bin) count = max(count, of_channel[bin]);
    heights[blockIdx.x * plan.position.width + x] =
        std::uint16_t(cudavision::detail::bar_height(count, largest, plan.position.height, plan.log));
  }
}

struct Drawing {
  unsigned char* data;
  std::ptrdiff_t pitch;
  int x0, y0, x1, y1;  ///< samples of the grid
  int channels, shift_x, shift_y, sample_bytes, shift, max_value;
  std::uint8_t roles[4];
};
struct Drawings {
  Drawing sets[3];
  OverlayPlan plan;
  const std::uint16_t* heights;
};

__global__ void __launch_bounds__(pixel_threads) draw_bars(const __grid_constant__ Drawings params) {
  const Drawing& set = params.sets[blockIdx.z];
  const Rect& at = params.plan.position;
  for (int y = set.y0 + int(blockIdx.y * blockDim.y + threadIdx.y); y < set.y1; y += gridDim.y * blockDim.y)
    for (int x = set.x0 + int(blockIdx.x * blockDim.x + threadIdx.x); x < set.x1; x += gridDim.x * blockDim.x) {
      const unsigned covering =
          cudavision::detail::covering_bars(params.plan, params.heights, (x << set.shift_x) - at.x, (y << set.shift_y) - at.y);
      unsigned char* const row = set.data + y * set.pitch;
      for (int c = 0; c < set.channels; ++c) {
        if (set.roles[c] >= std::uint8_t(Role::alpha)) continue;
        if (set.sample_bytes == 1) {
          unsigned char& sample = row[x * set.channels + c];
          sample = static_cast<unsigned char>(cudavision::detail::overlaid(params.plan, sample, set.roles[c], covering));
        } else {
          std::uint16_t& sample = reinterpret_cast<std::uint16_t*>(row)[x * set.channels + c];
          const int below = sample_of(sample, set.shift, set.max_value);
          sample = std::uint16_t(cudavision::detail::overlaid(params.plan, below, set.roles[c], covering) << set.shift);
        }
      }
    }
}

#endif  // __CUDACC__

/// A grid of blocks that covers width × height, one thread each.
dim3 grid_of(const dim3& block, int width, int height, int sets) {
  return {(width + block.x - 1) / block.x, std::min((height + block.y - 1) / block.y, 32768u), unsigned(sets)};
}

class CudaEqualize final : public CudaFilter {
 public:
  CudaEqualize(const HistogramPlan& plan, std::unique_ptr<Histogram> histogram)
      : CudaFilter(plan.geometry), values_(plan.bins), planes_(plan.three_planes), histogram_(std::move(histogram)) {
    params_.rgb = plan.rgb_luma;
    params_.weights = plan.weights;
    if (planes_)
      kernel_ = reinterpret_cast<const void*>(&equalize_planes);
    else
      kernel_ = with_layout(info(plan.geometry.format), [](auto sample, auto first, auto rest) {
        return reinterpret_cast<const void*>(&equalize<decltype(sample), decltype(first)::value, decltype(rest)::value>);
      });
  }

  /// With the context current.
  Status prepare() {
    if (Status status = table_.allocate(std::size_t(values_) * sizeof(std::uint16_t)); !status.ok()) return status;
    params_.table = table_.data<std::uint16_t>();
    for (const void* kernel : {kernel_, reinterpret_cast<const void*>(&equalizing_table)}) {
      cudaFuncAttributes attributes;  // asking loads the code now: a launch must not
      if (Status status = check(cudaFuncGetAttributes(&attributes, kernel), "cannot load the equalisation"); !status.ok())
        return status;
    }
    return {};
  }

 private:
  Status begin(const Image& src, const Region& region, Queue queue) override {
    if (Status status = histogram_->submit(src, region, queue); !status.ok()) return status;
    equalizing_table<<<1, table_threads, 0, queue.stream>>>(histogram_->latest(), table_.data<std::uint16_t>(), values_);
    return check(cudaGetLastError(), "cannot launch the equalisation");
  }

  Status filter(const Image& src, const Image& dst, const SetRects& rects, Queue queue) override {
    const FormatInfo& format = info(geometry().format);
    int width = 0, height = 0;
    for (int i = 0; i < format.set_count; ++i) {
      const ChannelSet& set = format.sets[i];
      const Role first = set.roles[0];
      const int at = planes_ ? int(first) - int(Role::red) : i;
      SetView& view = params_.views[at] = make_view(src, dst, i, rects[i], Border::replicate, {}, true);
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
    const dim3 block(64, pixel_threads / 64);
    void* arguments[] = {&params_};
    return check(
        cudaLaunchKernel(kernel_, grid_of(block, width, height, planes_ ? 1 : format.set_count), block, arguments, 0, queue.stream),
        "cannot launch the equalisation");
  }

  const int values_;
  const bool planes_;
  const std::unique_ptr<Histogram> histogram_;
  DeviceMemory table_;
  const void* kernel_ = nullptr;
  Equalizing params_{};
};

class CudaOverlay final : public HistogramOverlay {
 public:
  CudaOverlay(OverlayPlan plan, const Histogram& histogram) : HistogramOverlay(Backend::cuda), histogram_(histogram) {
    params_.plan = plan;
  }

  /// With the context current.
  Status prepare() {
    const std::size_t heights = std::size_t(params_.plan.channels) * params_.plan.position.width;
    if (Status status = heights_.allocate(heights * sizeof(std::uint16_t)); !status.ok()) return status;
    params_.heights = heights_.data<std::uint16_t>();
    for (const void* kernel : {reinterpret_cast<const void*>(&bar_heights), reinterpret_cast<const void*>(&draw_bars)}) {
      cudaFuncAttributes attributes;
      if (Status status = check(cudaFuncGetAttributes(&attributes, kernel), "cannot load the overlay"); !status.ok()) return status;
    }
    return {};
  }

 private:
  Status draw(const Image& picture, Queue queue) override {
    const FormatInfo& format = info(params_.plan.geometry.format);
    bar_heights<<<params_.plan.channels, table_threads, 0, queue.stream>>>(histogram_.latest(), heights_.data<std::uint16_t>(),
                                                                           params_.plan);
    if (Status status = check(cudaGetLastError(), "cannot launch the overlay"); !status.ok()) return status;
    int width = 0, height = 0;
    for (int i = 0; i < format.set_count; ++i) {
      const ChannelSet& set = format.sets[i];
      const Rect rect = cudavision::detail::overlay_rect(params_.plan, set);
      const Plane& plane = picture.planes[set.plane];
      Drawing& drawing = params_.sets[i];
      drawing = {static_cast<unsigned char*>(plane.data),
                 plane.pitch,
                 rect.x,
                 rect.y,
                 rect.x + rect.width,
                 rect.y + rect.height,
                 set.channels,
                 set.shift_x,
                 set.shift_y,
                 format.sample_bytes(),
                 format.shift,
                 format.max_value(),
                 {}};
      for (int c = 0; c < set.channels; ++c) drawing.roles[c] = std::uint8_t(set.roles[c]);
      width = std::max(width, rect.width);
      height = std::max(height, rect.height);
    }
    if (width == 0 || height == 0) return {};
    const dim3 block(64, pixel_threads / 64);
    draw_bars<<<grid_of(block, width, height, format.set_count), block, 0, queue.stream>>>(params_);
    return check(cudaGetLastError(), "cannot launch the overlay");
  }

  const Histogram& histogram_;
  DeviceMemory heights_;
  Drawings params_{};
};

}  // namespace
}  // namespace cuda::histogram

namespace detail {

Result<std::unique_ptr<Filter>> make_equalize_cuda(HistogramPlan plan) {
  auto histogram = make_histogram_cuda(plan, false);
  if (!histogram.ok()) return histogram.error();
  auto equalize = std::make_unique<cuda::histogram::CudaEqualize>(plan, std::move(histogram.value()));
  if (Status status = equalize->prepare(); !status.ok()) return status;
  return std::unique_ptr<Filter>(std::move(equalize));
}

Result<std::unique_ptr<HistogramOverlay>> make_histogram_overlay_cuda(OverlayPlan plan, const Histogram& histogram) {
  auto overlay = std::make_unique<cuda::histogram::CudaOverlay>(plan, histogram);
  if (Status status = overlay->prepare(); !status.ok()) return status;
  return std::unique_ptr<HistogramOverlay>(std::move(overlay));
}

}  // namespace detail
}  // namespace cudavision
