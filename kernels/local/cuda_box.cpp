// SPDX-License-Identifier: LGPL-2.1-or-later
// Box mean, threshold and deviation on CUDA: chooses the kernels for a plan, and owns their memory. All channel sets of
// a plan use the same class.
//
//   CudaWindows   planes of 8 bits, windows of up to 257 rows   1 launch, 2 for tall windows    cuda_windows.cu
//   CudaLines     other formats and taller windows              a launch for each channel set   cuda_lines_kernel.cuh
//   CudaTables    cases that the others cannot: windows too wide, sums too large, high           cuda_tables.cu
//                 windows of small frames, deviations of 16 bits; from tables of the frame
#include <algorithm>
#include <vector>

#include "kernels/cuda/filter.hpp"
#include "kernels/cuda/memory.hpp"
#include "kernels/local/cuda_lines.cuh"
#include "kernels/local/cuda_tables.cuh"
#include "kernels/local/cuda_windows.cuh"

namespace cudavision::local {
namespace {

bool slides(const Plan& plan) {
  const FormatInfo& format = info(plan.geometry.format);
  for (int set = 0; set < format.color_sets(); ++set) {
    const bool filled = plan.fills(set) && format.sample_bytes() == 1 && !format.sets[set].shares_plane();
    if (!filled && !can_slide(plan, set)) return false;
  }
  return true;
}

/// Computes sliding windows without tables of the picture. Needs little memory.
class CudaWindows final : public cuda::CudaFilter {
 public:
  explicit CudaWindows(Plan plan) : CudaFilter(plan.geometry), plan_(std::move(plan)) {}

  Status load() {
    const auto device = cuda::current_device();
    if (!device.ok()) return device.error();
    multiprocessors_ = device.value().multiprocessors;
    if (Status status = load_windows(plan_.operation, device.value().shared_limit); !status.ok()) return status;
    std::size_t bytes = 0;
    for (int set = 0; set < format_.color_sets(); ++set) {
      if (plan_.fills(set)) continue;
      const ChannelSet& channels = format_.sets[set];
      stored_at_[set] = bytes;
      bytes += stored_bytes(plan_.operation, plan_.geometry.grid(channels), channels.channels, plan_.radius[set].y);
    }
    return stored_.allocate(bytes);
  }

 private:
  Status filter(const Image& src, const Image& dst, const SetRects& rects, Queue queue) override {
    WindowJobs jobs;
    sets_.clear();
    for (int set = 0; set < format_.color_sets(); ++set) {
      if (rects[set].empty()) continue;
      if (plan_.fills(set)) {
        if (Status status = fill(dst, set, rects[set], queue); !status.ok()) return status;
        continue;
      }
      const Window window = window_of(plan_, set, box());
      WindowJob& job = jobs.sets[jobs.count++];
      job.view = cuda::make_view(src, dst, set, rects[set], Border::replicate, {}, false);
      job.radius_x = std::min(window.x.radius, job.view.width);
      job.radius_y = std::min(window.y.radius, job.view.height);
      job.stored = stored_.data<uint4>() + stored_at_[set] / sizeof(uint4);
      job.words = aligned_to(job.view.src, job.view.src_pitch, 16) && aligned_to(job.view.dst, job.view.dst_pitch, 16);
      sets_.push_back(
          {plan_.geometry.grid(format_.sets[set]), job.view.channels, rects[set], job.radius_x, job.radius_y});
    }
    if (sets_.empty()) return {};
    const WindowLaunch launch = schedule_windows(plan_.operation, sets_, multiprocessors_);
    for (int i = 0; i < jobs.count; ++i) jobs.sets[i].schedule = launch.sets[i];
    jobs.rows = launch.rows;
    jobs.factor = plan_.factor;
    return launch_windows(plan_.operation, jobs, launch, queue);
  }

  Status fill(const Image& dst, int set, const Rect& rect, Queue queue) const {
    const ChannelSet& channels = format_.sets[set];
    const Plane& plane = dst.planes[channels.plane];
    unsigned char* const to =
        static_cast<unsigned char*>(plane.data) + rect.y * plane.pitch + std::ptrdiff_t(rect.x) * channels.channels;
    return cuda::check(cudaMemset2DAsync(to, plane.pitch, format_.neutral_chroma(),
                                         std::size_t(rect.width) * channels.channels, rect.height, queue.stream),
                       "cannot fill the chroma");
  }

  const Plan plan_;
  const FormatInfo& format_ = info(plan_.geometry.format);
  int multiprocessors_ = 1;
  cuda::DeviceMemory stored_;                      ///< row sums of all sets
  std::array<std::size_t, max_sets> stored_at_{};  ///< the first byte of each set in stored_
  std::vector<WindowSet> sets_;                    ///< sets of the launch, kept to reuse the memory
};

/// Computes any channel sets from 32-bit column sums, with a launch for each set.
class CudaLines final : public cuda::CudaFilter {
 public:
  explicit CudaLines(Plan plan) : CudaFilter(plan.geometry), plan_(std::move(plan)) {}

  static LineShape shape_of(const Plan& plan, int set) {
    const FormatInfo& format = info(plan.geometry.format);
    const ChannelSet& channels = format.sets[set];
    LineShape shape;
    shape.operation = plan.operation;
    shape.sample_bytes = format.sample_bytes();
    shape.channels = channels.channels;
    shape.filtered = 0;
    for (int c = 0; c < channels.channels; ++c) shape.filtered |= unsigned(is_color(channels.roles[c])) << c;
    shape.planes = is_luma_of_planes(plan);
    const Rect grid = plan.geometry.grid(channels);
    shape.wide = !line_sums_fit(shape, std::int64_t(std::min(2 * plan.radius[set].x + 1, grid.width)) *
                                           std::min(2 * plan.radius[set].y + 1, grid.height));
    return shape;
  }

  /// Whether all sets of the plan have kernels and narrow enough windows, and the frame is large enough for tall
  /// windows.
  static bool supports(const Plan& plan, const cuda::Device& device) {
    const FormatInfo& format = info(plan.geometry.format);
    const bool small = std::int64_t(plan.geometry.width) * plan.geometry.height < tuning.least_high_pixels;
    for (int set = 0; set < format.color_sets(); ++set) {
      if (plan.fills(set)) continue;
      const Rect grid = plan.geometry.grid(format.sets[set]);
      const Plan::Radius radius = plan.radius[set];
      const LineShape shape = shape_of(plan, set);
      if (!line_kernels(shape).sliding) return false;
      if (small && stored_line_bytes(shape, grid, radius.y) > 0) return false;
      if (schedule_lines(shape, grid, grid, radius.x, radius.y, device.multiprocessors, device.shared_limit).strips ==
          0)
        return false;
    }
    return true;
  }

  Status load() {
    const auto device = cuda::current_device();
    if (!device.ok()) return device.error();
    device_ = device.value();
    std::size_t bytes = 0;
    for (int set = 0; set < format_.color_sets(); ++set) {
      if (plan_.fills(set)) {
        if (Status status = load_fill(format_, set); !status.ok()) return status;
        continue;
      }
      shapes_[set] = shape_of(plan_, set);
      if (Status status = load_lines(shapes_[set], device_.shared_limit); !status.ok()) return status;
      bytes =
          std::max(bytes, stored_line_bytes(shapes_[set], plan_.geometry.grid(format_.sets[set]), plan_.radius[set].y));
    }
    return stored_.allocate(bytes);
  }

 private:
  /// Whether red, green and blue are planes that all receive the result of their luma.
  static bool is_luma_of_planes(const Plan& plan) {
    const FormatInfo& format = info(plan.geometry.format);
    return plan.operation == Operation::threshold && format.is_planar_rgb();
  }

  Status filter(const Image& src, const Image& dst, const SetRects& rects, Queue queue) override {
    const bool planes = is_luma_of_planes(plan_);
    for (int set = 0; set < (planes ? 1 : format_.color_sets()); ++set) {
      if (rects[set].empty()) continue;
      const auto view = [&](int index) {
        return cuda::make_view(src, dst, index, rects[set], Border::constant, {}, false);
      };
      if (plan_.fills(set)) {
        if (Status status = launch_fill(format_, set, view(set), format_.neutral_chroma(), queue); !status.ok())
          return status;
        continue;
      }
      const Window window = window_of(plan_, set, box());
      LineJob job;
      job.views[0] = view(set);
      if (planes)
        for (int i = 0; i < 3; ++i)
          job.views[i] = view(integral::find_role(format_, std::array{Role::red, Role::green, Role::blue}[i]).set);
      job.radius_x = window.x.radius;
      job.radius_y = window.y.radius;
      job.stored = stored_.data<std::uint32_t>();
      job.factor = plan_.factor;
      const LineShape& shape = shapes_[set];
      job.set_rotation(shape);
      if (format_.is_rgb() && !planes) job.blue_first = find_channel(Role::blue) < find_channel(Role::red);
      const int pixel = shape.channels * shape.sample_bytes;
      const int chunk = shape.chunk() * pixel, results = line_results * pixel;
      job.words = job.stores_words = true;
      for (int i = 0; i < (planes ? 3 : 1); ++i) {
        const cuda::SetView& each = job.views[i];
        job.words = job.words &&
                    aligned_to(each.src, each.src_pitch, std::min(std::max(chunk & -chunk, results & -results), 16));
        job.stores_words =
            job.stores_words && job.words && aligned_to(each.dst, each.dst_pitch, std::min(results & -results, 16));
      }
      job.schedule = schedule_lines(shape, plan_.geometry.grid(format_.sets[set]), rects[set], job.radius_x,
                                    job.radius_y, device_.multiprocessors, device_.shared_limit);
      if (Status status = launch_lines(shape, job, queue); !status.ok()) return status;
    }
    return {};
  }

  int find_channel(Role role) const { return integral::find_role(format_, role).channel; }

  const Plan plan_;
  const FormatInfo& format_ = info(plan_.geometry.format);
  cuda::Device device_;
  std::array<LineShape, max_sets> shapes_;
  cuda::DeviceMemory stored_;  ///< running column sums, of one set at a time
};

/// Computes windows from summed-area tables.
class CudaTables final : public cuda::CudaFilter {
 public:
  explicit CudaTables(Plan plan) : CudaFilter(plan.geometry), plan_(std::move(plan)) {}

  Status load() {
    auto integral = integral::make_cuda(plan_.tables);
    if (!integral.ok()) return integral.error();
    integral_ = std::move(integral.value());
    // Each row occupies whole cache lines of 128 bytes.
    const auto pitch_of = [](const integral::TableInfo& table) {
      return (std::size_t(table.width) * table.entry_bytes() + 127) / 128 * 128;
    };
    std::size_t bytes = 0;
    for (const integral::TableInfo& table : integral_->tables()) bytes += pitch_of(table) * table.height;
    if (Status status = memory_.allocate(bytes); !status.ok()) return status;
    unsigned char* next = memory_.data();
    for (const integral::TableInfo& table : integral_->tables()) {
      tables_.push_back({next, std::ptrdiff_t(pitch_of(table))});
      next += pitch_of(table) * table.height;
    }
    return load_tables(format_, type());
  }

 private:
  integral::SumType type() const { return plan_.tables.tables[0].type; }

  Status begin(const Image& src, const Region&, Queue queue) override { return integral_->submit(src, tables_, queue); }

  Status filter(const Image& src, const Image& dst, const SetRects& rects, Queue queue) override {
    for (int s = 0; s < format_.set_count; ++s) {
      if (rects[s].empty()) continue;
      TableJob job{};
      job.view = cuda::make_view(src, dst, s, rects[s], Border::replicate, {}, false);
      for (int c = 0; c < format_.sets[s].channels; ++c) {
        const int table = plan_.table_of[s][c];
        if (table < 0) continue;
        job.sums[c] = static_cast<const unsigned char*>(tables_[table].data);
        job.sums_pitch = tables_[table].pitch;
        if (plan_.operation != Operation::deviation) continue;
        job.squares[c] = static_cast<const unsigned char*>(tables_[table + plan_.squares].data);
        job.squares_pitch = tables_[table + plan_.squares].pitch;
      }
      job.window = window_of(plan_, s, box());
      job.neutral = format_.neutral_chroma();
      job.operation = plan_.operation;
      job.factor = plan_.factor;
      if (Status status = launch_tables(format_, type(), s, job, queue); !status.ok()) return status;
    }
    return {};
  }

  const Plan plan_;
  const FormatInfo& format_ = info(plan_.geometry.format);
  std::unique_ptr<integral::Integral> integral_;
  cuda::DeviceMemory memory_;  ///< memory of the tables
  std::vector<Plane> tables_;
};

}  // namespace

Result<std::unique_ptr<Filter>> make_box_cuda(Plan plan) {
  if (slides(plan)) return cuda::loaded<CudaWindows>(std::move(plan));
  const auto device = cuda::current_device();
  if (!device.ok()) return device.error();
  return CudaLines::supports(plan, device.value()) ? cuda::loaded<CudaLines>(std::move(plan))
                                                   : cuda::loaded<CudaTables>(std::move(plan));
}

}  // namespace cudavision::local
