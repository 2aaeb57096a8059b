// SPDX-License-Identifier: LGPL-2.1-or-later
// Non-local means on CUDA.
//
//   a block: a tile of nlm_width × nlm_height results. It loads the tile's samples with a frame of radius + search-radius around it
//   into shared memory. Then, for each offset (dx, dy):
//
//     1. down the columns: a thread owns nlm_run rows of a column and sums the squared differences over the height of a patch. From one
//        row to the next it adds the row that enters the patch and subtracts the row that leaves it.
//           column sums → shared memory
//     2. along the rows: a thread owns nlm_run neighbouring results and sums the column sums over the width of a patch in the same way:
//        the distance, the weight, and then the weighted sample are added up in registers.
//
//   So a result takes constant time for each offset, whatever the radius, except for the start of each run.
//   The grid: the rectangle of one component; a launch for each component.
//
// Where to change what: the weight: `weight` in non_local_means; another border: low_x, high_x, low_y, high_y there; another sample
// type: Sum and Mean; another block shape: cuda_tuning.hpp.
#include <type_traits>

#include "kernels/core/sample.hpp"
#include "kernels/cuda/filter.hpp"
#include "kernels/local/cuda_tuning.hpp"
#include "kernels/local/plan.hpp"

namespace cudavision::local {
namespace {

constexpr int nlm_width = tuning.nlm_width, nlm_height = tuning.nlm_height, nlm_run = tuning.nlm_run;
constexpr int nlm_threads = nlm_width / nlm_run * nlm_height;

/// One component.
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

/// Entries of a row of column sums. Not a multiple of the number of banks.
inline int nlm_sum_pitch(int radius) { return nlm_width + 2 * radius + 2; }
inline std::size_t nlm_shared_bytes(int radius_x, int radius_y, int search_x, int search_y, int sample_bytes) {
  const std::size_t samples =
      std::size_t(nlm_width + 2 * (radius_x + search_x)) * (nlm_height + 2 * (radius_y + search_y)) * sample_bytes;
  return (samples + 7) / 8 * 8 + std::size_t(nlm_sum_pitch(radius_x)) * nlm_height * (sample_bytes == 1 ? 4 : 8);
}

template <typename T>
__global__ void __launch_bounds__(nlm_threads) non_local_means(const __grid_constant__ NlmJob job, int sum_pitch) {
  using Sum = std::conditional_t<sizeof(T) == 1, std::uint32_t, std::uint64_t>;  // of squared differences over a patch
  using Mean = std::conditional_t<sizeof(T) == 1, float, double>;                // of weights and weighted samples
  extern __shared__ __align__(8) unsigned char shared[];
  const int reach_x = job.radius_x + job.search_x, reach_y = job.radius_y + job.search_y;
  const int pitch = nlm_width + 2 * reach_x, rows = nlm_height + 2 * reach_y;
  T* const samples = reinterpret_cast<T*>(shared);
  Sum* const sums = reinterpret_cast<Sum*>(shared + (std::size_t(pitch) * rows * sizeof(T) + 7) / 8 * 8);
  const int tile_x = job.rect.x + blockIdx.x * nlm_width, tile_y = job.rect.y + blockIdx.y * nlm_height;

  for (int i = threadIdx.x; i < pitch * rows; i += nlm_threads) {
    const int x = tile_x - reach_x + i % pitch, y = tile_y - reach_y + i / pitch;
    T value = 0;  // outside the frame: never counted
    if (x >= 0 && x < job.width && y >= 0 && y < job.height)
      value = T(sample_of(*reinterpret_cast<const T*>(job.src + y * job.src_pitch + std::ptrdiff_t(x) * job.step), job.shift,
                          job.max_value));
    samples[i] = value;
  }
  __syncthreads();

  const int row = threadIdx.x / (nlm_width / nlm_run),
            run = threadIdx.x % (nlm_width / nlm_run) * nlm_run;  // the first of the thread's results
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

class CudaNlm final : public cuda::CudaFilter {
 public:
  explicit CudaNlm(Plan plan) : CudaFilter(plan.geometry), plan_(std::move(plan)) {}

  Status load() {
    const FormatInfo& format = info(plan_.geometry.format);
    kernel_ = format.sample_bytes() == 1 ? non_local_means<std::uint8_t> : non_local_means<std::uint16_t>;
    const auto device = cuda::current_device();
    if (!device.ok()) return device.error();
    const int limit = device.value().shared_limit;
    if (Status status = cuda::load_kernel(kernel_, "cannot load the kernel for non-local means", limit); !status.ok())
      return status;
    if (shared_bytes(0) > std::size_t(limit))
      return Status::settings("radius and search-radius are more than the device's shared memory holds");
    return {};
  }

 private:
  std::size_t shared_bytes(int set) const {
    const Plan::Radius &r = plan_.radius[set], &s = plan_.search[set];
    return nlm_shared_bytes(r.x, r.y, s.x, s.y, info(plan_.geometry.format).sample_bytes());
  }

  Status filter(const Image& src, const Image& dst, const SetRects& rects, Queue queue) override {
    const FormatInfo& format = info(plan_.geometry.format);
    for (int s = 0; s < format.set_count; ++s) {
      const ChannelSet& set = format.sets[s];
      if (rects[s].empty()) continue;
      for (int c = 0; c < set.channels; ++c)
        if (!is_color(set.roles[c]) && set.roles[c] != Role::other) {
          SetRects kept{};
          kept[s] = rects[s];
          if (Status status = copy_rects(src, dst, kept, queue); !status.ok()) return status;
        }
      for (int c = 0; c < set.channels; ++c) {
        if (!is_color(set.roles[c])) continue;
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
    const NlmJob job{static_cast<const unsigned char*>(from.data) + offset,
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
    const dim3 blocks((rect.width + nlm_width - 1) / nlm_width, (rect.height + nlm_height - 1) / nlm_height);
    kernel_<<<blocks, nlm_threads, shared_bytes(s), queue.stream>>>(job, nlm_sum_pitch(job.radius_x));
    return cuda::check(cudaGetLastError(), "cannot launch the non-local means");
  }

  const Plan plan_;
  void (*kernel_)(NlmJob, int) = nullptr;
};

}  // namespace

Result<std::unique_ptr<Filter>> make_nlm_cuda(Plan plan) {
  auto filter = std::make_unique<CudaNlm>(std::move(plan));
  if (Status status = filter->load(); !status.ok()) return status;
  return std::unique_ptr<Filter>(std::move(filter));
}

}  // namespace cudavision::local
