// SPDX-License-Identifier: LGPL-2.1-or-later
// The filter for mosaics on CUDA: gathers the shapes of a region for the launches of cuda_mosaic.cu.
#include <algorithm>
#include <vector>

#include "kernels/cuda/filter.hpp"
#include "kernels/cuda/memory.hpp"
#include "kernels/cuda/rows.cuh"
#include "kernels/local/cuda_mosaic.cuh"

namespace cudavision::local {
namespace {

class CudaMosaic final : public cuda::CudaFilter {
 public:
  explicit CudaMosaic(Plan plan) : CudaFilter(plan.geometry), plan_(std::move(plan)) {}

  Status load() {
    const auto device = cuda::current_device();
    if (!device.ok()) return device.error();
    multiprocessors_ = device.value().multiprocessors;
    const Status status = sums_.allocate(mosaic_sums(plan_.geometry));
    return status.ok() ? load_mosaic(format_) : status;
  }

 private:
  Status filter(const Image& src, const Image& dst, const SetRects& rects, Queue queue) override {
    MosaicJobs jobs = make_jobs(src, dst);
    jobs.parts[0] = schedule(box(), rects, 1);
    return launch(jobs, 1, queue);
  }

  /// Computes overlapping shapes one after another, and other shapes together.
  Status filter_parts(const Image& src, const Image& dst, const std::vector<Part>& parts, Queue queue) override {
    boxes_.clear();
    for (const Part& part : parts) boxes_.push_back(part.box);
    const int layers = find_layers(boxes_, layers_) + 1;
    MosaicJobs jobs = make_jobs(src, dst);
    for (int layer = 0; layer < layers; ++layer) {
      int count = 0, corners = 0;
      for (std::size_t i = 0; i < parts.size(); ++i) {
        if (layers_[i] != layer || parts[i].box.empty()) continue;
        MosaicPart part =
            schedule(parts[i].box, set_rects(plan_.geometry, parts[i].box, Coverage::inner), int(parts.size()));
        part.cut = parts[i].cut;
        part.corners = std::uint16_t(parts[i].polygon ? parts[i].polygon->size() : 0);
        if (count > 0 && (count == mosaic_parts || corners + part.corners > max_outline_corners || is_apart(part) ||
                          is_apart(jobs.parts[0]))) {
          if (Status status = launch(jobs, count, queue); !status.ok()) return status;
          count = corners = 0;
        }
        part.corner = std::uint16_t(corners);
        if (parts[i].polygon) std::copy(parts[i].polygon->begin(), parts[i].polygon->end(), jobs.corners + corners);
        corners += part.corners;
        jobs.parts[count++] = part;
      }
      if (count == 0) continue;
      if (Status status = launch(jobs, count, queue); !status.ok()) return status;
    }
    return {};
  }

  MosaicJobs make_jobs(const Image& src, const Image& dst) const {
    MosaicJobs jobs;
    jobs.width = plan_.geometry.width;
    jobs.height = plan_.geometry.height;
    jobs.max_value = format_.max_value();
    jobs.shift = format_.shift;
    jobs.sums = sums_.data<std::uint64_t>();
    for (int i = 0; i < format_.color_sets(); ++i) {
      const ChannelSet& channels = format_.sets[i];
      const cuda::SetView view =
          cuda::make_view(src, dst, i, plan_.geometry.grid(channels), Border::replicate, {}, false);
      MosaicSet& set = jobs.sets[i];
      set.src = view.src;
      set.dst = view.dst;
      set.src_pitch = view.src_pitch;
      set.dst_pitch = view.dst_pitch;
      set.width = view.width;
      set.height = view.height;
      set.channels = view.channels;
      set.shift_x = channels.shift_x;
      set.shift_y = channels.shift_y;
      set.filtered = view.filtered;
      set.own = view.own;
      set.words =
          aligned_to(view.src, view.src_pitch, mosaic_chunk) && aligned_to(view.dst, view.dst_pitch, mosaic_chunk);
    }
    return jobs;
  }

  MosaicPart schedule(const Rect& box, const SetRects& rects, int parts) const {
    return schedule_mosaic(plan_.geometry, box, rects, window_of(plan_, 0, box).x.side, multiprocessors_, parts);
  }

  Status launch(MosaicJobs& jobs, int parts, Queue queue) const {
    int blocks = 0, sums = 0;
    for (int set = 0; set < format_.color_sets(); ++set) {
      for (int i = 0; i < parts; ++i) blocks = std::max(blocks, mosaic_blocks(plan_.geometry, jobs.parts[i], set));
      jobs.sets[set].first_sum = sums;
      sums += mosaic_cells(plan_.geometry, jobs.parts[0], set) * jobs.sets[set].channels;
    }
    if (blocks == 0) return {};
    if (is_apart(jobs.parts[0]))
      if (Status status = cuda::check(cudaMemsetAsync(jobs.sums, 0, sums * sizeof(std::uint64_t), queue.stream),
                                      "cannot clear the sums");
          !status.ok())
        return status;
    return launch_mosaic(format_, jobs, parts, blocks, queue);
  }

  const Plan plan_;
  const FormatInfo& format_ = info(plan_.geometry.format);
  int multiprocessors_ = 1;
  cuda::DeviceMemory sums_;  ///< sums of the cells of a shape whose cells are summed by a separate launch
  std::vector<Rect> boxes_;  ///< boxes of the region, kept to reuse the memory
  std::vector<int> layers_;
};

}  // namespace

Result<std::unique_ptr<Filter>> make_mosaic_cuda(Plan plan) { return cuda::loaded<CudaMosaic>(std::move(plan)); }

}  // namespace cudavision::local
