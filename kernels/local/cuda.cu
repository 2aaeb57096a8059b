// SPDX-License-Identifier: LGPL-2.1-or-later
#include <algorithm>

#include "kernels/cuda/filter.hpp"
#include "kernels/cuda/memory.hpp"
#include "kernels/cuda/rows.cuh"
#include "kernels/local/local.hpp"

namespace cudavision {
namespace cuda {
namespace {
using cudavision::detail::LocalPlan;

constexpr int box_width = 128;  ///< pixels of a row that a warp computes
constexpr int box_warps = 4;

/// One channel set, its padded tables, and the window.
struct BoxJob {
  SetView view;
  const unsigned char *sums[4], *squares[4];  ///< by channel; nullptr: chroma that becomes neutral
  std::ptrdiff_t sums_pitch, squares_pitch;
  int radius_x, radius_y, neutral;
  LocalOperation operation;
  double factor;
};

/// The sum over [x0, x1) × [y0, y1), modulo what Sum holds.
template <typename Sum>
__device__ __forceinline__ Sum box_sum(const unsigned char* table, std::ptrdiff_t pitch, int x0, int y0, int x1, int y1) {
  const auto *top = reinterpret_cast<const Sum*>(table + y0 * pitch), *bottom = reinterpret_cast<const Sum*>(table + y1 * pitch);
  return (__ldg(bottom + x1) - __ldg(bottom + x0)) - (__ldg(top + x1) - __ldg(top + x0));
}

/// sum / count rounded half to even, for quotients below 2^16. The estimate is off by one at most.
template <typename Sum>
__device__ __forceinline__ int rounded_mean(Sum sum, int count, float per_count) {
  int quotient = int(float(sum) * per_count);
  std::int64_t rest = std::int64_t(sum) - std::int64_t(quotient) * count;
  if (rest < 0) --quotient, rest += count;
  if (rest >= count) ++quotient, rest -= count;
  return quotient + (2 * rest + (quotient & 1) > count);
}

template <typename T, int C, typename Sum>
__global__ void __launch_bounds__(32 * box_warps) box_filter(const __grid_constant__ BoxJob job) {
  __shared__ __align__(16) T results[box_warps][C][box_width];
  const SetView& view = job.view;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int x = (view.x0 & -4) + blockIdx.x * box_width, y = view.y0 + blockIdx.y * box_warps + warp;
  if (y >= view.y1) return;
  const int y0 = max(y - job.radius_y, 0), y1 = min(y + job.radius_y + 1, view.height);
#pragma unroll
  for (int c = 0; c < C; ++c) {
    if (!(view.filtered >> c & 1)) continue;
#pragma unroll
    for (int j = 0; j < box_width / 32; ++j) {
      int result = job.neutral;
      if (job.sums[c]) {
        const int at = min(x + lane + 32 * j, view.width - 1);
        const int x0 = max(at - job.radius_x, 0), x1 = min(at + job.radius_x + 1, view.width);
        const int count = (x1 - x0) * (y1 - y0);
        const Sum sum = box_sum<Sum>(job.sums[c], job.sums_pitch, x0, y0, x1, y1);
        if (job.operation == LocalOperation::box_mean) {
          result = rounded_mean(sum, count, 1.0f / float(count));
        } else if (job.operation == LocalOperation::threshold) {
          const Sum own = box_sum<Sum>(job.sums[c], job.sums_pitch, at, y, at + 1, y + 1);
          result = double(std::int64_t(own) * count) < __dmul_rn(double(sum), job.factor) ? 0 : view.max_value;
        } else {
          const std::uint64_t squares = box_sum<std::uint64_t>(job.squares[c], job.squares_pitch, x0, y0, x1, y1);
          const double mean = double(sum) / count;
          result = __double2int_rn(sqrt(fmax(__dsub_rn(double(squares) / count, __dmul_rn(mean, mean)), 0.0)));
        }
      }
      results[warp][c][lane + 32 * j] = T(result);
    }
  }
  __syncwarp();
  Quad<T, C> quad;
#pragma unroll
  for (int c = 0; c < C; ++c)
#pragma unroll
    for (int w = 0; w < int(sizeof(T)); ++w)
      quad.word[c][w] = reinterpret_cast<const std::uint32_t*>(results[warp][c])[lane * int(sizeof(T)) + w];
  store_quad<T, C>(view, x + 4 * lane, y, quad);
}

// Non-local means. A block computes a tile; for each offset it sums the squared differences down the columns, by adding the row that
// enters the patch and taking away the one that leaves it, then along the rows in the same way: constant time for any radius but for
// the start of each run.
constexpr int nlm_width = 64, nlm_height = 32, nlm_run = 8;  ///< of a tile; results in a run
constexpr int nlm_threads = nlm_width / nlm_run * nlm_height;

struct NlmJob {
  const unsigned char* src;  ///< the first sample of the component
  unsigned char* dst;
  std::ptrdiff_t src_pitch, dst_pitch;
  int step;           ///< bytes from sample to sample
  int width, height;  ///< of the grid
  Rect rect;
  int radius_x, radius_y, search_x, search_y;
  int shift, max_value;
  float scale;  ///< log2(e) · (−1 / h²)
};

/// Words of a row of column sums: not a multiple of the banks.
inline int nlm_sum_pitch(int radius) { return nlm_width + 2 * radius + 2; }
inline std::size_t nlm_shared_bytes(int radius_x, int radius_y, int search_x, int search_y, int sample_bytes) {
  const std::size_t samples =
      std::size_t(nlm_width + 2 * (radius_x + search_x)) * (nlm_height + 2 * (radius_y + search_y)) * sample_bytes;
  return (samples + 7) / 8 * 8 + std::size_t(nlm_sum_pitch(radius_x)) * nlm_height * (sample_bytes == 1 ? 4 : 8);
}

template <typename T>
__global__ void __launch_bounds__(nlm_threads) non_local_means(const __grid_constant__ NlmJob job, int sum_pitch) {
  using Sum = std::conditional_t<sizeof(T) == 1, std::uint32_t, std::uint64_t>;  // of squares over a patch
  using Mean = std::conditional_t<sizeof(T) == 1, float, double>;                // of weighted samples
  extern __shared__ __align__(8) unsigned char shared[];
  const int reach_x = job.radius_x + job.search_x, reach_y = job.radius_y + job.search_y;
  const int pitch = nlm_width + 2 * reach_x, rows = nlm_height + 2 * reach_y;
  T* const samples = reinterpret_cast<T*>(shared);
  Sum* const sums = reinterpret_cast<Sum*>(shared + (std::size_t(pitch) * rows * sizeof(T) + 7) / 8 * 8);
  const int tile_x = job.rect.x + blockIdx.x * nlm_width, tile_y = job.rect.y + blockIdx.y * nlm_height;

  for (int i = threadIdx.x; i < pitch * rows; i += nlm_threads) {
    const int x = tile_x - reach_x + i % pitch, y = tile_y - reach_y + i / pitch;
    T value = 0;  // outside of the frame: never counted
    if (x >= 0 && x < job.width && y >= 0 && y < job.height)
      value = T(sample_of(*reinterpret_cast<const T*>(job.src + y * job.src_pitch + std::ptrdiff_t(x) * job.step), job.shift,
                          job.max_value));
    samples[i] = value;
  }
  __syncthreads();

  const int row = threadIdx.x / (nlm_width / nlm_run),
            run = threadIdx.x % (nlm_width / nlm_run) * nlm_run;  // of this thread's results
  const int y = tile_y + row, x = tile_x + run;
  Mean means[nlm_run] = {}, weights[nlm_run] = {};
  const int columns = nlm_width + 2 * job.radius_x;
  for (int dy = -job.search_y; dy <= job.search_y; ++dy) {
    const int low_y = max(0, -dy),
              high_y = min(job.height, job.height - dy);  // where a sample and the one at the offset are inside
    for (int dx = -job.search_x; dx <= job.search_x; ++dx) {
      const int low_x = max(0, -dx), high_x = min(job.width, job.width - dx);
      for (int item = threadIdx.x; item < columns * (nlm_height / nlm_run); item += nlm_threads) {
        const int column = item % columns, first = item / columns * nlm_run, at_x = tile_x - job.radius_x + column;
        const bool valid = at_x >= low_x && at_x < high_x;
        const T* const base = samples + reach_y * pitch + job.search_x + column;
        const auto square = [&](int r) -> Sum {
          if (!valid || tile_y + r < low_y || tile_y + r >= high_y) return 0;
          const int difference = int(base[r * pitch]) - int(base[(r + dy) * pitch + dx]);
          return Sum(std::int64_t(difference) * difference);
        };
        Sum sum = 0;
        for (int r = first - job.radius_y; r < first + job.radius_y; ++r) sum += square(r);
        for (int r = first; r < first + nlm_run; ++r) {
          sum += square(r + job.radius_y);
          sums[r * sum_pitch + column] = sum;
          sum -= square(r - job.radius_y);
        }
      }
      __syncthreads();
      if (y >= low_y && y < high_y) {
        const int count_y = min(y + job.radius_y + 1, high_y) - max(y - job.radius_y, low_y);
        const Sum* const line = sums + row * sum_pitch + run;
        const T* const others = samples + (row + reach_y + dy) * pitch + reach_x + run + dx;
        Sum sum = 0;
        for (int i = 0; i < 2 * job.radius_x; ++i) sum += line[i];
#pragma unroll
        for (int i = 0; i < nlm_run; ++i) {
          sum += line[i + 2 * job.radius_x];
          if (x + i >= low_x && x + i < high_x) {
            const int count = count_y * (min(x + i + job.radius_x + 1, high_x) - max(x + i - job.radius_x, low_x));
            const Mean weight = exp2f(job.scale * (float(sum) / float(count)));
            weights[i] += weight;
            means[i] += weight * Mean(others[i]);
          }
          sum -= line[i];
        }
      }
      __syncthreads();
    }
  }
  if (y >= job.rect.y + job.rect.height) return;
#pragma unroll
  for (int i = 0; i < nlm_run; ++i) {
    if (x + i >= job.rect.x + job.rect.width) break;
    const int value = min(__double2int_rn(double(means[i]) / double(weights[i])), job.max_value);
    *reinterpret_cast<T*>(job.dst + y * job.dst_pitch + std::ptrdiff_t(x + i) * job.step) = T(value << job.shift);
  }
}

class CudaNlm final : public CudaFilter {
 public:
  explicit CudaNlm(LocalPlan plan) : CudaFilter(plan.geometry), plan_(std::move(plan)) {}

  Status load() {
    const FormatInfo& format = info(plan_.geometry.format);
    kernel_ = format.sample_bytes() == 1 ? reinterpret_cast<const void*>(&non_local_means<std::uint8_t>)
                                         : reinterpret_cast<const void*>(&non_local_means<std::uint16_t>);
    int device = 0, limit = 0;
    cudaError_t error = cudaGetDevice(&device);
    if (error == cudaSuccess) error = cudaDeviceGetAttribute(&limit, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
    if (error == cudaSuccess) error = cudaFuncSetAttribute(kernel_, cudaFuncAttributeMaxDynamicSharedMemorySize, limit);
    if (Status status = check(error, "cannot load the kernel for non-local means"); !status.ok()) return status;
    if (shared_bytes(0) > std::size_t(limit))
      return Status::settings("radius and search-radius are more than the device's shared memory holds");
    return {};
  }

 private:
  std::size_t shared_bytes(int set) const {
    const LocalPlan::Radius &r = plan_.radius[set], &s = plan_.search[set];
    return nlm_shared_bytes(r.x, r.y, s.x, s.y, info(plan_.geometry.format).sample_bytes());
  }

  Status filter(const Image& src, const Image& dst, const SetRects& rects, Queue queue) override {
    const FormatInfo& format = info(plan_.geometry.format);
    for (int s = 0; s < format.set_count; ++s) {
      const ChannelSet& set = format.sets[s];
      if (rects[s].empty()) continue;
      for (int c = 0; c < set.channels; ++c)
        if (set.roles[c] == Role::alpha || set.roles[c] == Role::padding) {
          SetRects kept{};
          kept[s] = rects[s];
          if (Status status = copy_rects(src, dst, kept, queue); !status.ok()) return status;
        }
      for (int c = 0; c < set.channels; ++c) {
        const Role role = set.roles[c];
        if (role == Role::other || role == Role::alpha || role == Role::padding) continue;
        if (Status status = launch(src, dst, s, c, rects[s], queue); !status.ok()) return status;
      }
    }
    return {};
  }

  Status launch(const Image& src, const Image& dst, int s, int channel, const Rect& rect, Queue queue) const {
    const FormatInfo& format = info(plan_.geometry.format);
    const ChannelSet& set = format.sets[s];
    const Plane &from = src.planes[set.plane], &to = dst.planes[set.plane];
    const Rect grid = plan_.geometry.grid(set);
    const int offset = channel * format.sample_bytes();
    NlmJob job{static_cast<const unsigned char*>(from.data) + offset,
               static_cast<unsigned char*>(to.data) + offset,
               from.pitch,
               to.pitch,
               set.channels * format.sample_bytes(),
               grid.width,
               grid.height,
               rect,
               plan_.radius[s].x,
               plan_.radius[s].y,
               plan_.search[s].x,
               plan_.search[s].y,
               format.shift,
               format.max_value(),
               float(plan_.scale * 1.4426950408889634)};
    int sum_pitch = nlm_sum_pitch(job.radius_x);
    void* arguments[] = {&job, &sum_pitch};
    const dim3 blocks((rect.width + nlm_width - 1) / nlm_width, (rect.height + nlm_height - 1) / nlm_height);
    return check(cudaLaunchKernel(kernel_, blocks, dim3(nlm_threads), arguments, shared_bytes(s), queue.stream),
                 "cannot launch the non-local means");
  }

  const LocalPlan plan_;
  const void* kernel_ = nullptr;
};

class CudaBox final : public CudaFilter {
 public:
  explicit CudaBox(LocalPlan plan) : CudaFilter(plan.geometry), plan_(std::move(plan)) {}

  Status load() {
    auto integral = cudavision::detail::make_integral_cuda(plan_.tables);
    if (!integral.ok()) return integral.error();
    integral_ = std::move(integral.value());
    std::size_t bytes = 0;
    for (const TableInfo& table : integral_->tables()) {
      // Whole cache lines, but not a power of two apart: rows of a window would share their places in the cache.
      const std::size_t pitch = (std::size_t(table.width) * table.entry_bytes() + 127) / 128 * 128;
      tables_.push_back({reinterpret_cast<void*>(bytes), std::ptrdiff_t(pitch)});
      bytes += pitch * table.height;
    }
    if (Status status = memory_.allocate(bytes); !status.ok()) return status;
    for (Plane& table : tables_)
      table.data = static_cast<unsigned char*>(memory_.data()) + reinterpret_cast<std::uintptr_t>(table.data);
    const FormatInfo& format = info(plan_.geometry.format);
    with_layout(format, [&](auto sample, auto first, auto rest) {
      using T = decltype(sample);
      kernels_[0] = choose<T, decltype(first)::value>();
      kernels_[1] = choose<T, decltype(rest)::value>();
    });
    for (const void* kernel : kernels_) {
      cudaFuncAttributes attributes;  // asking loads the code now: a launch must not
      if (Status status = check(cudaFuncGetAttributes(&attributes, kernel), "cannot load the kernel for local filters");
          !status.ok())
        return status;
    }
    return {};
  }

 private:
  template <typename T, int C>
  const void* choose() const {
    return plan_.tables.tables[0].type == SumType::u32 ? reinterpret_cast<const void*>(&box_filter<T, C, std::uint32_t>)
                                                       : reinterpret_cast<const void*>(&box_filter<T, C, std::uint64_t>);
  }

  Status begin(const Image& src, const Region&, Queue queue) override { return integral_->submit(src, tables_, queue); }

  Status filter(const Image& src, const Image& dst, const SetRects& rects, Queue queue) override {
    const FormatInfo& format = info(plan_.geometry.format);
    for (int s = 0; s < format.set_count; ++s) {
      if (rects[s].empty()) continue;
      BoxJob job{};
      job.view = make_view(src, dst, s, rects[s], Border::replicate, {}, false);
      for (int c = 0; c < format.sets[s].channels; ++c) {
        const int table = plan_.table_of[s][c];
        if (table < 0) continue;
        job.sums[c] = static_cast<const unsigned char*>(tables_[table].data);
        job.sums_pitch = tables_[table].pitch;
        if (plan_.operation != LocalOperation::deviation) continue;
        job.squares[c] = static_cast<const unsigned char*>(tables_[table + plan_.squares].data);
        job.squares_pitch = tables_[table + plan_.squares].pitch;
      }
      job.radius_x = plan_.radius[s].x;
      job.radius_y = plan_.radius[s].y;
      job.neutral = format.neutral_chroma();
      job.operation = plan_.operation;
      job.factor = plan_.factor;
      void* arguments[] = {&job};
      const int width = job.view.x1 - (job.view.x0 & -4), height = job.view.y1 - job.view.y0;
      const dim3 blocks((width + box_width - 1) / box_width, (height + box_warps - 1) / box_warps);
      const Status status = check(cudaLaunchKernel(kernels_[s > 0], blocks, dim3(32 * box_warps), arguments, 0, queue.stream),
                                  "cannot launch the local filter");
      if (!status.ok()) return status;
    }
    return {};
  }

  const LocalPlan plan_;
  std::unique_ptr<Integral> integral_;
  DeviceMemory memory_;
  std::vector<Plane> tables_;
  std::array<const void*, 2> kernels_{};  ///< of the first set, of the others
};

template <typename LocalFilter>
Result<std::unique_ptr<Filter>> make(LocalPlan plan) {
  auto filter = std::make_unique<LocalFilter>(std::move(plan));
  if (Status status = filter->load(); !status.ok()) return status;
  return std::unique_ptr<Filter>(std::move(filter));
}

}  // namespace
}  // namespace cuda

namespace detail {

Result<std::unique_ptr<Filter>> make_local_cuda(LocalPlan plan) {
  return plan.operation == LocalOperation::nlm ? cuda::make<cuda::CudaNlm>(std::move(plan))
                                               : cuda::make<cuda::CudaBox>(std::move(plan));
}

}  // namespace detail
}  // namespace cudavision
