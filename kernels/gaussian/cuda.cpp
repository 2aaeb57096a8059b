// SPDX-License-Identifier: LGPL-2.1-or-later
// The Gaussian on CUDA: chooses a kernel when the plan is made, then sets its parameters and launches it for each
// frame.
//
//   plan:   Window of each channel set → kernel_: the first KernelShape that holds all of them (cuda_strip.cu), or the
//           kernel for large windows (cuda_large.cu)
//   frame:  SetJob of each channel set → Schedule: strips, segments, blocks (cuda_schedule.cpp)
//           → one launch for all sets
//
// Where to change what:
//   another border            "Walks" in CONTRIBUTING.md
//   numbers for another GPU   choose_kernel() below knows the device: "Walks" in CONTRIBUTING.md
//   another depth or format   nothing, if core/format.cpp has it: sample_rules() reads depth and shift
//   another sample type       only integers of 1 or 2 bytes, because products multiply bytes: `sizeof(T)` and
//                             `sample_bytes == 1` decide in Arithmetic, strip_blocks(), Samples and Large. float32
//                             needs a separate kernel
//   another block shape       strip_warps, large_warps with narrow_blocks, wide_blocks, large_blocks (cuda_tuning.hpp).
//                             Rows of a segment: max_steps. strip_bytes and step_rows are fixed
//   another window shape      byte_shapes, word_shapes, pixel_shapes (cuda_schedule.hpp)
//   constants for speed       cuda_tuning.hpp
//   how rows are read         kernels/cuda/row_ring.cuh; for large windows cuda_large.cu
//   which formats are pixels  pixel_channels()
//   how results are stored    cuda_store.cuh
#include <algorithm>
#include <limits>
#include <utility>

#include "kernels/cuda/filter.hpp"
#include "kernels/cuda/overlap.hpp"
#include "kernels/gaussian/cuda_job.cuh"

namespace cudavision::gaussian {
namespace {

class CudaGaussian final : public cuda::CudaFilter {
 public:
  explicit CudaGaussian(Plan plan) : CudaFilter(plan.geometry, plan.filter_alpha), plan_(std::move(plan)) {}

  /// Sets the parameters that do not depend on a frame, and loads the kernel.
  Status prepare() {
    const FormatInfo& format = info(geometry().format);
    packed_ = format.sets[0].shares_plane();
    params_.sets = packed_ ? 1 : plan_.filter_alpha ? format.set_count : format.color_sets();
    channels_ = pixel_channels(format);
    if (channels_ > 0 && measure(format, pixel_bytes) >= 0) return choose_kernel(pixel_bytes);
    measure(format, format.sample_bytes());
    return choose_kernel(format.sample_bytes());
  }

 private:
  /// The number of computed channels in pixels of four bytes. 0: the format has other pixels, or copies channels that
  /// cuda_pixels.cuh cannot copy.
  int pixel_channels(const FormatInfo& format) const {
    const ChannelSet& set = format.sets[0];
    if (format.set_count != 1 || set.channels != 4 || format.sample_bytes() != 1) return 0;
    int copied = 0;
    for (int c = 0; c < 4; ++c) copied |= (!plan_.filter_alpha && !is_color(set.roles[c])) << c;
    return copied == 0 ? 4 : copied == 1 || copied == 8 ? 3 : 0;
  }

  /// Sets the jobs for a kernel whose elements have this size: samples of 1 or 2 bytes, or pixels of four bytes
  /// (pixel_bytes). Returns the shape of the kernel for strips, or −1.
  int measure(const FormatInfo& format, int element_bytes) {
    const int sample_bytes = format.sample_bytes();
    params_.window_groups_x = params_.window_groups_y = max_lead_ = max_reach_ = 0;
    for (int i = 0; i < params_.sets; ++i) {
      SetJob& job = params_.jobs[i] = {};
      const Axis &x = plan_.sets[i].x, &y = plan_.sets[i].y;
      for (int k = 0; k < 2; ++k) {
        SampleParity& kind = job.kinds[k];
        kind.set = packed_ ? int(format.sets[0].roles[k] == Role::other) : i;
        kind.stride = format.sets[kind.set].channels * sample_bytes;
        kind.pack = pack_rule(plan_.sets[kind.set].x);
        job.reach = std::max(job.reach, plan_.sets[kind.set].x.radius() * kind.stride);
      }
      const Window window = window_of(job.reach, y.radius(), element_bytes);
      job.lead = window.lead;
      max_lead_ = std::max(max_lead_, window.lead);
      max_reach_ = std::max(max_reach_, window.reach);
      params_.window_groups_x = std::max(params_.window_groups_x, window.window_groups_x);
      params_.window_groups_y = std::max(params_.window_groups_y, window.window_groups_y);
      params_.axes[i][1] = weights_down(y, sample_bytes);
      job.rules = sample_rules(format, x, y);
    }
    for (int i = 0; i < format.set_count; ++i) params_.axes[i][0] = weights_across(plan_.sets[i].x);
    return find_shape(element_bytes, params_.window_groups_x, params_.window_groups_y);
  }

  Status choose_kernel(int element_bytes) {
    auto device = cuda::current_device();
    if (!device.ok()) return device.error();
    const int window_groups_x = params_.window_groups_x, window_groups_y = params_.window_groups_y,
              shared_limit = device.value().shared_limit;
    const int shape = find_shape(element_bytes, window_groups_x, window_groups_y);
    large_ = shape < 0;
    overlaps_ = !large_ && device.value().major >= 9;
    if (!large_) {
      kernel_ = strip_kernel(element_bytes, channels_, shape);
      threads_ = 32 * tuning.strip_warps;
      workers_.window = strip_bytes * tuning.strip_warps + max_lead_ + max_reach_;
      workers_.edge_percent = strip_edge_percent(element_bytes);
      shared_bytes_ = strip_shared(element_bytes, shape);
    } else {
      kernel_ = large_kernel(element_bytes);
      workers_.warps = large_warps(element_bytes, window_groups_x, window_groups_y, shared_limit);
      if (workers_.warps == 0)
        return Status::resource("the device lacks the shared memory for a Gaussian of this size");
      threads_ = 32 * workers_.warps;
      workers_.window = large_window(element_bytes, window_groups_x, window_groups_y);
      workers_.edge_percent = tuning.large_edge_percent;
      shared_bytes_ = large_bytes(element_bytes, window_groups_x, window_groups_y, workers_.warps);
    }
    if (Status status =
            cuda::load_kernel(kernel_, "cannot load the Gaussian kernel", large_ ? shared_limit : shared_bytes_);
        !status.ok())
      return status;
    const auto resident = cuda::resident_blocks(kernel_, threads_, shared_bytes_);
    if (!resident.ok()) return resident.error();
    workers_.slots = device.value().multiprocessors * std::max(1, resident.value());
    workers_.window_groups_y = window_groups_y;
    workers_.max_steps = large_ ? tuning.large_max_steps : tuning.strip_max_steps;
    return {};
  }

  Status filter(const Image& src, const Image& dst, const SetRects& rects, Queue queue) override {
    KernelParams params = params_;
    std::array<SetWork, max_sets> work;
    for (int i = 0; i < params.sets; ++i) {
      SetJob& job = params.jobs[i];
      set_frame(job, src, dst, i, rects);
      work[i] = {job.row_bytes,
                 job.x0,
                 job.x1,
                 job.view.y0,
                 job.view.y1,
                 job.lead,
                 job.unit < (large_ ? 4 : 16),
                 large_ ? strip_bytes : strip_bytes * tuning.strip_warps};
      if (job.x0 >= job.x1) work[i].y1 = work[i].y0;
      job.origin = work[i].origin();
    }
    const Schedule schedule = make_schedule(work, params.sets, workers_);
    if (schedule.blocks == 0) return {};
    for (int i = 0; i < params.sets; ++i) params.jobs[i].schedule = schedule.sets[i];
    return launch(params, schedule.blocks, queue);
  }

  /// Launches the kernel. The kernel for strips starts while the previous launch ends; see wait_for_previous().
  Status launch(KernelParams& params, int blocks, Queue queue) const {
    return cuda::check(cuda::launch_overlapping(reinterpret_cast<const void*>(kernel_), blocks, threads_, shared_bytes_,
                                                overlaps_, &params, queue.stream),
                       "cannot launch the Gaussian");
  }

  /// Sets the parameters that depend on a frame.
  void set_frame(SetJob& job, const Image& src, const Image& dst, int index, const SetRects& rects) const {
    const auto view_of = [&](int set) {
      return cuda::make_view(src, dst, set, rects[set], plan_.border, plan_.border_value, plan_.filter_alpha);
    };
    job.row_end = job.x1 = 0;
    job.row_bytes = job.x0 = std::numeric_limits<int>::max();
    for (int k = 0; k < 2; ++k) {
      SampleParity& kind = job.kinds[k];
      const SetView view = view_of(kind.set);
      kind.width = view.width;
      kind.x0 = view.x0 * kind.stride;
      kind.x1 = view.x1 * kind.stride;
      job.row_bytes = std::min(job.row_bytes, view.width * kind.stride);
      job.row_end = std::max(job.row_end, view.width * kind.stride);
      if (rects[kind.set].empty()) continue;
      job.x0 = std::min(job.x0, kind.x0);
      job.x1 = std::max(job.x1, kind.x1);
    }
    SetView& view = job.view = view_of(packed_ ? 1 : index);
    if (packed_) {
      const SetView luma = view_of(0);
      for (int c = 0; c < luma.channels; ++c)
        if (luma.own >> c & 1) view.border_value[c] = view.border_value[c + 2] = luma.border_value[c];
      view.filtered = 0xf;
      view.y0 = luma.y0, view.y1 = luma.y1;
    }
    const int sample_bytes = info(geometry().format).sample_bytes();
    job.copied_bits[0] = job.copied_bits[1] = 0;
    for (int byte = 0; byte < 8; ++byte)
      if (!(view.filtered >> (byte / sample_bytes % view.channels) & 1))
        job.copied_bits[byte / 4] |= 0xffu << byte % 4 * 8;
    job.unit = 0;
    for (int unit : {4, 8, 16})
      if (aligned_to(view.src, view.src_pitch, unit)) job.unit = unit;
    // The kernel for large windows reads 16 bytes of the source if some of them are copied.
    job.stores_8 = aligned_to(view.dst, view.dst_pitch, 8) &&
                   (!large_ || !(job.copied_bits[0] | job.copied_bits[1]) || job.unit == 16);
    job.stores_16 = aligned_to(view.dst, view.dst_pitch, 16);
  }

  bool overlaps_ = false;  ///< whether the device can start a launch before the previous launch has ended
  bool large_ = false;     ///< whether the kernel for large windows runs
  bool packed_ = false;    ///< packed 4:2:2: both channel sets are one job
  int channels_ = 0;       ///< pixel_channels()
  Plan plan_;
  KernelParams params_{};  ///< the parameters that do not depend on a frame
  Kernel kernel_ = nullptr;
  int threads_ = 0, shared_bytes_ = 0;  ///< threads, and bytes of shared memory, of a block
  int max_lead_ = 0, max_reach_ = 0;    ///< maxima over all jobs
  Workers workers_;
};

}  // namespace

Result<std::unique_ptr<Filter>> make_cuda(Plan plan) {
  auto filter = std::make_unique<CudaGaussian>(std::move(plan));
  if (Status status = filter->prepare(); !status.ok()) return status;
  return std::unique_ptr<Filter>(std::move(filter));
}

}  // namespace cudavision::gaussian
