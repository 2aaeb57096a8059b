// SPDX-License-Identifier: LGPL-2.1-or-later
// Box mean, mosaic, threshold and deviation on CUDA: chooses between windows that slide over the picture (cuda_windows.cu) and tables of it
// (cuda_tables.cu), and owns their memory. All channel sets of a plan go one way.
#include <vector>

#include "kernels/cuda/filter.hpp"
#include "kernels/cuda/memory.hpp"
#include "kernels/local/cuda_tables.cuh"
#include "kernels/local/cuda_windows.cuh"

namespace cudavision::local {
namespace {

/// Whether the channels of a set become neutral chroma.
bool is_neutral(const Plan& plan, int set) {
  const ChannelSet& channels = info(plan.geometry.format).sets[set];
  return is_chroma(channels.roles[0]) && plan.table_of[set][0] < 0;
}

bool slides(const Plan& plan) {
  const FormatInfo& format = info(plan.geometry.format);
  for (int set = 0; set < format.set_count; ++set) {
    const bool filled = is_neutral(plan, set) && format.sample_bytes() == 1 && !format.sets[set].shares_plane();
    if (!filled && !can_slide(plan, set)) return false;
  }
  return true;
}

/// Without tables of the picture: needs little memory.
class CudaWindows final : public cuda::CudaFilter {
 public:
  explicit CudaWindows(Plan plan) : CudaFilter(plan.geometry), plan_(std::move(plan)) {}

  Status load() {
    const auto device = cuda::current_device();
    if (!device.ok()) return device.error();
    multiprocessors_ = device.value().multiprocessors;
    if (Status status = load_windows(plan_.operation, device.value().shared_limit); !status.ok()) return status;
    StoredBytes total;
    for (int set = 0; set < format_.set_count; ++set) {
      if (is_neutral(plan_, set)) continue;
      const ChannelSet& channels = format_.sets[set];
      const StoredBytes bytes =
          stored_bytes(plan_.operation, plan_.geometry.grid(channels), channels.channels, plan_.radius[set].y);
      sums_at_[set] = total.sums;
      squares_at_[set] = total.squares;
      total.sums += bytes.sums;
      total.squares += bytes.squares;
    }
    const Status status = sums_.allocate(total.sums);
    return status.ok() ? squares_.allocate(total.squares) : status;
  }

 private:
  Status filter(const Image& src, const Image& dst, const SetRects& rects, Queue queue) override {
    WindowJobs jobs;
    sets_.clear();
    for (int set = 0; set < format_.set_count; ++set) {
      if (rects[set].empty()) continue;
      if (is_neutral(plan_, set)) {
        if (Status status = fill(dst, set, rects[set], queue); !status.ok()) return status;
        continue;
      }
      const Window window = window_of(plan_, set, box());
      WindowJob& job = jobs.sets[jobs.count++];
      job.view = cuda::make_view(src, dst, set, rects[set], Border::replicate, {}, false);
      job.radius_x = window.x.radius;
      job.radius_y = window.y.radius;
      job.sums = sums_.data<std::uint16_t>() + sums_at_[set] / sizeof(std::uint16_t);
      job.squares = squares_.data<std::uint32_t>() + squares_at_[set] / sizeof(std::uint32_t);
      job.words = aligned_to(job.view.src, job.view.src_pitch, 16) && aligned_to(job.view.dst, job.view.dst_pitch, 16);
      sets_.push_back({plan_.geometry.grid(format_.sets[set]), job.view.channels, rects[set], job.radius_x, job.radius_y});
    }
    if (sets_.empty()) return {};
    const WindowLaunch launch = schedule_windows(plan_.operation, sets_, multiprocessors_);
    for (int i = 0; i < jobs.count; ++i) jobs.sets[i].schedule = launch.sets[i];
    jobs.rows = launch.rows;
    jobs.batch = launch.batch;
    jobs.factor = plan_.factor;
    return launch_windows(plan_.operation, jobs, launch, queue);
  }

  Status fill(const Image& dst, int set, const Rect& rect, Queue queue) const {
    const ChannelSet& channels = format_.sets[set];
    const Plane& plane = dst.planes[channels.plane];
    unsigned char* const to =
        static_cast<unsigned char*>(plane.data) + rect.y * plane.pitch + std::ptrdiff_t(rect.x) * channels.channels;
    return cuda::check(cudaMemset2DAsync(to, plane.pitch, format_.neutral_chroma(), std::size_t(rect.width) * channels.channels,
                                         rect.height, queue.stream),
                       "cannot fill the chroma");
  }

  const Plan plan_;
  const FormatInfo& format_ = info(plan_.geometry.format);
  int multiprocessors_ = 1;
  cuda::DeviceMemory sums_, squares_;  ///< stored sums of rows, for each set from these bytes on:
  std::array<std::size_t, 3> sums_at_{}, squares_at_{};
  std::vector<WindowSet> sets_;  ///< of the launch, kept for its memory
};

/// With summed-area tables.
class CudaTables final : public cuda::CudaFilter {
 public:
  explicit CudaTables(Plan plan) : CudaFilter(plan.geometry), plan_(std::move(plan)) {}

  Status load() {
    auto integral = integral::make_cuda(plan_.tables);
    if (!integral.ok()) return integral.error();
    integral_ = std::move(integral.value());
    std::size_t bytes = 0;
    for (const integral::TableInfo& table : integral_->tables()) {
      // Whole cache lines of 128 bytes.
      const std::size_t pitch = (std::size_t(table.width) * table.entry_bytes() + 127) / 128 * 128;
      tables_.push_back({reinterpret_cast<void*>(bytes), std::ptrdiff_t(pitch)});
      bytes += pitch * table.height;
    }
    if (Status status = memory_.allocate(bytes); !status.ok()) return status;
    for (Plane& table : tables_)
      table.data = static_cast<unsigned char*>(memory_.data()) + reinterpret_cast<std::uintptr_t>(table.data);
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
  cuda::DeviceMemory memory_;  ///< of the tables
  std::vector<Plane> tables_;
};

template <typename Way>
Result<std::unique_ptr<Filter>> loaded(Plan plan) {
  auto filter = std::make_unique<Way>(std::move(plan));
  if (Status status = filter->load(); !status.ok()) return status;
  return std::unique_ptr<Filter>(std::move(filter));
}

}  // namespace

Result<std::unique_ptr<Filter>> make_box_cuda(Plan plan) {
  return slides(plan) ? loaded<CudaWindows>(std::move(plan)) : loaded<CudaTables>(std::move(plan));
}

}  // namespace cudavision::local
