// SPDX-License-Identifier: LGPL-2.1-or-later
// Histogram equalisation. After counting, a grid of threads maps the picture: one channel set after another, chunk by
// chunk (cuda_chunks.cuh). cuda_equalize_table.cuh describes how the table is made, and where to change its rule.
//
//   count (cuda.cpp) -> counts of values -+-> 8 bits: each block makes the table -+-> equalize: loads its first chunks
//                                        +-> deeper: equalizing_table           -+   before the counting ends, makes or
//                                                                                    reads the table, maps the samples
//
//   gray, Y                   Y = table[Y]
//   R, G, B                   change = table[luma] - luma; R, G, B + change, saturated
//   chroma, alpha, padding    copied
#include <algorithm>

#include "kernels/cuda/filter.hpp"
#include "kernels/cuda/memory.hpp"
#include "kernels/cuda/overlap.hpp"
#include "kernels/histogram/counting.hpp"
#include "kernels/histogram/cuda_chunks.cuh"
#include "kernels/histogram/cuda_equalize_table.cuh"
#include "kernels/histogram/cuda_luma.cuh"
#include "kernels/histogram/cuda_params.cuh"

namespace cudavision::histogram {
namespace {

struct Equalizing {
  cuda::SetView views[3];
  int access[3];  ///< [view]: bytes that are read and written at once: 16, 4, or 1 for parts of words
  int sets;
  int position[3];         ///< positions of R, G, B among the channels of the first set
  std::uint8_t mapped[3];  ///< [set]: bit c: channel c is equalised
  bool rgb;
  LumaWeights weights;
  const std::uint32_t* counts;  ///< counts of values
  const std::uint16_t* table;   ///< table of samples of more than 8 bits
};

/// Makes the table of cv::equalizeHist from the counts of 2^depth values, with one block. Each warp processes a range
/// of values, 32 at a time.
__global__ void __launch_bounds__(table_threads)
    equalizing_table(const std::uint32_t* counts, std::uint16_t* table, int values) {
  __shared__ std::uint32_t of_warps[32], lowest;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, stretch = (values / 32 + 31) / 32 * 32;
  const int begin = min(warp * stretch, values), end = min(begin + stretch, values);  // multiples of 32
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
  if (below == 0 && of_warps[warp] > 0) {  // the lowest value that occurs is in this range
    int v = begin;
    unsigned occurring;
    while ((occurring = __ballot_sync(~0u, counts[v + lane] > 0)) == 0) v += 32;
    if (lane == __ffs(occurring) - 1) lowest = counts[v + lane];
  }
  __syncthreads();
#pragma unroll 4
  for (int v = begin; v < end; v += 32) {
    const std::uint32_t sums = below + scan(counts[v + lane]);
    table[v + lane] = std::uint16_t(equalized(v + lane, sums, lowest, total, values - 1));
    below = __shfl_sync(~0u, sums, 31);
  }
}

template <typename T>
__device__ __forceinline__ void set_samples(std::uint32_t (&words)[sizeof(T)], const std::uint32_t (&samples)[4]) {
  if constexpr (sizeof(T) == 1) {
    words[0] =
        __byte_perm(__byte_perm(samples[0], samples[1], 0x0040), __byte_perm(samples[2], samples[3], 0x0040), 0x5410);
  } else {
    words[0] = __byte_perm(samples[0], samples[1], 0x5410);
    words[1] = __byte_perm(samples[2], samples[3], 0x5410);
  }
}

/// Equalises the channels of a quad that `mapped` selects. R, G and B change by the same amount as their luma.
template <typename T, int C, bool ThreePlanes>
__device__ __forceinline__ void equalize_quad(const Equalizing& params, const Table<T>& table, unsigned mapped,
                                              cuda::Quad<T, C>& quad) {
  std::uint32_t luma[4];
  if (C >= 3 && params.rgb) {
    const int max_value = params.views[0].max_value;
    if constexpr (C >= 3)
      luma_of_pixels<T, C, ThreePlanes>(quad, params.position, params.weights, std::uint32_t(max_value), luma);
    int change[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) change[j] = int(table[luma[j]]) - int(luma[j]);
#pragma unroll
    for (int c = 0; c < C; ++c) {
      if (!(mapped >> c & 1)) continue;
      if constexpr (sizeof(T) == 1) {  // two samples at a time
        const std::uint32_t word = quad.word[c][0], most = 0x00ff00ff;
        const std::uint32_t low =
            __viaddmin_s16x2_relu(__byte_perm(word, 0, 0x4140), __byte_perm(change[0], change[1], 0x5410), most);
        const std::uint32_t high =
            __viaddmin_s16x2_relu(__byte_perm(word, 0, 0x4342), __byte_perm(change[2], change[3], 0x5410), most);
        quad.word[c][0] = __byte_perm(low, high, 0x6420);
      } else {
        std::uint32_t samples[4];
#pragma unroll
        for (int j = 0; j < 4; ++j)
          samples[j] = std::uint32_t(__viaddmin_s32_relu(quad.sample(c, j), change[j], max_value));
        set_samples<T>(quad.word[c], samples);
      }
    }
  } else {
#pragma unroll
    for (int c = 0; c < C; ++c) {
      if (!(mapped >> c & 1)) continue;
      std::uint32_t samples[4];
#pragma unroll
      for (int j = 0; j < 4; ++j) samples[j] = table[quad.sample(c, j)];
      set_samples<T>(quad.word[c], samples);
    }
  }
}

/// The rectangle that a view writes.
__device__ __forceinline__ Rect rect_of(const cuda::SetView& view) {
  return {view.x0, view.y0, view.x1 - view.x0, view.y1 - view.y0};
}

/// Equalises a channel set. See for_chunks() for ready().
template <typename T, int C, typename Ready>
__device__ __forceinline__ void equalize_set(const Equalizing& params, const Table<T>& table, int index, Ready ready) {
  using Held = Chunk<T, C>;
  const cuda::SetView& view = params.views[index];
  const unsigned mapped = params.mapped[index];
  const int access = params.access[index];
  Rows rows(view, access);
  rows.hold_in_registers();
  const auto load = [&](int x, int y, Held& held) { load_chunk(rows, x, y, held); };
  const auto work = [&](Held& held, int x, int y) {
    if (mapped) {
      held.to_samples(view);
#pragma unroll
      for (int q = 0; q < Held::quads; ++q) {
        cuda::Quad<T, C> quad = held.quad(q);
        equalize_quad<T, C, false>(params, table, mapped, quad);
        held.set_quad(q, quad);
      }
      held.to_stored(view);
    }
    store_chunk(view, access, x, y, held);
  };
  const auto side = [&](int x, int y) {
    cuda::Quad<T, C> quad = cuda::load_quad<T, C>(view, x, y);
    equalize_quad<T, C, false>(params, table, mapped, quad);
    cuda::store_quad<T, C>(view, x, y, quad);
  };
  for_chunks<Held>(rect_of(view), blockIdx.x * blockDim.x + threadIdx.x, gridDim.x * blockDim.x, access >= 4, load,
                   ready, work, side);
}

template <typename T, int First, int Rest>
__global__ void __launch_bounds__(tuning.equalize_threads, 1) equalize(const __grid_constant__ Equalizing params) {
  __shared__ std::uint32_t of_lanes[sizeof(T) == 1 ? byte_table_words : 1];
  Table<T> table(params.table, of_lanes);
  const auto make = [&] {
    cuda::wait_for_previous();
    table.make(params.counts);
  };
  equalize_set<T, First>(params, table, 0, make);
  for (int set = 1; set < params.sets; ++set) equalize_set<T, Rest>(params, table, set, [] {});
}

/// Equalises R, G and B in three planes, which are views 0, 1 and 2.
template <typename T>
__global__ void __launch_bounds__(tuning.equalize_threads, 1)
    equalize_planes(const __grid_constant__ Equalizing params) {
  using Held = PlaneChunks<T>;
  __shared__ std::uint32_t of_lanes[sizeof(T) == 1 ? byte_table_words : 1];
  Table<T> table(params.table, of_lanes);
  const int access = min(min(params.access[0], params.access[1]), params.access[2]);
  const auto load = [&](int x, int y, Held& held) {
#pragma unroll
    for (int c = 0; c < 3; ++c) load_chunk(Rows(params.views[c], access), x, y, held.plane[c]);
  };
  const auto make = [&] {
    cuda::wait_for_previous();
    table.make(params.counts);
  };
  const auto work = [&](Held& held, int x, int y) {
    held.to_samples(params.views[0]);
#pragma unroll
    for (int q = 0; q < Held::quads; ++q) {
      constexpr int W = int(sizeof(T));
      cuda::Quad<T, 3> quad;
#pragma unroll
      for (int c = 0; c < 3; ++c)
#pragma unroll
        for (int w = 0; w < W; ++w) quad.word[c][w] = held.plane[c].word[q * W + w];
      equalize_quad<T, 3, true>(params, table, 7, quad);
#pragma unroll
      for (int c = 0; c < 3; ++c)
#pragma unroll
        for (int w = 0; w < W; ++w) held.plane[c].word[q * W + w] = quad.word[c][w];
    }
    held.to_stored(params.views[0]);
#pragma unroll
    for (int c = 0; c < 3; ++c) store_chunk(params.views[c], access, x, y, held.plane[c]);
  };
  const auto side = [&](int x, int y) {
    cuda::Quad<T, 3> quad = load_pixels<T, 3, true>(params.views, x, y);
    equalize_quad<T, 3, true>(params, table, 7, quad);
#pragma unroll
    for (int c = 0; c < 3; ++c) {
      cuda::Quad<T, 1> one;
#pragma unroll
      for (int w = 0; w < int(sizeof(T)); ++w) one.word[0][w] = quad.word[c][w];
      cuda::store_quad<T, 1>(params.views[c], x, y, one);
    }
  };
  for_chunks<Held>(rect_of(params.views[0]), blockIdx.x * blockDim.x + threadIdx.x, gridDim.x * blockDim.x, access >= 4,
                   load, make, work, side);
}

class CudaEqualize final : public cuda::CudaFilter {
 public:
  CudaEqualize(const Plan& plan, std::unique_ptr<Counting> histogram)
      : cuda::CudaFilter(plan.geometry),
        values_(plan.bins),
        planes_(plan.three_planes),
        histogram_(std::move(histogram)) {
    params_.rgb = plan.rgb_luma;
    params_.weights = plan.weights;
    if (planes_)
      kernel_ = info(plan.geometry.format).sample_bytes() == 1
                    ? reinterpret_cast<const void*>(&equalize_planes<std::uint8_t>)
                    : reinterpret_cast<const void*>(&equalize_planes<std::uint16_t>);
    else
      kernel_ = cuda::with_layout(info(plan.geometry.format), [](auto sample, auto first, auto rest) {
        return reinterpret_cast<const void*>(
            &equalize<decltype(sample), decltype(first)::value, decltype(rest)::value>);
      });
  }

  /// The context must be current.
  Status prepare() {
    const auto device = cuda::current_device();
    if (!device.ok()) return device.error();
    multiprocessors_ = device.value().multiprocessors;
    overlap_ = device.value().major >= 9;
    params_.counts = histogram_->latest();
    if (Status status = table_.allocate(std::size_t(values_) * sizeof(std::uint16_t)); !status.ok()) return status;
    params_.table = table_.data<std::uint16_t>();
    const Status status = cuda::load_kernel(kernel_, "cannot load the equalisation");
    return status.ok() ? cuda::load_kernel(equalizing_table, "cannot load the equalisation") : status;
  }

 private:
  Status begin(const Image& src, const Region& region, Queue queue) override {
    // For a part of the frame, or for formats with alpha, copies may follow the counting.
    early_ = overlap_ && region.mode == Region::Mode::frame && info(geometry().format).alpha_set() < 0;
    if (Status status = histogram_->submit(src, region, queue); !status.ok() || info(geometry().format).depth == 8)
      return status;
    equalizing_table<<<1, table_threads, 0, queue.stream>>>(histogram_->latest(), table_.data<std::uint16_t>(),
                                                            values_);
    return cuda::check(cudaGetLastError(), "cannot launch the equalisation");
  }

  Status filter(const Image& src, const Image& dst, const SetRects& rects, Queue queue) override {
    const FormatInfo& format = info(geometry().format);
    std::int64_t pixels = 0;  // pixels of the largest set
    params_.sets = format.color_sets();
    for (int i = 0; i < format.color_sets(); ++i) {
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
      pixels = std::max(pixels, rects[i].empty() ? 0 : std::int64_t(rects[i].width) * rects[i].height);
      params_.access[at] =
          set.shares_plane() ? 1
                             : std::min(access_bytes(view.src, view.src_pitch), access_bytes(view.dst, view.dst_pitch));
    }
    if (pixels == 0) return {};
    constexpr int in_block = tuning.equalize_threads * 4;
    const int blocks = int(std::min<std::int64_t>(multiprocessors_, (pixels + in_block - 1) / in_block));
    return cuda::check(
        cuda::launch_overlapping(kernel_, blocks, tuning.equalize_threads, 0, early_, &params_, queue.stream),
        "cannot launch the equalisation");
  }

  const int values_;
  const bool planes_;
  const std::unique_ptr<Counting> histogram_;
  cuda::DeviceMemory table_;
  const void* kernel_ = nullptr;
  int multiprocessors_ = 1;
  bool overlap_ = false;  ///< whether the device can start a launch before the previous one ends
  bool early_ = false;    ///< see cuda::launch_overlapping()
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
