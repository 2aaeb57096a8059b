// SPDX-License-Identifier: LGPL-2.1-or-later
#include <cuda_fp16.h>

#include <algorithm>
#include <climits>
#include <cmath>
#include <utility>

#include "kernels/convolve/convolve.hpp"
#include "kernels/convolve/cuda_kernels.cuh"
#include "kernels/cuda/filter.hpp"

namespace cudavision {
namespace cuda::convolve {

using cudavision::detail::ConvolvePlan;

namespace {

constexpr int divide_up(int a, int b) { return (a + b - 1) / b; }

/// A kernel and what it is launched with. P is one of the parameter structs.
template <typename P>
struct Launch {
  const void* function = nullptr;
  P params;
  double scale = 1;              ///< of sums of the weights and samples as the kernel holds them, besides the plan's
  int warps = 1;                 ///< of a block
  std::size_t shared_bytes = 0;  ///< of a block
  int side = 3;                  ///< of unrolled kernels
  int rows = 1;                  ///< of results of a thread or warp, but where
  int most_rows = 0;  ///< is not 0: then as many that a frame fills the device `waves` times, from least_rows to most_rows
  int least_rows = 1, waves = 1;
};

template <typename P>
class Convolve : public CudaFilter {
 public:
  Convolve(ConvolvePlan plan, Launch<P> launch) : CudaFilter(plan.geometry), plan_(std::move(plan)), launch_(std::move(launch)) {}

  /// Sets what no kernel's weights decide, and loads the code, which a launch must not. With the context current.
  Status prepare() {
    P& params = launch_.params;
    params.width = plan_.width;
    params.height = plan_.height;
    params.anchor_x = plan_.anchor_x;
    params.anchor_y = plan_.anchor_y;

    int device = 0, shared_limit = 0, processors = 0, blocks = 0;
    cudaError_t error = cudaGetDevice(&device);
    // All plans of a context share the function: the limit is set to the highest, not to what this plan needs.
    if (error == cudaSuccess) error = cudaDeviceGetAttribute(&shared_limit, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
    if (error == cudaSuccess && launch_.shared_bytes)
      error = cudaFuncSetAttribute(launch_.function, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_limit);
    if (error == cudaSuccess) error = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
    if (error == cudaSuccess)
      error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, launch_.function, 32 * launch_.warps, launch_.shared_bytes);
    resident_ = std::max(1, processors * blocks * 32 * launch_.warps);
    return check(error, "cannot load the convolution kernel");
  }

 protected:
  Status filter(const Image& src, const Image& dst, const SetRects& rects, Queue queue) override {
    const FormatInfo& format = info(plan_.geometry.format);
    const int rows = launch_.most_rows ? rows_for(rects) : launch_.rows;
    int blocks = 0;
    for (int i = 0; i < 3; ++i) {
      auto& job = launch_.params.jobs[i];
      job.first_block = i < format.set_count ? blocks : INT_MAX;
      if (i >= format.set_count || rects[i].empty()) continue;
      job.view = make_view(src, dst, i, rects[i], plan_.border, plan_.border_value, plan_.filter_alpha);
      set_common(job, format.sets[i]);
      blocks += cut(job, dst.planes[format.sets[i].plane], rows);
    }
    if (blocks == 0) return {};
    void* arguments[] = {&launch_.params};
    return check(
        cudaLaunchKernel(launch_.function, dim3(blocks), dim3(32 * launch_.warps), arguments, launch_.shared_bytes, queue.stream),
        "cannot launch the convolution");
  }

 private:
  template <typename Acc>
  void set_common(Job<Acc>& job, const ChannelSet& set) const {
    constexpr int far = 1 << 28;
    job.whole = {-far, -far, 2 * far, 2 * far};
    if (plan_.border == Border::fill || plan_.border == Border::copy)
      job.whole = {plan_.anchor_x, plan_.anchor_y, job.view.width - plan_.width + 1, job.view.height - plan_.height + 1};
    const bool chroma = std::any_of(set.roles.begin(), set.roles.end(), is_chroma);
    job.absolute = plan_.absolute && !plan_.gradient() && !chroma;
    job.scale = Acc(plan_.gradient() && chroma ? 0 : launch_.scale * plan_.scale);
    for (int c = 0; c < set.channels; ++c) {
      if (set.roles[c] == Role::other) continue;
      const std::size_t role = std::size_t(set.roles[c]);
      double before = plan_.gradient() ? 0 : plan_.before[role], after = plan_.after[role];
      if (!job.absolute) before += std::exchange(after, 0);
      job.before[c] = before;
      job.after[c] = after;
    }
  }

  template <int N>
  void set_border_words(std::uint32_t (&words)[N], const SetView& view) const {
    const int bits = 8 * info(plan_.geometry.format).sample_bytes();
    std::fill(words, words + N, 0);
    for (int i = 0; i < 4 * view.channels; ++i)
      words[i * bits / 32] |= std::uint32_t(view.border_value[i % view.channels]) << view.shift << i * bits % 32;
  }

  /// Cuts a set into blocks; returns their number.
  template <typename Acc>
  int cut(TileJob<Acc>& job, const Plane&, int rows) const {
    const SetView& view = job.view;
    job.tiles_x = divide_up(view.x1 - (view.x0 & -4), tile_width);
    return job.tiles_x * divide_up(view.y1 - view.y0, launch_.warps * rows);
  }
  int cut(MatrixJob& job, const Plane& to, int rows) const {
    const SetView& view = job.view;
    constexpr int pair_alignments[] = {2, 4, 2, 8};
    job.pair_aligned = aligned_to(to.data, to.pitch, pair_alignments[view.channels - 1]);
    set_border_words(job.border_words, view);
    job.rows = rows;
    job.tiles_x = divide_up(view.x1 - (view.x0 & -4), width_of(view.channels));
    job.tiles_y = divide_up(view.y1 - view.y0, launch_.warps * rows);
    return job.tiles_x * job.tiles_y;
  }
  int cut(SmallJob& job, const Plane&, int) const {
    const SetView& view = job.view;
    set_border_words(job.border_words, view);
    job.tiles_x = divide_up(view.x1 - (view.x0 & -small_pixels), 32 * small_pixels);
    return job.tiles_x * divide_up(view.y1 - view.y0, launch_.warps * small_rows(view.channels, launch_.side));
  }

  /// Results across of a warp on the matrix units; tiles are those that use shared memory.
  int width_of(int channels) const {
    const FormatInfo& format = info(plan_.geometry.format);
    return launch_.shared_bytes ? matrix_width : strip_width(channels, format.sets[format.set_count - 1].channels);
  }

  int rows_for(const SetRects& rects) const {
    std::int64_t columns_rows = 0;
    for (int i = 0; i < info(plan_.geometry.format).set_count; ++i) {
      const Rect& rect = rects[i];
      const int pixels = width_of(info(plan_.geometry.format).sets[i].channels) / 32;
      if (!rect.empty()) columns_rows += std::int64_t(divide_up(rect.width, pixels)) * rect.height;
    }
    const std::int64_t columns = std::int64_t(resident_) * launch_.waves;
    return std::clamp(int((columns_rows + columns - 1) / columns), launch_.least_rows, launch_.most_rows);
  }

  const ConvolvePlan plan_;
  Launch<P> launch_;
  int resident_ = 1;  ///< threads that run at once
};

template <typename P>
Result<std::unique_ptr<Filter>> finish_plan(ConvolvePlan plan, Launch<P> launch) {
  auto filter = std::make_unique<Convolve<P>>(std::move(plan), std::move(launch));
  if (Status status = filter->prepare(); !status.ok()) return status;
  return std::unique_ptr<Filter>(std::move(filter));
}

/// Most warps a block, up to `warps`, whose shared memory is there; 0: not even one.
template <typename F>
int most_warps(int warps, std::size_t limit, F&& bytes) {
  while (warps > 0 && bytes(warps) > limit) warps /= 2;
  return warps;
}

/// Side (3, 5 or 7) of the square around the anchor that holds the kernel; 0: none does.
int small_side(const ConvolvePlan& plan) {
  const int reach = std::max({plan.anchor_x, plan.width - 1 - plan.anchor_x, plan.anchor_y, plan.height - 1 - plan.anchor_y});
  return reach <= small_reach ? 2 * std::max(reach, 1) + 1 : 0;
}

std::uint16_t half_bits(float value) { return __half_raw(__float2half_rn(value)).x; }

/// Largest error of a result, in sample values, for which 11 bits of a real weight do: about that of a kernel whose weights' sizes
/// sum to 4. Beyond it, and for integers that need them, weights have 22 bits, in twice the time.
constexpr double matrix_error = 0.125;

/// 8-bit samples, float32 sums.
Result<std::unique_ptr<Filter>> make_matrix(ConvolvePlan plan, std::size_t shared_limit) {
  Launch<MatrixParams> launch;
  MatrixParams& params = launch.params;

  // Weights in half precision, scaled by a power of two so that the largest has 11 bits before the point.
  double largest = 0;
  for (const auto* weights : {&plan.weights, &plan.vertical})
    for (double w : *weights) largest = std::max(largest, std::abs(w));
  const int exponent = largest > 0 ? 10 - std::ilogb(largest) : 0;
  launch.scale = std::ldexp(1.0, -exponent);
  std::vector<std::uint16_t> parts[2];
  double error = 0;  // of a sum, at most, without the second parts
  for (double w : plan.weights) {
    const double scaled = std::ldexp(w, exponent);
    const __half high = __float2half_rn(float(scaled));
    const float rest = float(scaled - double(__half2float(high)));
    error += std::abs(rest);
    parts[0].push_back(half_bits(float(scaled)));
    parts[1].push_back(half_bits(rest));
  }
  error *= 255 * std::abs(launch.scale * plan.scale);
  const bool integers = std::all_of(plan.weights.begin(), plan.weights.end(), [](double w) { return w == std::rint(w); });
  Matrix kind = error <= (integers ? 0 : matrix_error) ? Matrix::single : Matrix::pair;
  if (plan.gradient()) {
    kind = Matrix::gradient;
    parts[1].clear();
    for (double w : plan.vertical) parts[1].push_back(half_bits(float(std::ldexp(w, exponent))));
  }

  const FormatInfo& format = info(plan.geometry.format);
  const int side = small_side(plan);
  if (side) launch.function = matrix_strip_kernel(format, side, kind);
  if (launch.function) {
    const int left = 4 - plan.anchor_x, top = side / 2 - plan.anchor_y;  // windows begin 4 samples before the first output
    for (int part = 0; part < 2; ++part)
      for (int k = 0; k < side; ++k)
        for (int lane = 0; lane < 32; ++lane) {
          // A lane holds what samples 4t … 4t + 3 of the window add to output g.
          const int g = lane / 4, t = lane % 4, y = k - top;
          std::uint32_t halves[4];
          for (int j = 0; j < 4; ++j) {
            const int x = 4 * t + j - g - left;
            const bool there = x >= 0 && x < plan.width && y >= 0 && y < plan.height;
            halves[j] = there ? parts[part][y * plan.width + x] : 0;
          }
          params.fragments[part][k][lane] = {halves[0] | halves[1] << 16, halves[2] | halves[3] << 16};
        }
    launch.warps = strip_warps;
    launch.least_rows = strip_least_rows;
    launch.most_rows = strip_most_rows;
    launch.waves = strip_tuning(format.sets[format.set_count - 1].channels).waves;
    return finish_plan(std::move(plan), std::move(launch));
  }

  launch.function = matrix_tile_kernel(format, kind);
  if (!launch.function) return Status::settings("gradient kernels must be 3×3 at most, in CUDA");
  const auto bytes = [&](int warps) { return matrix_tile_bytes(warps, plan.width, plan.height, kind == Matrix::pair ? 2 : 1); };
  launch.warps = most_warps(matrix_tile_warps, shared_limit, bytes);
  if (launch.warps == 0) return Status::resource("the CUDA device has too little shared memory for this kernel");
  launch.shared_bytes = bytes(launch.warps);
  launch.rows = matrix_tile_rows;
  for (int part = 0; part < 2; ++part) std::copy(parts[part].begin(), parts[part].end(), params.weights[part]);
  return finish_plan(std::move(plan), std::move(launch));
}

/// 16-bit samples, float32 sums, around the anchor.
Result<std::unique_ptr<Filter>> make_small(ConvolvePlan plan, int side) {
  Launch<SmallParams> launch;
  SmallParams& params = launch.params;
  const FormatInfo& format = info(plan.geometry.format);
  const Small kind = plan.gradient() ? Small::gradient : plan.separable() && side > 3 ? Small::two_pass : Small::direct;
  launch.function = small_kernel(format, side, kind);
  if (!launch.function) return Status::settings("gradient kernels must be 3×3 at most, in CUDA");
  launch.warps = small_warps;
  launch.side = side;
  launch.scale = 1.0 / (1 << format.shift);  // sums are of words as they are stored

  const int left = side / 2 - plan.anchor_x, top = side / 2 - plan.anchor_y;
  if (kind == Small::two_pass) {
    std::copy(plan.row.begin(), plan.row.end(), params.weights + left);
    std::copy(plan.column.begin(), plan.column.end(), params.weights + side + top);
  } else {
    for (int y = 0; y < plan.height; ++y)
      for (int x = 0; x < plan.width; ++x) {
        const int at = (top + y) * side + left + x, from = y * plan.width + x;
        params.weights[at] = float(plan.weights[from]);
        if (kind == Small::gradient) params.weights[side * side + at] = float(plan.vertical[from]);
      }
  }
  return finish_plan(std::move(plan), std::move(launch));
}

/// All else. nullptr where the device's shared memory does not hold it.
template <typename P>
Result<std::unique_ptr<Filter>> make_tile(const ConvolvePlan& plan, std::size_t shared_limit) {
  using Acc = typename P::Sum;
  constexpr bool two_pass = std::is_same_v<P, TwoPassParams<Acc>>;
  Launch<P> launch;
  P& params = launch.params;
  const auto bytes = [&](int warps) { return tile_bytes(warps, tile_rows<Acc>, plan.width, plan.height, two_pass, sizeof(Acc)); };
  launch.warps = most_warps(tile_warps, shared_limit, bytes);
  if (launch.warps == 0) return std::unique_ptr<Filter>();
  launch.shared_bytes = bytes(launch.warps);
  launch.rows = tile_rows<Acc>;
  launch.function = tile_kernel(info(plan.geometry.format), two_pass, sizeof(Acc) == 8);
  if (two_pass) {
    std::copy(plan.row.begin(), plan.row.end(), params.weights);
    std::copy(plan.column.begin(), plan.column.end(), params.weights + column_at);
  } else {
    params.stride = sizeof(Acc) == 4 ? divide_up(plan.width, 4) * 4 : plan.width;
    for (int y = 0; y < plan.height; ++y)
      std::copy_n(plan.weights.begin() + y * plan.width, plan.width, params.weights + y * params.stride);
  }
  return finish_plan(plan, std::move(launch));
}

}  // namespace
}  // namespace cuda::convolve

namespace detail {

Result<std::unique_ptr<Filter>> make_convolve_cuda(ConvolvePlan plan) {
  using namespace cuda::convolve;
  int device = 0, limit = 0;
  if (Status status = cuda::check(cudaGetDevice(&device), "cannot use the CUDA device"); !status.ok()) return status;
  if (Status status = cuda::check(cudaDeviceGetAttribute(&limit, cudaDevAttrMaxSharedMemoryPerBlockOptin, device),
                                  "cannot ask the CUDA device for its shared memory");
      !status.ok())
    return status;
  const bool two_passes_pay = plan.separable() && std::max(plan.width, plan.height) > matrix_most_separable;
  if (!plan.wide && info(plan.geometry.format).sample_bytes() == 1 && !two_passes_pay) return make_matrix(std::move(plan), limit);
  if (const int side = small_side(plan); side && !plan.wide) return make_small(std::move(plan), side);
  if (plan.gradient()) return Status::settings("gradient kernels must be 3×3 at most, in CUDA");
  if (plan.separable()) {
    auto filter = plan.wide ? make_tile<TwoPassParams<double>>(plan, limit) : make_tile<TwoPassParams<float>>(plan, limit);
    if (!filter.ok() || filter.value()) return filter;  // else there is no room for the row results: all at once
  }
  auto filter = plan.wide ? make_tile<DirectParams<double>>(plan, limit) : make_tile<DirectParams<float>>(plan, limit);
  if (filter.ok() && !filter.value()) return Status::resource("the CUDA device has too little shared memory for this kernel");
  return filter;
}

}  // namespace detail
}  // namespace cudavision
