// SPDX-License-Identifier: LGPL-2.1-or-later
// The plan on CUDA: prepares weights once, then launches one kernel for all sets of a frame. Contains no device code.
//
//   make_cuda:  Plan -> make_schedule (which kernel, which block) -> weights in the layout of that kernel ->
//               Convolve<KernelParams>
//   filter:     for each set: SetView, border, offsets, cut (number of blocks); grid = the blocks of set 0, 1, 2
//
// Where to change what:
//   which kernel runs for which weights   cuda_schedule.cpp (make_schedule)
//   how weights are laid out              the functions …_params below
//   block shapes                          cuda_tuning.hpp; how a set is cut: cut() in cuda_schedule.cpp
//   another border                        "Walks" in CONTRIBUTING.md
#include <cuda_fp16.h>

#include <algorithm>
#include <climits>
#include <cmath>
#include <limits>
#include <utility>

#include "kernels/convolve/cuda_params.cuh"
#include "kernels/cuda/device.hpp"
#include "kernels/cuda/filter.hpp"
#include "kernels/cuda/overlap.hpp"

namespace cudavision::convolve {
namespace {

/// P: one of the parameter structs in cuda_params.cuh.
template <typename P>
class Convolve : public cuda::CudaFilter {
 public:
  /// `params`: the parameters, including the weights. `scale`: a factor of the sums, in addition to Plan::scale.
  Convolve(Plan plan, const Schedule& schedule, const void* kernel, const P& params, double scale)
      : CudaFilter(plan.geometry, plan.filter_alpha),
        plan_(std::move(plan)),
        schedule_(schedule),
        kernel_(kernel),
        params_(params),
        scale_(scale) {
    params_.width = plan_.width;
    params_.height = plan_.height;
    params_.anchor_x = plan_.anchor_x;
    params_.anchor_y = plan_.anchor_y;
  }

  /// Loads the kernel. The context must be current.
  Status prepare(const cuda::Device& device) {
    const int shared_bytes = int(schedule_.shared_bytes), threads = 32 * schedule_.warps;
    const int shared_limit = shared_bytes > 0 ? device.shared_limit : 0;
    if (Status status = cuda::load_kernel(kernel_, "cannot load the convolution kernel", shared_limit); !status.ok())
      return status;
    const auto blocks = cuda::resident_blocks(kernel_, threads, shared_bytes);
    if (!blocks.ok()) return blocks.error();
    resident_blocks_ = std::max(1, device.multiprocessors * blocks.value());
    overlaps_ =
        (schedule_.family == Family::matrix_strip || schedule_.family == Family::matrix_tile) && device.major >= 9;
    return {};
  }

 protected:
  /// A separate launch computes an alpha plane, because kernels have at most three jobs.
  Status filter(const Image& src, const Image& dst, const SetRects& rects, Queue queue) override {
    const FormatInfo& format = info(plan_.geometry.format);
    const Status status = launch(src, dst, rects, 0, format.color_sets(), queue);
    return status.ok() && format.alpha_set() >= 0 ? launch(src, dst, rects, format.alpha_set(), format.set_count, queue)
                                                  : status;
  }

 private:
  /// Computes the sets from `begin` to before `end`, at most three.
  Status launch(const Image& src, const Image& dst, const SetRects& rects, int begin, int end, Queue queue) {
    const FormatInfo& format = info(plan_.geometry.format);
    SetRects of_launch{};
    for (int i = begin; i < end; ++i) of_launch[i] = rects[i];
    StripHeight strip;
    if (schedule_.family == Family::matrix_strip) strip = strip_height(schedule_, format, of_launch, resident_blocks_);
    if (schedule_.family == Family::matrix_tile) strip = tiles_height(schedule_, format, of_launch, resident_blocks_);
    int blocks = 0;
    for (int i = 0; i < 3; ++i) {
      auto& job = params_.jobs[i];
      const int set = begin + i;
      job.first_block = set < end ? blocks : INT_MAX;
      if (set >= end || rects[set].empty()) continue;
      job.view = cuda::make_view(src, dst, set, rects[set], plan_.border, plan_.border_value, plan_.filter_alpha);
      const Cut pieces = cut(schedule_, format, format.sets[set].channels, rects[set], strip);
      set_common(job, format.sets[set]);
      set_own(job, pieces, src.planes[format.sets[set].plane], dst.planes[format.sets[set].plane]);
      blocks += pieces.blocks();
    }
    if (blocks == 0) return {};
    return cuda::check(cuda::launch_overlapping(kernel_, blocks, 32 * schedule_.warps, schedule_.shared_bytes,
                                                overlaps_, &params_, queue.stream),
                       "cannot launch the convolution");
  }

  /// Sets the fields of a job that all kernels use.
  template <typename Acc>
  void set_common(SetJob<Acc>& job, const ChannelSet& set) const {
    constexpr int far = 1 << 28;
    job.whole = {-far, -far, 2 * far, 2 * far};
    if (plan_.skips_edges())
      job.whole = {plan_.anchor_x, plan_.anchor_y, job.view.width - plan_.width + 1,
                   job.view.height - plan_.height + 1};
    const bool chroma = std::any_of(set.roles.begin(), set.roles.end(), is_chroma);
    job.absolute = plan_.absolute && !plan_.gradient() && !chroma;
    constexpr double most = std::numeric_limits<float>::max();
    job.scale = Acc(plan_.gradient() && chroma ? 0 : std::clamp(scale_ * plan_.scale, -most, most));
    for (int c = 0; c < set.channels; ++c) {
      if (set.roles[c] == Role::other) continue;
      const std::size_t role = std::size_t(set.roles[c]);
      double before = plan_.gradient() ? 0 : plan_.before[role], after = plan_.after[role];
      if (!job.absolute) before += std::exchange(after, 0);
      job.before[c] = before;
      job.after[c] = after;
    }
  }

  // Sets the fields that only one family uses.
  template <typename Acc>
  void set_own(TileJob<Acc>& job, const Cut& pieces, const Plane&, const Plane&) const {
    job.tiles_x = pieces.tiles_x;
  }
  void set_own(SmallJob& job, const Cut& pieces, const Plane&, const Plane&) const {
    job.tiles_x = pieces.tiles_x;
    set_border_words(job.border_words, job.view);
  }
  void set_own(MatrixJob& job, const Cut& pieces, const Plane& from, const Plane& to) const {
    job.cut = pieces;
    const SetView& view = job.view;
    const int channels = view.channels;
    int last_own = 0;
    for (int c = 0; c < channels; ++c)
      if (view.own >> c & 1) last_own = c;
    // In packed 4:2:2, the last byte of this set may be the row's last one.
    job.row_bytes = (view.width - 1) * channels + last_own + 1;
    job.unit = 0;
    for (int unit : {4, 8, 16})
      if (aligned_to(from.data, from.pitch, unit)) job.unit = unit;
    const bool all = view.own == (1u << channels) - 1;
    job.stores_4 = all && aligned_to(to.data, to.pitch, 4);
    job.stores_16 = all && aligned_to(to.data, to.pitch, 16);
    job.copies = 0;
    for (int c = 0; c < channels; ++c)
      if (!(view.filtered >> c & 1)) job.copies |= 0xffu << 8 * c;
  }

  /// Sets `Count` words of border values as they are stored in a row, beginning with the first pixel.
  template <int Count>
  void set_border_words(std::uint32_t (&words)[Count], const SetView& view) const {
    const int bits = 8 * info(plan_.geometry.format).sample_bytes();
    std::fill(words, words + Count, 0);
    for (int i = 0; i < 32 * Count / bits; ++i)
      words[i * bits / 32] |= std::uint32_t(view.border_value[i % view.channels]) << view.shift << i * bits % 32;
  }

  const Plan plan_;
  const Schedule schedule_;
  const void* const kernel_;
  P params_;
  const double scale_;
  int resident_blocks_ = 1;  ///< number of blocks that can run on the device at once
  bool overlaps_ = false;    ///< whether a launch can start before the previous one has ended
};

template <typename P>
Result<std::unique_ptr<Filter>> finish(Plan plan, const Schedule& schedule, const cuda::Device& device,
                                       const void* kernel, const P& params, double scale = 1) {
  auto filter = std::make_unique<Convolve<P>>(std::move(plan), schedule, kernel, params, scale);
  if (Status status = filter->prepare(device); !status.ok()) return status;
  return std::unique_ptr<Filter>(std::move(filter));
}

/// Half-precision weights, all multiplied by 2^exponent, so that the largest one has 11 bits before the point.
struct Halves {
  int exponent = 0;
  std::vector<std::uint16_t> parts[2];  ///< weights = parts[0] + parts[1]; or the two kernels of a gradient
  double error = 0;                     ///< largest error of a result, in sample values, if only parts[0] is used
};

std::uint16_t half_bits(float value) { return __half_raw(__float2half_rn(value)).x; }

Halves halves_of(const Plan& plan) {
  Halves halves;
  double largest = 0;
  for (const auto* weights : {&plan.weights, &plan.vertical})
    for (double w : *weights) largest = std::max(largest, std::abs(w));
  halves.exponent = largest > 0 ? 10 - std::ilogb(largest) : 0;
  double error = 0;
  for (double w : plan.weights) {
    const double scaled = std::ldexp(w, halves.exponent);
    const __half high = __float2half_rn(float(scaled));
    const float rest = float(scaled - double(__half2float(high)));
    error += std::abs(rest);
    halves.parts[0].push_back(half_bits(float(scaled)));
    halves.parts[1].push_back(half_bits(rest));
  }
  halves.error = error * 255 * std::abs(std::ldexp(1.0, -halves.exponent) * plan.scale);
  if (plan.gradient()) {
    halves.parts[1].clear();
    for (double w : plan.vertical) halves.parts[1].push_back(half_bits(float(std::ldexp(w, halves.exponent))));
  }
  return halves;
}

/// Arranges weights for the lanes of a warp: each lane gets the weights of its samples in the matrix of each row.
MatrixStripParams strip_params(const Plan& plan, const Halves& halves, int side) {
  MatrixStripParams params;
  // Windows begin 4 samples before the first result.
  const int left = 4 - plan.anchor_x, top = side / 2 - plan.anchor_y;
  for (int part = 0; part < 2; ++part)
    for (int k = 0; k < side; ++k)
      for (int lane = 0; lane < 32; ++lane) {
        // The weights of the samples 4t … 4t + 3 of the window in result g.
        const int g = lane / 4, t = lane % 4, y = k - top;
        std::uint32_t words[4];
        for (int j = 0; j < 4; ++j) {
          const int x = 4 * t + j - g - left;
          const bool inside = x >= 0 && x < plan.width && y >= 0 && y < plan.height;
          words[j] = inside ? halves.parts[part][y * plan.width + x] : 0;
        }
        params.fragments[part][k][lane] = {words[0] | words[1] << 16, words[2] | words[3] << 16};
      }
  return params;
}

MatrixTileParams matrix_tile_params(const Halves& halves, int buffers) {
  MatrixTileParams params;
  params.buffers = buffers;
  for (int part = 0; part < 2; ++part)
    std::copy(halves.parts[part].begin(), halves.parts[part].end(), params.weights[part]);
  return params;
}

SmallParams small_params(const Plan& plan, const Schedule& schedule) {
  SmallParams params;
  const int side = schedule.side, left = side / 2 - plan.anchor_x, top = side / 2 - plan.anchor_y;
  if (schedule.small == Small::rows_then_columns) {
    std::copy(plan.row.begin(), plan.row.end(), params.weights + left);
    std::copy(plan.column.begin(), plan.column.end(), params.weights + side + top);
    return params;
  }
  for (int y = 0; y < plan.height; ++y)
    for (int x = 0; x < plan.width; ++x) {
      const int at = (top + y) * side + left + x, from = y * plan.width + x;
      params.weights[at] = float(plan.weights[from]);
      if (schedule.small == Small::gradient) params.weights[side * side + at] = float(plan.vertical[from]);
    }
  return params;
}

template <typename Acc>
TwoPassParams<Acc> two_pass_params(const Plan& plan) {
  TwoPassParams<Acc> params;
  std::copy(plan.row.begin(), plan.row.end(), params.weights);
  std::copy(plan.column.begin(), plan.column.end(), params.weights + column_at);
  return params;
}

template <typename Acc>
DirectParams<Acc> direct_params(const Plan& plan) {
  DirectParams<Acc> params;
  params.stride = sizeof(Acc) == 4 ? (plan.width + 3) / 4 * 4 : plan.width;
  for (int y = 0; y < plan.height; ++y)
    std::copy_n(plan.weights.begin() + y * plan.width, plan.width, params.weights + y * params.stride);
  return params;
}

}  // namespace

Result<std::unique_ptr<Filter>> make_cuda(Plan plan) {
  const auto device = cuda::current_device();
  if (!device.ok()) return device.error();
  const bool matrix = uses_matrix_units(plan);
  const Halves halves = matrix ? halves_of(plan) : Halves();
  const auto made = make_schedule(plan, matrix_weights(plan, halves.error), std::size_t(device.value().shared_limit));
  if (!made.ok()) return made.error();
  const Schedule& schedule = made.value();
  const FormatInfo& format = info(plan.geometry.format);
  const auto plan_of = [&](const void* kernel, const auto& params, double scale = 1) {
    return finish(std::move(plan), schedule, device.value(), kernel, params, scale);
  };
  switch (schedule.family) {
    case Family::matrix_strip:
      return plan_of(matrix_strip_kernel(format, schedule.side, schedule.matrix),
                     strip_params(plan, halves, schedule.side), std::ldexp(1.0, subnormal_bits - halves.exponent));
    case Family::matrix_tile:
      return plan_of(matrix_tile_kernel(schedule.matrix), matrix_tile_params(halves, schedule.buffers),
                     std::ldexp(1.0, subnormal_bits - halves.exponent));
    case Family::small:  // sums stored words
      return plan_of(small_kernel(format, schedule.side, schedule.small), small_params(plan, schedule),
                     1.0 / (1 << format.shift));
    case Family::two_pass:
      return schedule.wide ? plan_of(tile_kernel(format, true, true), two_pass_params<double>(plan))
                           : plan_of(tile_kernel(format, true, false), two_pass_params<float>(plan));
    case Family::direct:
      break;
  }
  return schedule.wide ? plan_of(tile_kernel(format, false, true), direct_params<double>(plan))
                       : plan_of(tile_kernel(format, false, false), direct_params<float>(plan));
}

}  // namespace cudavision::convolve
