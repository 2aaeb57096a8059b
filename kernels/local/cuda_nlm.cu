// SPDX-License-Identifier: LGPL-2.1-or-later
// Non-local means on CUDA.
//
//   a block: some warps, one above the other. The block loads the samples of its results, and a margin of
//   reach + search-radius around them, into shared memory. Each word there holds a sample and the sample below it.
//   After that, each warp works independently.
//
//   a warp: two groups of 16 × 16 results, and a halo around them:
//
//         halo   group 0   group 1   halo
//       ┌ ─ ─ ┬─────────┬─────────┬ ─ ─ ┐
//             │         │         │         halo: 4, 8 or 16 rows and columns, the smallest that cover the radius.
//       ├ ─ ─ ┼─────────┼─────────┼ ─ ─ ┤
//             │ 16 × 16 │ 16 × 16 │         Radius 0 and 1 have no halo: the results of a group are the inner
//       ├ ─ ─ ┼─────────┼─────────┼ ─ ─ ┤   14 × 14 of its 16 × 16 samples.
//             │         │         │
//       └ ─ ─ ┴─────────┴─────────┴ ─ ─ ┘
//
//   For each offset, the lanes compute the squared differences of all samples. The matrix units sum them over the
//   patches:
//
//     column sums, 16 rows × 8 columns  =  1 where the patch of one row includes the other row
//                                             ×  squares, (16 + halo) rows × 8 columns
//     distances, 16 columns × 8 rows    =  1 where the patch of one column includes the other column
//                                             ×  column sums, transposed, (16 + halo) columns × 8 rows
//
//   The first product leaves its results in the lanes that need them for the second product. The second product leaves
//   its results in the lanes that have the differences of the same samples. So lanes exchange no data. Each lane has
//   the weights w of 16 results, and sums w and w · difference. A result is sample + Σ w · difference / Σ w.
//
//   The grid: blocks that cover the rectangle, for each component of a channel set.
//
// Where to change what: the arithmetic of a warp: cuda_nlm.cuh; blocks: cuda_nlm_schedule.cpp; their sizes:
// cuda_tuning.hpp.
#include <algorithm>
#include <array>

#include "kernels/core/sample.hpp"
#include "kernels/cuda/filter.hpp"
#include "kernels/local/cuda_nlm.cuh"
#include "kernels/local/plan.hpp"

namespace cudavision::local {
namespace {

constexpr int warp = 32;
constexpr int max_threads = warp * tuning.nlm_warps_x * tuning.nlm_warps_y;

template <Samples samples, int reach>
__global__ void __launch_bounds__(max_threads, nlm_min_blocks(samples, reach))
    non_local_means(const __grid_constant__ NlmJob job) {
  using Tile = NlmTile<reach>;
  extern __shared__ __align__(16) unsigned char picture[];
  const int warps = blockDim.x / warp, warp_x = threadIdx.x / warp % job.warps_x,
            warp_y = threadIdx.x / warp / job.warps_x;
  const int block_width = job.warps_x * Tile::width, block_height = warps / job.warps_x * Tile::height;
  // Tiles at the edge of the frame take longer, so the last row is processed first.
  const int row_of_blocks = blockIdx.y == 0 ? gridDim.y - 1 : blockIdx.y - 1;
  const int left = (job.grid.first_x + blockIdx.x) * block_width,
            top = (job.grid.first_y + row_of_blocks) * block_height;
  const int reach_x = reach + job.search_x, reach_y = reach + job.search_y;

  // Each thread loads a part of a column.
  const int picture_width = block_width + 2 * reach_x, picture_height = block_height + 2 * reach_y;
  const int parts = max(1, int(blockDim.x) / picture_width), share = (picture_height + parts - 1) / parts;
  for (int i = threadIdx.x; i < picture_width * parts; i += blockDim.x) {
    const int column = i % picture_width, begin = i / picture_width * share, end = min(begin + share, picture_height);
    const int x = left - reach_x + column, y = top - reach_y;
    const unsigned char* src =
        job.src + job.channels[blockIdx.z] + std::ptrdiff_t(x) * job.step + (y + begin) * job.src_pitch;
    const unsigned height = x >= 0 && x < job.width ? job.height : 0;  // samples outside the frame are never counted
    const auto next = [&](int row) -> uint32_t {
      const uint32_t sample = unsigned(y + row) < height
                                  ? sample_of(*reinterpret_cast<const Stored<samples>*>(src), job.shift, job.max_value)
                                  : 0;
      src += job.src_pitch;
      return sample;
    };
    uint32_t* word = reinterpret_cast<uint32_t*>(picture) + begin * job.pitch + column;
    uint32_t upper = next(begin);
    for (int row = begin; row < end; ++row, word += job.pitch) {
      const uint32_t lower = next(row + 1);
      *word = word_of<samples>(upper, lower);
      upper = lower;
    }
  }
  __syncthreads();

  const int x = left + warp_x * Tile::width, y = top + warp_y * Tile::height;
  const int at_x = reach_x + warp_x * Tile::width, at_y = reach_y + warp_y * Tile::height;
  if (x >= job.rect.x + job.rect.width || y >= job.rect.y + job.rect.height || x + Tile::width <= job.rect.x ||
      y + Tile::height <= job.rect.y)
    return;
  const int far_x = job.radius_x + job.search_x, far_y = job.radius_y + job.search_y;
  if (x < far_x || y < far_y || x + Tile::width + far_x > job.width || y + Tile::height + far_y > job.height)
    denoise<samples, reach, true>(job, picture, x, y, at_x, at_y);
  else
    denoise<samples, reach, false>(job, picture, x, y, at_x, at_y);
}

using Kernel = void (*)(NlmJob);

template <Samples samples>
Kernel kernel_for(int reach) {
  switch (reach) {
    case 1:
      return non_local_means<samples, 1>;
    case 4:
      return non_local_means<samples, 4>;
    case 8:
      return non_local_means<samples, 8>;
    default:
      return non_local_means<samples, 16>;
  }
}

class CudaNlm final : public cuda::CudaFilter {
 public:
  explicit CudaNlm(Plan plan) : CudaFilter(plan.geometry), plan_(std::move(plan)) {}

  Status load() {
    const auto device = cuda::current_device();
    if (!device.ok()) return device.error();
    const int limit = device.value().shared_limit;
    const FormatInfo& format = info(plan_.geometry.format);
    samples_ = format.depth == 8 ? Samples::bits8 : format.depth <= 10 ? Samples::bits10 : Samples::bits16;
    for (int s = 0; s < format.color_sets(); ++s) {
      const Plan::Radius &radius = plan_.radius[s], &search = plan_.search[s];
      blocks_[s] = make_nlm_block(radius.x, radius.y, search.x, search.y, std::size_t(limit));
      if (blocks_[s].warps_x == 0)
        return Status::settings("radius and search-radius need more shared memory than the device has");
      if (Status status = cuda::load_kernel(kernel(s), "cannot load the kernel for non-local means", limit);
          !status.ok())
        return status;
    }
    return {};
  }

 private:
  Kernel kernel(int set) const {
    const int reach = blocks_[set].reach;
    return samples_ == Samples::bits8    ? kernel_for<Samples::bits8>(reach)
           : samples_ == Samples::bits10 ? kernel_for<Samples::bits10>(reach)
                                         : kernel_for<Samples::bits16>(reach);
  }

  Status filter(const Image& src, const Image& dst, const SetRects& rects, Queue queue) override {
    const FormatInfo& format = info(plan_.geometry.format);
    for (int s = 0; s < format.color_sets(); ++s) {
      const ChannelSet& set = format.sets[s];
      if (rects[s].empty()) continue;
      bool copies = false;
      for (int c = 0; c < set.channels; ++c) copies |= !is_color(set.roles[c]) && set.roles[c] != Role::other;
      if (copies) {
        SetRects copied{};
        copied[s] = rects[s];
        if (Status status = copy_rects(src, dst, copied, queue); !status.ok()) return status;
      }
      if (Status status = launch(src, dst, s, rects[s], queue); !status.ok()) return status;
    }
    return {};
  }

  Status launch(const Image& src, const Image& dst, int s, const Rect& rect, Queue queue) const {
    const FormatInfo& format = info(plan_.geometry.format);
    const ChannelSet& set = format.sets[s];
    const Plane &from = src.planes[set.plane], &to = dst.planes[set.plane];
    const Rect grid = plan_.geometry.grid(set);
    const NlmBlock& block = blocks_[s];
    NlmJob job{};
    job.src = static_cast<const unsigned char*>(from.data);
    job.dst = static_cast<unsigned char*>(to.data);
    job.src_pitch = from.pitch, job.dst_pitch = to.pitch;
    job.step = set.channels * format.sample_bytes();
    unsigned channels = 0;
    for (int c = 0; c < set.channels; ++c)
      if (is_color(set.roles[c])) job.channels[channels++] = c * format.sample_bytes();
    job.width = grid.width, job.height = grid.height;
    job.rect = rect;
    job.grid = nlm_grid(block, rect);
    job.radius_x = plan_.radius[s].x, job.radius_y = plan_.radius[s].y;
    job.search_x = plan_.search[s].x, job.search_y = plan_.search[s].y;
    job.shift = format.shift, job.max_value = format.max_value();
    job.warps_x = block.warps_x, job.pitch = block.pitch;
    job.span = nlm_span(samples_, job.search_x);
    const double unit = unit_of(samples_), log2_e = 1.4426950408889634;
    const double scale = plan_.scale * log2_e * unit * unit / ((2 * job.radius_x + 1) * (2 * job.radius_y + 1));
    // The largest half-precision number is 65504. Where this limits the exponent of a weight, the weight is below
    // 2^-50.
    job.band = samples_ == Samples::bits8 ? float(std::max(scale, -60000.0)) : 1;
    job.scale = float(scale);
    const dim3 blocks(job.grid.blocks_x, job.grid.blocks_y, channels);
    kernel(s)<<<blocks, warp * block.warps_x * block.warps_y, block.shared_bytes, queue.stream>>>(job);
    return cuda::check(cudaGetLastError(), "cannot launch the non-local means");
  }

  const Plan plan_;
  Samples samples_ = Samples::bits8;
  std::array<NlmBlock, max_sets> blocks_;
};

}  // namespace

Result<std::unique_ptr<Filter>> make_nlm_cuda(Plan plan) { return cuda::loaded<CudaNlm>(std::move(plan)); }

}  // namespace cudavision::local
