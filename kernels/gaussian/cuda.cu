// SPDX-License-Identifier: LGPL-2.1-or-later
// The Gaussian on CUDA: chooses a kernel when the plan is made, fills in its parameters and launches it for each frame.
//
//   plan:   Window of each channel set → kernel_: the first KernelShape that holds all of them (cuda_strip.cu), or the kernel for large
//           windows (cuda_large.cu)
//   frame:  SetJob of each channel set → Schedule: strips, segments, blocks (cuda_schedule.cpp) → one launch for all sets
//
// Where to change what:
//   another border            Border and border_index (core/border.hpp), its row in core/border.cpp, before `fill`; row_map() below, or, if
//                             RowMap cannot find its rows, `one_fold` = false for it in set_frame(): then border_index finds all rows,
//                             which is slower. Border values above the frame: `inside` in blur_strip (cuda_strip.cu). validate()
//                             (gaussian.cpp). CPU: cpu.cpp, which passes the enum's number to OpenCV
//   another depth or format   nothing, if core/format.cpp has it: sample_rules() reads depth and shift
//   another sample type       only integers of 1 or 2 bytes, because products are of bytes: `sizeof(T)` and `sample_bytes == 1` decide
//                             in Arithmetic, products(), strip_loads(), Strip and Bands::fill. float32 needs a kernel of its own
//   another block shape       strip_warps, large_warps with narrow_blocks, wide_blocks, large_blocks (cuda_tuning.hpp). Rows of a
//                             segment: max_steps. strip_bytes and step_rows are fixed
//   another window shape      byte_shapes, word_shapes (cuda_schedule.hpp)
//   numbers that cost time    cuda_tuning.hpp
//   how rows are read         cuda_read.cuh
//   how results are stored    cuda_store.cuh
#include <algorithm>
#include <utility>

#include "kernels/cuda/filter.hpp"
#include "kernels/gaussian/cuda_job.cuh"
#include "kernels/gaussian/plan.hpp"

namespace cudavision::gaussian {
namespace {

/// `identity`: the weight of an axis that changes nothing.
AxisWeights axis_weights(const Axis& from, int identity) {
  AxisWeights axis{};
  axis.radius = from.radius();
  for (int i = 0; i <= axis.radius; ++i) axis.weights[i] = uint16_t(from.weights[axis.radius + i]);
  if (axis.radius == 0) axis.weights[0] = uint16_t(identity);
  return axis;
}

SampleRules sample_rules(const FormatInfo& format, bool identity_x, bool identity_y) {
  const bool bytes = format.sample_bytes() == 1;
  SampleRules rules;
  rules.mask = bytes ? ~0u : ((0xffffu << format.shift) & 0xffffu) * 0x10001u;
  rules.most = bytes ? ~0u : (uint32_t(format.max_value()) << format.shift) * 0x10001u;
  rules.pack = identity_x ? 0x4302 : 0x5410;
  rules.out = identity_y ? 0x51 : 0x62;
  rules.scale0 = identity_x ? 1u << 16 : 1;
  rules.scale1 = identity_x ? 1u << 24 : 1u << 8;
  rules.rounding = 1u << (15 + format.shift);
  rules.final_shift = 8 + format.shift - int(identity_y);
  return rules;
}

class CudaGaussian final : public cuda::CudaFilter {
 public:
  explicit CudaGaussian(Plan plan) : CudaFilter(plan.geometry), plan_(std::move(plan)) {}

  /// Fills in what does not depend on a frame, and loads the kernel.
  Status prepare() {
    const FormatInfo& format = info(geometry().format);
    const int sample_bytes = format.sample_bytes();
    params_.sets = format.set_count;
    for (int i = 0; i < format.set_count; ++i) {
      SetJob& job = params_.jobs[i];
      const Axis &x = plan_.sets[i].x, &y = plan_.sets[i].y;
      job.stride = format.sets[i].channels * sample_bytes;
      const Window window = window_of(x.radius(), y.radius(), job.stride, sample_bytes);
      job.reach = window.reach;
      job.lead = window.lead;
      params_.gx = std::max(params_.gx, window.gx);
      params_.gy = std::max(params_.gy, window.gy);
      params_.axes[i][0] = axis_weights(x, 1);
      params_.axes[i][1] = axis_weights(y, sample_bytes == 1 ? 1 : 1 << 15);
      job.rules = sample_rules(format, x.radius() == 0, y.radius() == 0);
    }
    return choose_kernel(sample_bytes);
  }

 private:
  Status choose_kernel(int sample_bytes) {
    auto device = cuda::current_device();
    if (!device.ok()) return device.error();
    const int gx = params_.gx, gy = params_.gy, shared_limit = device.value().shared_limit;
    const int shape = find_shape(sample_bytes, gx, gy);
    if (shape >= 0) {
      kernel_ = strip_kernel(sample_bytes, shape);
      workers_.warps = tuning.strip_warps;
      workers_.window = strip_window(sample_bytes, shape);
    } else {
      kernel_ = large_kernel(sample_bytes);
      workers_.warps = large_warps(sample_bytes, gx, gy, shared_limit);
      if (workers_.warps == 0) return Status::resource("the device lacks the shared memory for a Gaussian of this size");
      workers_.window = large_window(sample_bytes, gx, gy);
      shared_bytes_ = large_bytes(sample_bytes, gx, gy, workers_.warps);
    }
    if (Status status = cuda::load_kernel(kernel_, "cannot load the Gaussian kernel", shape >= 0 ? 0 : shared_limit); !status.ok())
      return status;
    const auto resident = cuda::resident_blocks(kernel_, 32 * workers_.warps, shared_bytes_);
    if (!resident.ok()) return resident.error();
    workers_.slots = device.value().multiprocessors * std::max(1, resident.value());
    workers_.gy = gy;
    workers_.max_steps = max_steps(info(geometry().format).sets[0].channels, gy);
    return {};
  }

  Status filter(const Image& src, const Image& dst, const SetRects& rects, Queue queue) override {
    KernelParams params = params_;
    std::array<SetWork, 3> work;
    for (int i = 0; i < params.sets; ++i) {
      SetJob& job = params.jobs[i];
      job.view = cuda::make_view(src, dst, i, rects[i], plan_.border, plan_.border_value, plan_.filter_alpha);
      set_frame(job, params.axes[i][1].radius);
      work[i] = {job.row_bytes, job.x0, job.x1, job.view.y0, job.view.y1, job.lead, !job.aligned_8 || !job.one_fold};
      if (rects[i].empty()) work[i].y1 = work[i].y0;
      job.origin = work[i].origin();
    }
    const Schedule schedule = make_schedule(work, params.sets, workers_);
    if (schedule.blocks == 0) return {};
    for (int i = 0; i < params.sets; ++i) params.jobs[i].schedule = schedule.sets[i];
    kernel_<<<schedule.blocks, 32 * workers_.warps, shared_bytes_, queue.stream>>>(params);
    return cuda::check(cudaGetLastError(), "cannot launch the Gaussian");
  }

  /// Fills in what depends on job.view.
  void set_frame(SetJob& job, int radius_y) const {
    const SetView& view = job.view;
    const int sample_bytes = info(geometry().format).sample_bytes();
    const unsigned all = (1u << view.channels) - 1;
    job.row_bytes = view.width * job.stride;
    job.x0 = view.x0 * job.stride;
    job.x1 = view.x1 * job.stride;
    job.copied_bits[0] = job.copied_bits[1] = job.owned_bytes = 0;
    for (int byte = 0; byte < 8; ++byte) {
      job.owned_bytes |= unsigned(view.own == all || (view.own >> byte % view.channels & 1)) << byte;
      if (view.filtered != all && !(view.filtered >> (byte / sample_bytes % view.channels) & 1))
        job.copied_bits[byte / 4] |= 0xffu << byte % 4 * 8;
    }
    job.rows = row_map(view);
    job.aligned_4 = aligned_to(view.src, view.src_pitch, 4);
    job.aligned_8 = aligned_to(view.src, view.src_pitch, 8);
    // RowMap cannot find rows that lie farther outside than the frame is high, and holds pitches of 32 bits.
    job.one_fold = radius_y < view.height && job.rows.pitch == view.src_pitch;
    job.stores_8 = view.own == all && aligned_to(view.dst, view.dst_pitch, 8) &&
                   (view.filtered == all || aligned_to(view.src, view.src_pitch, 8));
  }

  RowMap row_map(const SetView& view) const {
    RowMap rows{
        0, 0, 1, view.height - 1,
        int(view.src_pitch)};  // replicate. Border::constant gets the same but never uses it: blur_strip reads such rows with load_anywhere
    if (plan_.border == Border::reflect) rows.above = -1, rows.below = 2 * view.height - 1, rows.sign = -1;
    if (plan_.border == Border::reflect_101) rows.below = 2 * view.height - 2, rows.sign = -1;
    if (plan_.border == Border::wrap) rows.above = view.height, rows.below = -view.height;
    return rows;
  }

  Plan plan_;
  KernelParams params_{};  ///< what does not depend on a frame
  Kernel kernel_ = nullptr;
  int shared_bytes_ = 0;
  Workers workers_;
};

}  // namespace

Result<std::unique_ptr<Filter>> make_cuda(Plan plan) {
  auto filter = std::make_unique<CudaGaussian>(std::move(plan));
  if (Status status = filter->prepare(); !status.ok()) return status;
  return std::unique_ptr<Filter>(std::move(filter));
}

}  // namespace cudavision::gaussian
