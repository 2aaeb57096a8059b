// SPDX-License-Identifier: LGPL-2.1-or-later
// The plan on CUDA: owns the memory, and launches the kernels of a frame. Contains no device code.
//
//   each frame:  [analysis_scale > 1: cuda_scale.cu]
//            ->  [mog2: cuda_mog2.cu; adaptive: cuda_adaptive_light.cu, cuda_adaptive_change.cu]
//            ->  cuda_compare.cu, which shows the mask or the overlay, if it compares at the size of the frame
//            ->  [mog2, light_change_ratio > 0: cuda_mog2.cu]
//            ->  [analysis_scale > 1, output = difference: cuda_scale.cu]
//            ->  [open_radius or light_change_ratio > 0, or analysis_scale > 1: cuda_open.cu]
//            ->  [adaptive, the mask is shown: cuda_enclosed.cu; cuda_adaptive_outline.cu if analysis_scale > 1;
//            cuda_open.cu]
//            ->  [looks: cuda_looks.cu]
//   results:     each tile that changed stores a record in page-locked host memory; collect_records() adds them
//                cuda_looks.cu stores the looks of the changed pixels of cells, also in page-locked host memory
//   boxes:       cuda_boxes.cu
//
// Most frames need one launch (if nothing waits for the opening or for the decision about light) or two. Each launch
// starts while the previous launch ends (kernels/cuda/overlap.hpp).
//
// Where to change what:
//   which kernels run, tiles, memory      cuda_schedule.cpp
//   arguments of the kernels              cuda_arguments.cpp; rules for samples of a role: set_rules() there
//   another reference                     the questions has_… and keeps_… of Plan (plan.hpp), which both backends ask;
//                                         how a background follows the frames: arithmetic.hpp
//   another sample type or block shape    see the list in cuda_compare.cu
#include <algorithm>
#include <cstring>
#include <utility>

#include "kernels/cuda/memory.hpp"
#include "kernels/cuda/overlap.hpp"
#include "kernels/diff/cuda_adaptive.hpp"
#include "kernels/diff/cuda_adaptive_outline.hpp"
#include "kernels/diff/cuda_arguments.hpp"
#include "kernels/diff/cuda_stages.hpp"
#include "kernels/diff/sequence.hpp"

namespace cudavision::diff {
namespace {

class CudaDiff final : public Sequence {
 public:
  explicit CudaDiff(Plan plan)
      : Sequence(std::move(plan), Backend::cuda),
        schedule_(make_schedule(this->plan())),
        compare_(schedule_.compares ? compare_kernel(schedule_.layout, this->plan().has_background(), schedule_.compare)
                                    : nullptr),
        open_(schedule_.opens ? open_kernel(schedule_.layout,
                                            this->plan().completes() ? Writes::nothing : schedule_.open, schedule_.wide)
                              : nullptr),
        show_(this->plan().completes() ? open_kernel(schedule_.layout, schedule_.open, schedule_.wide) : nullptr) {}

  /// Allocates the memory and loads the kernels. The context must be current.
  Status prepare() {
    const auto device = cuda::current_device();
    if (!device.ok()) return device.error();
    device_ = device.value();
    params_ = params_of(plan(), schedule_);
    if (Status status = prepare_memory(); !status.ok()) return status;
    set_open_params();
    const std::size_t frames = std::size_t(plan().params.in_flight);
    if (plan().measures_looks())
      if (Status status = looks_.allocate(looks_bytes() * frames); !status.ok()) return status;
    const std::size_t record_bytes = schedule_.frame_record_bytes() * frames;
    if (Status status = records_.allocate(record_bytes); !status.ok()) return status;
    std::memset(records_.data(), 0, record_bytes);  // memory of an earlier plan still holds the stamps of that plan
    stamps_.resize(frames);
    if (plan().has_adaptive()) {
      const int channels = compared_channels(plan()), width = plan().analysis.width, height = plan().analysis.height;
      light_ = adaptive_light_kernel(schedule_.layout.sample_bytes, channels, plan().log2_scale(), width, height);
      change_ = adaptive_change_kernel(channels, width, height, device_.multiprocessors);
    }
    for (const void* kernel : {light_.function, change_.function, compare_, open_, show_}) {
      if (!kernel) continue;
      if (Status status = cuda::load_kernel(kernel, "cannot load the difference kernel"); !status.ok()) return status;
    }
    if (Status status = load_boxes(schedule_.layout.sample_bytes); !status.ok()) return status;
    if (plan().measures_looks())
      if (Status status = load_looks(schedule_.layout.sample_bytes == 1, plan().params.cell_size); !status.ok())
        return status;
    if (schedule_.scales)
      if (Status status = load_scaling(schedule_.layout.sample_bytes); !status.ok()) return status;
    if (show_) {
      if (Status status = load_enclosing(); !status.ok()) return status;
      if (Status status = load_outlining(schedule_.layout.sample_bytes == 1); !status.ok()) return status;
    }
    if (plan().has_mixture()) return load_mog2(schedule_.layout.sample_bytes, compared_channels(plan()));
    return {};
  }

  void steer(const std::vector<Learning>& cells) override {
    if (cells == learning_) return;
    learning_ = cells;
    steered_ = !cells.empty();
  }

 private:
  std::size_t looks_bytes() const {
    return sizeof(LooksHead) + std::size_t(entry_bytes()) * plan().cells.changed.size();
  }
  int entry_bytes() const { return looks_entry_bytes(plan().params.looks == Looks::extents, plan().has_adaptive()); }

  Status prepare_memory() {
    const Memory memory = memory_of(plan());
    if (Status status = kept_.allocate(memory.kept_bytes); !status.ok()) return status;
    if (Status status = bits_.allocate(memory.bits_bytes); !status.ok()) return status;
    const FrameLayout layout = frame_layout(plan());
    for (std::size_t offset : memory.ring) ring_.push_back(layout.at(plan().analysis, kept_.data() + offset));
    if (plan().has_background()) {
      for (int plane = 0; plane < 3; ++plane) {
        if (layout.pitch[plane] > 0)
          params_.planes[plane].background = {kept_.data() + memory.model + 2 * layout.offset[plane],
                                              int(2 * layout.pitch[plane])};
      }
    }
    if (plan().has_model()) model_ = kept_.data() + memory.model;
    if (memory.unmasked != Memory::none) params_.unmasked = bits_.data() + memory.unmasked;
    if (memory.changed != Memory::none) params_.changed = bits_.data() + memory.changed;
    if (memory.final_mask != Memory::none) params_.final_mask = bits_.data() + memory.final_mask;
    if (memory.learning != Memory::none) device_learning_ = reinterpret_cast<Learning*>(bits_.data() + memory.learning);
    params_.final_pitch = int(final_pitch(plan()));
    if (memory.found_tiles != Memory::none) {
      params_.found_tiles = bits_.data() + memory.found_tiles;
      params_.filled_tiles = bits_.data() + memory.filled_tiles;
    }
    if (memory.list != Memory::none) {
      const auto at = [this](std::size_t offset) { return reinterpret_cast<std::uint32_t*>(bits_.data() + offset); };
      list_ = {at(memory.list_count), at(memory.list), nullptr, plan().cells.width};
      if (memory.list_stamps != Memory::none) list_.stamps = at(memory.list_stamps);
    }
    if (memory.filled != Memory::none) filled_ = bits_.data() + memory.filled;
    if (plan().completes()) {
      shown_ = bits_.data() + memory.shown;
      spare_records_ = bits_.data() + memory.spare_records;
    }
    if (memory.foreground != Memory::none) foreground_ = bits_.data() + memory.foreground;
    if (memory.small != Memory::none) small_ = layout.at(plan().analysis, bits_.data() + memory.small);
    if (memory.small_difference != Memory::none)
      small_difference_ = layout.at(plan().analysis, bits_.data() + memory.small_difference);
    static_assert(sizeof(State) <= state_bytes);
    params_.state = reinterpret_cast<State*>(kept_.data() + memory.state);

    cuda::FillStream stream;  // kernels also read the padding after rows, although it has no effect
    stream.clear(kept_.data(), memory.kept_bytes);
    if (memory.bits_bytes > 0) stream.clear(bits_.data(), memory.bits_bytes);
    if (params_.unmasked) {
      const auto& bits = plan().unmasked_bits;
      stream.upload(bits_.data() + memory.unmasked, bits.data(), plan().mask_pitch() * plan().analysis.height);
    }
    return stream.finish();
  }

  /// Derives the parameters of the opening kernel, which works at the frame's size, from the parameters for the
  /// analysis.
  void set_open_params() {
    KernelParams& p = open_params_ = params_;
    p.tiles_x = schedule_.frame.x;
    p.writes = schedule_.open;
    if (!schedule_.scales) return;
    p.width = geometry().width;
    p.height = geometry().height;
    p.log2_scale = std::uint8_t(plan().log2_scale());
    for (int plane = 0; plane < schedule_.layout.planes; ++plane) {
      p.planes[plane].row_bytes = picture_row_bytes(geometry(), plane);
      params_.planes[plane].row_bytes = int(small_.planes[plane].pitch);  // memory of the plan
    }
  }

  bool swap_reference(Sequence& other) override {
    auto* const previous = dynamic_cast<CudaDiff*>(&other);
    if (!previous) return false;
    kept_.swap(previous->kept_);
    std::swap(model_, previous->model_);
    std::swap(params_.state, previous->params_.state);
    for (std::size_t plane = 0; plane < std::size(params_.planes); ++plane)
      std::swap(params_.planes[plane].background, previous->params_.planes[plane].background);
    return true;
  }

  Status compute(const Frame& frame, Queue queue) override {
    if (++stamp_ == 0) ++stamp_;
    stamps_[std::size_t(frame.slot)] = stamp_;
    const FormatInfo& format = info(geometry().format);
    if (plan().params.output != Output::none && format.alpha_set() >= 0)
      if (Status copied = copy_picture_cuda(frame.whole, frame.dst, queue, format.planes - 1); !copied.ok())
        return copied;
    Status status = find_changes(frame, queue);
    return status.ok() && frame.compared && plan().measures_looks() ? measure_looks(frame, queue) : status;
  }

  /// Measures the cells in the list, and empties the list.
  Status measure_looks(const Frame& frame, Queue queue) {
    LooksArguments looks{looks_job(plan(), frame),
                         params_.final_mask,
                         std::ptrdiff_t(params_.final_pitch),
                         plan().cells.width,
                         plan().cells.height,
                         plan().params.cell_size,
                         list_.cells,
                         list_.count,
                         place_of_looks(frame.slot),
                         entry_bytes()};
    if (plan().has_adaptive()) looks.job.structure = structure_job(adaptive_work(frame));
    return launch_looks(looks, schedule_.layout.sample_bytes == 1, device_, overlaps(), queue.stream);
  }

  /// Finds the changed pixels, counts and shows them, and stores the final mask.
  Status find_changes(const Frame& frame, Queue queue) {
    Status status = schedule_.scales ? analyse_small(frame, queue) : analyse(frame, queue);
    if (!status.ok() || !open_) return status;
    KernelParams p = open_params_;
    p.state = params_.state;  // another plan may have handed over its state
    p.records = record(frame.slot);
    p.stamp = stamp_;
    if (frame.compared) p.list = list_;
    if (schedule_.restarts && frame.compared)
      p.restart = restart_of(plan(), params_, schedule_.scales ? small_ : frame.src, ring_);
    Frame shown = frame;
    shown.reference = {};
    set_planes(p, plan(), schedule_.layout, shown);
    if (Status opened = launch_open(p, queue); !opened.ok() || !show_) return opened;
    return show_completed(frame, p, queue);
  }

  /// Shows the final mask, filled and with a refined outline. `p`: the parameters of the opening.
  Status show_completed(const Frame& frame, KernelParams& p, Queue queue) const {
    const Geometry& analysis = plan().analysis;
    const bool scales = schedule_.scales;
    const Enclosing enclosing{p.final_mask,   p.final_pitch,   scales ? filled_ : shown_, p.unmasked,    p.bits_pitch,
                              analysis.width, analysis.height, plan().log2_scale(),       plan().reach()};
    if (Status status = launch_enclosing(enclosing, queue.stream); !status.ok()) return status;
    if (scales) {
      const Outlining outlining{adaptive_work(frame), filled_, p.unmasked, p.bits_pitch, shown_, p.final_pitch};
      if (Status status = launch_outlining(outlining, schedule_.layout.sample_bytes == 1, queue.stream); !status.ok())
        return status;
    }
    // Runs the opening kernel again. This launch neither opens nor spreads the mask, and leaves it in its place.
    p.changed = p.final_mask = shown_;
    p.bits_pitch = p.final_pitch;
    p.log2_scale = p.open_radius = 0;
    p.detects_light = false;  // if the light was switched, the final mask is empty
    p.records = spare_records_;
    p.list = {};
    return launch(show_, schedule_.frame, p, queue, schedule_.open_shared);
  }

  /// Compares at a reduced size, and shows the difference if requested.
  Status analyse_small(const Frame& frame, Queue queue) {
    Frame small = frame;
    small.src = small_;
    small.dst = small_difference_;
    const int bytes = schedule_.layout.sample_bytes;
    if (schedule_.compares) {
      const Scaling shrunk = scaling_of(plan(), small_, frame.src, true, frame.src);
      if (Status status = launch_scaling(shrunk, bytes, true, queue.stream); !status.ok()) return status;
    }
    Status status = analyse(small, queue);
    if (!status.ok() || plan().params.output != Output::difference) return status;
    const Scaling shown = scaling_of(plan(), small_difference_, frame.dst, false, frame.src);
    return launch_scaling(shown, bytes, false, queue.stream);
  }

  void collect_looks(int slot, std::vector<CellLooks>& looks) const override {
    const unsigned char* const found = place_of_looks(slot);
    LooksHead head;
    std::memcpy(&head, found, sizeof head);
    const std::size_t bytes = std::size_t(entry_bytes());
    for (std::size_t i = 0; i < head.count; ++i) {
      LooksEntry entry{};
      std::memcpy(&entry, found + sizeof head + i * bytes, bytes);
      looks[entry.cell] = entry.looks;
    }
  }
  unsigned char* place_of_looks(int slot) const { return looks_.data() + looks_bytes() * std::size_t(slot); }
  unsigned char* record(int slot) const { return records_.data() + schedule_.frame_record_bytes() * std::size_t(slot); }

  /// Compares pictures that have the size of the analysis.
  Status analyse(const Frame& frame, Queue queue) {
    if (frame.number == 0) {
      const cudaError_t error = cudaMemsetAsync(params_.state, 0, sizeof(State), queue.stream);
      if (Status status = cuda::check(error, "cannot clear the state"); !status.ok()) return status;
    }
    KernelParams p = params_;
    p.begin = !frame.compared;
    p.number = frame.number;
    p.records = record(frame.slot);
    p.stamp = stamp_;
    if (frame.compared) p.list = list_;
    p.verdict = reinterpret_cast<Verdict*>(record(frame.slot) + schedule_.verdict_offset());
    set_planes(p, plan(), schedule_.layout, frame);
    return plan().has_adaptive() ? update_adaptive(frame, p, queue) : compare(frame, p, queue);
  }

  /// Finds the changed pixels by comparison with the reference or a mixture.
  Status compare(const Frame& frame, KernelParams& p, Queue queue) const {
    if (plan().has_mixture()) {
      mog2::Job job = mixture_job(plan(), frame);
      if (Status status = update_mixture(job, false, queue); !status.ok()) return status;
      if (frame.compared) p.foreground = foreground_;
    }
    if (Status status = launch(compare_, schedule_.analysis, p, queue); !status.ok()) return status;
    if (!plan().has_mixture() || !plan().detects_light() || !frame.compared) return {};
    mog2::Job job = mixture_job(plan(), frame);
    job.begin = true;  // if the light was switched
    return update_mixture(job, true, queue);
  }

  /// Finds the changed pixels with an adaptive background, and shows the difference if requested. If the light was
  /// switched in the last frame, the first kernel restarts the means with that frame.
  Status update_adaptive(const Frame& frame, const KernelParams& p, Queue queue) {
    if (std::exchange(steered_, false)) {
      const cudaError_t error =
          cudaMemcpyAsync(device_learning_, learning_.data(), learning_.size(), cudaMemcpyHostToDevice, queue.stream);
      if (Status status = cuda::check(error, "cannot copy what may be learned"); !status.ok()) return status;
    }
    const adaptive::Job job = adaptive_work(frame);
    AdaptiveChange change{job,        AdaptiveArrays(job), p.state,      p.verdict,
                          p.unmasked, p.changed,           p.bits_pitch, camera_rule(plan(), frame)};
    void* arguments[] = {&change};
    cudaError_t error = cudaSuccess;
    for (const AdaptiveKernel& kernel : {light_, change_})
      if (error == cudaSuccess)
        error =
            cudaLaunchKernel(kernel.function, kernel.grid, dim3(unsigned(kernel.threads)), arguments, 0, queue.stream);
    if (Status status = cuda::check(error, "cannot launch the background"); !status.ok() || !compare_) return status;
    KernelParams shown = p;
    shown.changed = nullptr;
    shown.verdict = nullptr;
    shown.detects_light = false;
    return launch(compare_, schedule_.analysis, shown, queue);
  }

  adaptive::Job adaptive_work(const Frame& frame) const {
    adaptive::Job job = adaptive_job(plan(), frame);
    adaptive::set_state(job, model_, adaptive::device_places);
    if (!learning_.empty()) job.learning = learning_map(plan(), device_learning_);
    return job;
  }

  Status update_mixture(mog2::Job& job, bool anew, Queue queue) const {
    mog2::set_state(job, model_, compared_channels(plan()));
    return launch_mog2(job, schedule_.layout.sample_bytes, compared_channels(plan()), foreground_,
                       int(params_.bits_pitch), params_.state, anew, queue.stream);
  }

  /// Whether a launch may start while the previous launch ends. After the kernels of an adaptive background or the
  /// shrinking kernels, overlapping takes slightly longer.
  bool overlaps() const { return device_.major >= 9 && !schedule_.scales && !plan().has_adaptive(); }
  Status launch_open(KernelParams& p, Queue queue) const {
    return launch(open_, schedule_.frame, p, queue, schedule_.open_shared);
  }
  Status launch(const void* kernel, const Tiles& tiles, KernelParams& p, Queue queue,
                std::size_t shared_bytes = 0) const {
    p.next_starts_early =
        overlaps() && int(schedule_.analysis.count()) > tuning.waiting_blocks * device_.multiprocessors;
    return cuda::check(cuda::launch_overlapping(kernel, int(tiles.count()), schedule_.threads, shared_bytes, overlaps(),
                                                &p, queue.stream),
                       "cannot launch the difference");
  }

  FrameCounts collect(int slot, std::vector<std::uint32_t>& changed) const override {
    return collect_records(plan(), schedule_, record(slot), stamps_[std::size_t(slot)], changed);
  }
  Status fill(const Image& dst, const std::vector<Fill>& fills, Queue queue) override {
    return launch_boxes(dst, fills, queue.stream);
  }

  Schedule schedule_;
  // Kernels; null if they do not run:
  const void* const compare_;
  const void* const open_;
  const void* const show_;  ///< shows the findings of open_, which then writes no picture; see Plan::completes()
  AdaptiveKernel light_, change_;
  cuda::DeviceMemory kept_, bits_;
  cuda::HostMemory records_, looks_;
  KernelParams params_, open_params_;  ///< parameters for the analysis, and for open_
  Image small_, small_difference_;     ///< at the size of the analysis
  unsigned char *foreground_ = nullptr, *filled_ = nullptr, *shown_ = nullptr, *spare_records_ = nullptr,
                *model_ = nullptr;
  cuda::Device device_;
  CellList list_;                      ///< changed cells of a frame; null if looks are not measured
  std::uint32_t stamp_ = 0;            ///< stamp of the last frame
  std::vector<std::uint32_t> stamps_;  ///< by slot
  Learning* device_learning_ = nullptr;
  std::vector<Learning> learning_;  ///< see steer()
  bool steered_ = false;            ///< whether learning_ has yet to be copied to the device
};

}  // namespace

Result<std::unique_ptr<Diff>> make_cuda(Plan plan) {
  auto made = std::make_unique<CudaDiff>(std::move(plan));
  if (Status status = made->prepare(); !status.ok()) return status;
  return std::unique_ptr<Diff>(std::move(made));
}

}  // namespace cudavision::diff
