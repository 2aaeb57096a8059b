// SPDX-License-Identifier: LGPL-2.1-or-later
#include "../convolve.hpp"

#include <algorithm>
#include <climits>
#include <utility>

#include "convolve_kernels.cuh"
#include "filter.hpp"

namespace cudavision {
namespace cuda::convolve {
using cudavision::detail::ConvolvePlan;

namespace {

/// What a block computes.
struct Tile {
  int strip, width, height;  ///< pixels: tiles start at a multiple of `strip`
};

/// Sets what depends on the frames; returns the number of blocks. Sums are of samples, or (`stored`) of words as they are stored.
template <typename Acc, int Count>
int set_jobs(Params<Acc, Count>& params, const ConvolvePlan& plan, const Image& src, const Image& dst, const SetRects& rects,
             const std::array<Tile, 3>& tiles) {
  const FormatInfo& format = info(plan.geometry.format);
  int blocks = 0;
  for (int i = 0; i < 3; ++i) {
    Job<Acc>& job = params.jobs[i];
    job.first_block = i < format.set_count ? blocks : INT_MAX;
    if (i >= format.set_count || rects[i].empty()) continue;
    const SetView view = job.view = make_view(src, dst, i, rects[i], plan.border, plan.border_value, plan.filter_alpha);
    const ChannelSet& set = format.sets[i];
    const Plane &from = src.planes[set.plane], &to = dst.planes[set.plane];
    const int alignment = strip_alignment(set.channels, format.sample_bytes());
    job.src_wide = aligned_to(from.data, from.pitch, alignment);
    job.dst_wide = aligned_to(to.data, to.pitch, alignment);
    job.tiles_x = (view.x1 - (view.x0 & -tiles[i].strip) + tiles[i].width - 1) / tiles[i].width;
    blocks += job.tiles_x * ((view.y1 - view.y0 + tiles[i].height - 1) / tiles[i].height);

    constexpr int far = 1 << 28;
    job.whole = {-far, -far, 2 * far, 2 * far};
    if (plan.border == Border::fill || plan.border == Border::copy)
      job.whole = {plan.anchor_x, plan.anchor_y, view.width - plan.width + 1, view.height - plan.height + 1};

    std::fill(std::begin(job.border_words), std::end(job.border_words), 0);
    for (int c = 0; c < set.channels; ++c) {
      if (set.roles[c] == Role::other) continue;
      const std::size_t role = std::size_t(set.roles[c]);
      double before = plan.gradient() ? 0 : plan.before[role], after = plan.after[role];
      if (!params.absolute) before += std::exchange(after, 0);
      job.before[c] = Acc(before);
      job.after[c] = Acc(after);
      for (int j = 0; j < 4; ++j) {
        const int bit = (j * set.channels + c) * format.sample_bytes() * 8;
        job.border_words[bit / 32] |= std::uint32_t(view.border_value[c] << view.shift) << bit % 32;
      }
    }
  }
  return blocks;
}

template <typename Acc, int Count>
void set_kernel(Params<Acc, Count>& params, const ConvolvePlan& plan, double scale) {
  params.width = plan.width;
  params.height = plan.height;
  params.anchor_x = plan.anchor_x;
  params.anchor_y = plan.anchor_y;
  params.absolute = plan.absolute && !plan.gradient();  // a root has no sign
  params.scale = Acc(scale);
}

/// P are the parameters of the kernel of any size; the unrolled ones run where they can.
template <typename P>
class Convolve : public CudaFilter {
 public:
  Convolve(ConvolvePlan plan, int warps, std::size_t shared_bytes)
      : CudaFilter(plan.geometry), plan_(std::move(plan)), warps_(warps), shared_bytes_(shared_bytes) {}

  /// With the context current.
  Status prepare(int shared_limit) {
    const FormatInfo& format = info(plan_.geometry.format);
    const int reach = std::max({plan_.anchor_x, plan_.width - 1 - plan_.anchor_x, plan_.anchor_y, plan_.height - 1 - plan_.anchor_y});
    if (!plan_.wide && reach <= small_reach) set_small(format, 2 * std::max(reach, 1) + 1);
    if (plan_.gradient() && !small_.function) return Status::settings("gradient kernels must be 3×3 at most, in CUDA");
    if (small_.function) {
      // Asking loads the code now: a launch must not.
      cudaFuncAttributes attributes;
      if (Status status = check(cudaFuncGetAttributes(&attributes, small_.function), "cannot load the convolution kernel"); !status.ok())
        return status;
    }
    if (plan_.gradient()) return {};
    set_tiled();
    tiled_ = tile_kernel(format, two_pass, sizeof(Acc) == 8);
    return check(cudaFuncSetAttribute(tiled_, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_limit),
                 "cannot load the convolution kernel");
  }

 protected:
  Status filter(const Image& src, const Image& dst, const SetRects& rects, Queue queue) override {
    const FormatInfo& format = info(plan_.geometry.format);
    if (small_.function) {
      std::array<Tile, 3> tiles;
      for (int i = 0; i < format.set_count; ++i) {
        const int strip = strip_pixels(format.sets[i].channels, format.sample_bytes());
        tiles[i] = {strip, 32 * strip, small_warps * small_.rows[i > 0]};
      }
      const int blocks = set_jobs(small_params_, plan_, src, dst, rects, tiles);
      const bool wide = std::all_of(small_params_.jobs, small_params_.jobs + format.set_count,
                                    [](const Job<float>& job) { return job.src_wide; });
      // Planes of odd alignment go sample by sample, which the tile amortises better.
      if (wide || !tiled_) return launch(small_.function, blocks, 32 * small_warps, 0, small_params_, queue);
    }
    std::array<Tile, 3> tiles;
    tiles.fill({4, tile_width, warps_ * tile_rows<Acc>});
    const int blocks = set_jobs(params_, plan_, src, dst, rects, tiles);
    return launch(tiled_, blocks, 32 * warps_, shared_bytes_, params_, queue);
  }

 private:
  using Acc = decltype(P::scale);
  static constexpr bool two_pass = std::is_same_v<P, TwoPassParams<Acc>>;

  template <typename Any>
  static Status launch(const void* function, int blocks, int threads, std::size_t shared_bytes, Any& params, Queue queue) {
    if (blocks == 0) return {};
    void* arguments[] = {&params};
    return check(cudaLaunchKernel(function, dim3(blocks), dim3(threads), arguments, shared_bytes, queue.stream),
                 "cannot launch the convolution");
  }

  /// The kernel amid zeros, side × side around the anchor.
  void set_small(const FormatInfo& format, int side) {
    const Small kind = plan_.gradient() ? Small::gradient : plan_.separable() && side > 3 ? Small::two_pass : Small::direct;
    small_ = small_kernel(format, side, kind);
    set_kernel(small_params_, plan_, plan_.scale / (1 << format.shift));
    const int left = side / 2 - plan_.anchor_x, top = side / 2 - plan_.anchor_y;
    float* const weights = small_params_.weights;
    if (kind == Small::two_pass) {
      std::copy(plan_.row.begin(), plan_.row.end(), weights + left);
      std::copy(plan_.column.begin(), plan_.column.end(), weights + side + top);
      return;
    }
    for (int y = 0; y < plan_.height; ++y)
      for (int x = 0; x < plan_.width; ++x) {
        const int at = (top + y) * side + left + x, from = y * plan_.width + x;
        weights[at] = float(plan_.weights[from]);
        if (kind == Small::gradient) weights[side * side + at] = float(plan_.vertical[from]);
      }
  }

  void set_tiled() {
    set_kernel(params_, plan_, plan_.scale);
    if (two_pass) {
      std::copy(plan_.row.begin(), plan_.row.end(), params_.weights);
      std::copy(plan_.column.begin(), plan_.column.end(), params_.weights + column_at);
      return;
    }
    params_.stride = sizeof(Acc) == 4 ? (plan_.width + 3) / 4 * 4 : plan_.width;
    for (int y = 0; y < plan_.height; ++y)
      std::copy_n(plan_.weights.begin() + y * plan_.width, plan_.width, params_.weights + y * params_.stride);
  }

  const ConvolvePlan plan_;
  const int warps_;
  const std::size_t shared_bytes_;
  SmallKernel small_{};
  const void* tiled_ = nullptr;
  SmallParams small_params_;
  P params_;
};

/// Makes the filter with as many warps a block as its shared memory holds; nullptr where not even one fits.
template <typename P>
Result<std::unique_ptr<Filter>> make(const ConvolvePlan& plan, int shared_limit) {
  using Acc = decltype(P::scale);
  constexpr bool two_pass = std::is_same_v<P, TwoPassParams<Acc>>;
  const auto bytes = [&](int warps) {
    return tile_bytes(warps, tile_rows<Acc>, plan.width, plan.height, two_pass, sizeof(Acc));
  };
  int warps = tile_warps;
  while (warps > 0 && bytes(warps) > std::size_t(shared_limit)) warps /= 2;
  if (warps == 0) return std::unique_ptr<Filter>();
  auto filter = std::make_unique<Convolve<P>>(plan, warps, bytes(warps));
  if (Status status = filter->prepare(shared_limit); !status.ok()) return status;
  return std::unique_ptr<Filter>(std::move(filter));
}

}  // namespace
}  // namespace cuda::convolve

namespace detail {

Result<std::unique_ptr<Filter>> make_convolve_cuda(ConvolvePlan plan) {
  using namespace cuda::convolve;
  int device = 0, shared_limit = 0;
  if (Status status = cuda::check(cudaGetDevice(&device), "cannot use the CUDA device"); !status.ok()) return status;
  if (Status status = cuda::check(cudaDeviceGetAttribute(&shared_limit, cudaDevAttrMaxSharedMemoryPerBlockOptin, device),
                                  "cannot ask the CUDA device for its shared memory");
      !status.ok())
    return status;
  if (plan.separable()) {
    auto filter = plan.wide ? make<TwoPassParams<double>>(plan, shared_limit) : make<TwoPassParams<float>>(plan, shared_limit);
    if (!filter.ok() || filter.value()) return filter;  // else the device's shared memory holds no row results: all at once
  }
  return plan.wide ? make<DirectParams<double>>(plan, shared_limit) : make<DirectParams<float>>(plan, shared_limit);
}

}  // namespace detail
}  // namespace cudavision
