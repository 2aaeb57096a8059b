// SPDX-License-Identifier: LGPL-2.1-or-later
// The plan on CUDA: owns the memory, prepares the parameters, and launches the kernels of a frame. No device code here.
//
//   each frame:  [analysis_scale > 1: cuda_scale.cu]  ->  [mog2: cuda_mog2.cu; pooled: cuda_pooled_light.cu, cuda_pooled_change.cu]  ->  cuda_compare.cu  ->  [light_change_ratio > 0: cuda_light.cu or cuda_mog2.cu]
//                ->  [analysis_scale > 1, output = difference: cuda_scale.cu]  ->  [open_radius or light_change_ratio > 0, or analysis_scale > 1: cuda_open.cu]
//                cuda_together.cu instead of cuda_compare.cu and cuda_open.cu, where the opening would read the picture again
//   results:     each tile stores a record in page-locked host memory; collect() adds them
//   boxes:       cuda_boxes.cu
//
// Where to change what:
//   which kernels run, tiles, memory      cuda_schedule.cpp
//   what happens to samples of a role     set_rules() below, Rule in cuda_params.cuh
//   another sample type or block shape    see the list in cuda_compare.cu
#include <algorithm>
#include <cstring>

#include "kernels/cuda/device.hpp"
#include "kernels/cuda/memory.hpp"
#include "kernels/cuda/rows.cuh"
#include "kernels/diff/cuda_mog2.hpp"
#include "kernels/diff/cuda_params.cuh"
#include "kernels/diff/cuda_pooled.hpp"
#include "kernels/diff/cuda_scale.hpp"
#include "kernels/diff/sequence.hpp"

namespace cudavision::diff {
namespace {

View view_of(const Plane& plane) { return {static_cast<unsigned char*>(plane.data), plane.pitch}; }
std::uint8_t alignment_of(const Plane& plane) {
  int alignment = 16;
  while (!aligned_to(plane.data, plane.pitch, alignment)) alignment /= 2;
  return std::uint8_t(alignment);
}

/// Whether all counts of a record are 0.
bool counts_nothing(const unsigned char* counts, int slots) {
  std::uint32_t any = 0;
  for (int i = 0; 2 * i < slots; ++i) {  // the kernels write pairs
    std::uint32_t pair;
    std::memcpy(&pair, counts + 4 * i, sizeof pair);
    any |= pair;
  }
  return any == 0;
}

class CudaDiff final : public Sequence {
 public:
  explicit CudaDiff(Plan plan)
      : Sequence(std::move(plan), Backend::cuda),
        schedule_(make_schedule(this->plan())),
        compare_(schedule_.compares && !schedule_.together ? compare_kernel(schedule_.layout, has_background(), schedule_.compare)
                                                           : nullptr),
        open_(!schedule_.opens     ? nullptr
              : schedule_.together ? compare_and_open_kernel(schedule_.layout, schedule_.wide)
                                   : open_kernel(schedule_.layout, schedule_.open, schedule_.wide)),
        restart_(schedule_.restarts ? restart_kernel(schedule_.layout.sample_bytes) : nullptr),
        light_(has_pooled()
                   ? pooled_light_kernel(schedule_.layout.sample_bytes, compared_channels(this->plan()), this->plan().log2_scale())
                   : nullptr),
        change_(has_pooled() ? pooled_change_kernel(compared_channels(this->plan())) : nullptr),
        box_(box_kernel(schedule_.layout.sample_bytes)) {}

  /// Allocates the memory and loads the kernels. With the context current.
  Status prepare() {
    set_params();
    if (Status status = prepare_memory(); !status.ok()) return status;
    set_open_params();
    if (Status status = records_.allocate(schedule_.frame_record_bytes() * plan().params.in_flight); !status.ok()) return status;
    for (int tile = 0; tile < schedule_.frame.x; ++tile)
      first_x_.push_back(Schedule::first_cell(tile, schedule_.frame.width, plan().params.cell_size));
    for (const void* kernel : {light_, change_, compare_, open_, restart_, box_}) {
      if (!kernel) continue;
      if (Status status = cuda::load_kernel(kernel, "cannot load the difference kernel"); !status.ok()) return status;
    }
    if (schedule_.scales)
      if (Status status = load_scaling(schedule_.layout.sample_bytes); !status.ok()) return status;
    if (has_mixture()) return load_mog2(schedule_.layout.sample_bytes, compared_channels(plan()));
    return {};
  }

 private:
  bool has_background() const { return plan().params.reference == Reference::background; }
  bool has_mixture() const { return plan().params.reference == Reference::mog2; }
  bool has_pooled() const { return plan().params.reference == Reference::pooled; }

  Status prepare_memory() {
    const Memory memory = memory_of(plan());
    if (Status status = kept_.allocate(memory.kept_bytes); !status.ok()) return status;
    if (Status status = bits_.allocate(memory.bits_bytes); !status.ok()) return status;
    const FrameLayout layout = frame_layout(plan());
    ring_.resize(std::size_t(ring_size(plan().params)));
    for (std::size_t i = 0; i < memory.ring.size(); ++i) ring_[i] = layout.at(plan().analysis, kept_.data() + memory.ring[i]);
    if (plan().params.reference == Reference::background) {
      for (int plane = 0; plane < 3; ++plane) {
        if (layout.pitch[plane] > 0)
          params_.planes[plane].background = {kept_.data() + memory.model + 2 * layout.offset[plane], 2 * layout.pitch[plane]};
      }
    }
    if (plan().has_model()) model_ = kept_.data() + memory.model;
    if (memory.counted != Memory::none) params_.counted = bits_.data() + memory.counted;
    if (memory.changed != Memory::none) params_.changed = bits_.data() + memory.changed;
    if (memory.compared_rows != Memory::none)
      params_.compared_rows = reinterpret_cast<unsigned*>(bits_.data() + memory.compared_rows);
    if (memory.foreground != Memory::none) foreground_ = bits_.data() + memory.foreground;
    if (memory.small != Memory::none) small_ = layout.at(plan().analysis, bits_.data() + memory.small);
    if (memory.small_difference != Memory::none)
      small_difference_ = layout.at(plan().analysis, bits_.data() + memory.small_difference);
    params_.state = reinterpret_cast<State*>(kept_.data() + memory.state);

    cuda::FillStream stream;  // kernels also read the unused bytes after rows, though these do not count
    stream.clear(kept_.data(), memory.kept_bytes);
    if (memory.bits_bytes > 0) stream.clear(bits_.data(), memory.bits_bytes);
    if (params_.counted) {
      const auto& bits = plan().counted_bits;
      stream.upload(bits_.data() + memory.counted, bits.data(), plan().mask_pitch() * plan().analysis.height);
    }
    return stream.finish();
  }

  void set_params() {
    const FormatInfo& format = info(geometry().format);
    const Params& params = plan().params;
    KernelParams& p = params_;
    p.width = plan().analysis.width;
    p.height = plan().analysis.height;
    p.tiles_x = schedule_.analysis.x;
    p.slots_x = schedule_.frame.slots_x;
    p.slots = schedule_.frame.slots;
    p.record_bytes = schedule_.frame.record_bytes;
    p.turns = schedule_.turns;
    p.count = !schedule_.opens;
    p.shift = format.shift;
    p.threshold = std::uint32_t(plan().threshold) * (format.sample_bytes() == 1 ? 0x1010101u : 0x10001u);
    p.show = plan().show;
    p.show_mask = params.output == Output::mask;
    p.detects_light = plan().detects_light();
    p.light_limit = plan().light_limit;
    p.light_age = unsigned(plan().light_age());
    p.interval = params.reference == Reference::previous ? unsigned(params.interval) : 1;
    p.drops_shadows = plan().drops_shadows();
    p.shadow = plan().shadow;
    p.rate = plan().rate;
    p.luma_of_rgb = plan().luma_of_rgb();
    p.reference_is_luma = p.luma_of_rgb && has_mixture();
    p.luma_second = format.sets[0].roles[0] == Role::other;
    p.bits_pitch = int(plan().mask_pitch());
    p.open_radius = std::uint8_t(params.open_radius);
    p.cell_size = std::uint32_t(params.cell_size);
    p.cell_reciprocal = schedule_.cell_reciprocal;
    for (int i = 0; i < format.set_count; ++i) set_rules(format, i);
  }

  /// The parameters of the kernel that opens, which goes back to the size of the frame, from those of the analysis.
  void set_open_params() {
    KernelParams& p = open_params_ = params_;
    if (!schedule_.scales) return;
    p.width = geometry().width;
    p.height = geometry().height;
    p.log2_scale = std::uint8_t(plan().log2_scale());
    for (int plane = 0; plane < info(geometry().format).planes; ++plane) {
      p.planes[plane].row_bytes = picture_row_bytes(geometry(), plane);
      params_.planes[plane].row_bytes = int(small_.planes[plane].pitch);  // own memory
    }
  }

  /// The rules for the samples of a set, in the words of its plane.
  void set_rules(const FormatInfo& format, int index) {
    const RoleValues white = white_values(format), black = black_values(format), tint = tint_values(format);
    const int bits = 8 * format.sample_bytes();
    const unsigned all = (1u << bits) - 1;
    const ChannelSet& set = format.sets[index];
    PlaneJob& job = params_.planes[set.plane];
    job.row_bytes = picture_row_bytes(geometry(), set.plane);
    for (int c = 0; c < set.channels; ++c) {
      const Role role = set.roles[c];
      if (role == Role::other) continue;
      for (int rgb = 0; rgb < 3; ++rgb)
        if (int(role) == int(Role::red) + rgb) params_.rgb[rgb] = format.set_count == 1 ? c : index;
      const bool copied = !is_color(role), compared = plan().compares(role);
      const bool about = !copied && (is_chroma(role) || plan().show.mode == Mode::signed_);
      job.any_copied |= copied;
      job.any_compared |= compared;
      job.any_about_middle |= about;
      for (int j = 0; j * set.channels < 16; ++j) {
        const int at = (j * set.channels + c) * bits;
        if (at >= 8 * 32) break;
        Rule& rule = job.rules[at / 32];
        const auto put = [&](std::uint32_t& word, unsigned value) { word |= std::uint32_t(value) << at % 32; };
        put(rule.copied, copied ? all : 0);
        put(rule.compared, compared ? all : 0);
        put(rule.about_middle, about ? all : 0);
        put(rule.white, white[std::size_t(role)]);
        put(rule.black, black[std::size_t(role)]);
        put(rule.tint, tint[std::size_t(role)]);
      }
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
    Status status = schedule_.scales ? analyse_small(frame, queue) : analyse(frame, queue);
    if (!status.ok() || !open_ || schedule_.together) return status;
    KernelParams p = open_params_;
    p.state = params_.state;  // another plan may have handed it over
    p.records = record(frame.slot);
    Frame shown = frame;
    shown.reference = {};
    set_planes(p, shown);
    return launch_open(p, queue);
  }

  /// Compares at a part of the size, and shows the difference if asked.
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

  unsigned char* record(int slot) const { return records_.data() + schedule_.frame_record_bytes() * std::size_t(slot); }

  /// Compares a picture of the size of the analysis.
  Status analyse(const Frame& frame, Queue queue) {
    if (frame.number == 0) {
      const cudaError_t error = cudaMemsetAsync(params_.state, 0, sizeof(State), queue.stream);
      if (Status status = cuda::check(error, "cannot clear the state"); !status.ok()) return status;
    }
    KernelParams p = params_;
    p.begin = !frame.compared;
    p.number = frame.number;
    p.records = record(frame.slot);
    p.sums = reinterpret_cast<std::uint32_t*>(p.records + schedule_.sums_offset());
    p.verdict = reinterpret_cast<Verdict*>(record(frame.slot) + schedule_.verdict_offset());
    set_planes(p, frame);
    return has_pooled() ? update_pooled(frame, p, queue) : compare(frame, p, queue);
  }

  /// Finds the changed pixels by comparison with the reference or a mixture.
  Status compare(const Frame& frame, KernelParams& p, Queue queue) const {
    if (has_mixture()) {
      mog2::Job job = mixture_job(plan(), frame);
      if (Status status = update_mixture(job, false, queue); !status.ok()) return status;
      if (frame.compared) p.foreground = foreground_;
    }
    if (schedule_.together) return launch_open(p, queue);
    if (Status status = launch_compare(p, queue); !status.ok()) return status;
    return plan().detects_light() && frame.compared ? begin_anew(frame, queue) : Status();
  }

  /// Finds the changed pixels by a pooled background, and shows the difference if asked. If light was switched in the last frame, the
  /// first kernel lets the means begin with that frame.
  Status update_pooled(const Frame& frame, const KernelParams& p, Queue queue) const {
    PooledChange change{pooled_job(plan(), frame), p.state, p.verdict, p.counted, p.changed, p.bits_pitch, ~0u, p.light_age};
    if (p.detects_light) change.light_limit = p.light_limit;
    pooled::Job& job = change.job;
    pooled::set_state(job, model_);
    void *light_arguments[] = {&job, &change.state}, *change_arguments[] = {&change};
    cudaError_t error = cudaLaunchKernel(light_, dim3(unsigned(job.cells_x), unsigned(job.cells_y)),
                                         dim3(unsigned(pooled_light_threads)), light_arguments, 0, queue.stream);
    if (error == cudaSuccess)
      error =
          cudaLaunchKernel(change_, pooled_tiles(job), dim3(unsigned(tuning.pooled_threads)), change_arguments, 0, queue.stream);
    if (Status status = cuda::check(error, "cannot launch the background"); !status.ok() || !compare_) return status;
    KernelParams shown = p;
    shown.changed = nullptr;
    shown.detects_light = false;
    return launch_compare(shown, queue);
  }

  Status update_mixture(mog2::Job& job, bool anew, Queue queue) const {
    mog2::set_state(job, model_, compared_channels(plan()));
    return launch_mog2(job, schedule_.layout.sample_bytes, compared_channels(plan()), foreground_, int(params_.bits_pitch),
                       params_.state, anew, queue.stream);
  }

  /// The reference begins with this frame, if light was switched.
  Status begin_anew(const Frame& frame, Queue queue) const {
    if (has_mixture()) {
      mog2::Job job = mixture_job(plan(), frame);
      job.begin = true;
      return update_mixture(job, true, queue);
    }
    if (!restart_) return {};
    const FormatInfo& format = info(geometry().format);
    Restart restart{params_.state, {}, format.shift, format.max_value()};
    for (int plane = 0; plane < format.planes; ++plane) {
      const PlaneJob& job = params_.planes[plane];
      if (!job.any_compared) continue;
      const View first = plan().params.reference == Reference::first ? view_of(ring_[0].planes[plane]) : View{};
      restart.planes[plane] = {view_of(frame.src.planes[plane]), first, job.background, job.row_bytes / format.sample_bytes(),
                               extent(plan().analysis, plane).rows};
    }
    void* arguments[] = {&restart};
    return cuda::check(cudaLaunchKernel(restart_, dim3(unsigned(tuning.restart_blocks)), dim3(unsigned(tuning.restart_threads)),
                                        arguments, 0, queue.stream),
                       "cannot launch the restart of the reference");
  }

  /// Addresses of the planes of a frame, and how far they are whole.
  void set_planes(KernelParams& p, const Frame& frame) const {
    const Layout& l = schedule_.layout;
    const int pixels = strip_pixels(l.channels0, l.sample_bytes);
    int strips = p.width / pixels;
    for (int plane = 0; plane < info(geometry().format).planes; ++plane) {
      PlaneJob& job = p.planes[plane];
      set_plane(job, frame, plane);
      const int channels = plane ? l.channels1 : l.channels0, shift = plane ? l.shift_x : 0;
      const int strip_bytes = (pixels >> shift) * channels * l.sample_bytes;
      const auto limit = [&](const View& view, int row_bytes, int alignment) {
        if (view.data) strips = alignment < strip_alignment(strip_bytes) ? 0 : std::min(strips, row_bytes / strip_bytes);
      };
      limit(job.src, job.row_bytes, job.src_alignment);
      limit(job.reference, job.reference_bytes, job.reference_alignment);
      limit(job.dst, job.row_bytes, job.dst_alignment);
    }
    p.whole_width = strips * pixels;
    p.whole_rows = p.height / tuning.tile_rows;
  }

  /// Addresses of a plane of the frame. Planes that the kernels do not need stay null.
  void set_plane(PlaneJob& job, const Frame& frame, int plane) const {
    const Params& params = plan().params;
    const Plane &src = frame.src.planes[plane], &dst = frame.dst.planes[plane], &reference = frame.reference.planes[plane];
    if (job.any_compared || job.any_copied || params.output == Output::overlay) {
      job.src = view_of(src);
      job.src_alignment = alignment_of(src);
    }
    if (params.output != Output::none) {
      job.dst = view_of(dst);
      job.dst_alignment = alignment_of(dst);
    }
    if (frame.compared && job.any_compared && reference.data) {
      const bool own = !plan().borrows();
      job.reference = view_of(reference);
      job.reference_alignment = alignment_of(reference);
      job.reference_bytes = own ? int(reference.pitch) : job.row_bytes;
    }
    job.keep = view_of(frame.keep.planes[plane]);
  }

  Status launch_compare(KernelParams& p, Queue queue) const {
    return launch(compare_, dim3(unsigned(schedule_.analysis.x), unsigned(schedule_.analysis.y)), p, queue);
  }
  Status launch_open(KernelParams& p, Queue queue) const {
    const Turns& turns = schedule_.turns;
    return launch(open_, dim3(unsigned(turns.compare_x + turns.open_x), unsigned(turns.rows + turns.ahead)), p, queue,
                  schedule_.open_shared);
  }
  Status launch(const void* kernel, dim3 grid, KernelParams& p, Queue queue, std::size_t shared_bytes = 0) const {
    void* arguments[] = {&p};
    return cuda::check(cudaLaunchKernel(kernel, grid, dim3(unsigned(schedule_.threads)), arguments, shared_bytes, queue.stream),
                       "cannot launch the difference");
  }

  Found collect(int slot, std::vector<std::uint32_t>& changed) const override {
    const Schedule& s = schedule_;
    const CellGrid& cells = plan().cells;
    const int cell = plan().params.cell_size;
    const unsigned char* tile = record(slot);
    const int slots_x = s.frame.slots_x, slots_y = s.frame.slots / slots_x;
    Found found;
    if (params_.detects_light || params_.interval > 1 || has_pooled()) {
      Verdict verdict;
      std::memcpy(&verdict, tile + s.verdict_offset(), sizeof verdict);
      found.compared = verdict.compared != 0;
      found.light = verdict.light != 0;
      found.sum = verdict.difference;
    }
    if (!has_pooled())
      for (std::size_t i = 0; i < s.analysis.count(); ++i) {
        std::uint32_t of_tile;
        std::memcpy(&of_tile, tile + s.sums_offset() + 4 * i, sizeof of_tile);
        found.sum += of_tile;
      }
    for (int tile_y = 0; tile_y < s.frame.y; ++tile_y) {
      const int first_y = Schedule::first_cell(tile_y, tuning.tile_rows, cell), down = std::min(slots_y, cells.height - first_y);
      for (int tile_x = 0; tile_x < s.frame.x; ++tile_x, tile += s.frame.record_bytes) {
        const auto* counts = reinterpret_cast<const std::uint16_t*>(tile);
        if (counts_nothing(tile, s.frame.slots)) continue;  // most tiles of most videos
        const int first_x = first_x_[std::size_t(tile_x)], across = std::min(slots_x, cells.width - first_x);
        for (int y = 0; y < down; ++y) {
          std::uint32_t* const row = &changed[std::size_t(first_y + y) * cells.width + first_x];
          for (int x = 0; x < across; ++x) {
            row[x] += counts[y * slots_x + x];
            found.changed += counts[y * slots_x + x];
          }
        }
      }
    }
    return found;
  }

  Status fill(const Image& dst, const std::vector<Fill>& fills, Queue queue) override {
    constexpr std::size_t at_once = std::size(Boxes{}.boxes);
    for (std::size_t begin = 0; begin < fills.size(); begin += at_once) {
      Boxes boxes{};
      const int count = int(std::min(at_once, fills.size() - begin));
      for (int i = 0; i < count; ++i) boxes.boxes[i] = box_of(dst, fills[begin + i]);
      void* arguments[] = {&boxes};
      const cudaError_t error =
          cudaLaunchKernel(box_, dim3(unsigned(count)), dim3(unsigned(tuning.box_threads)), arguments, 0, queue.stream);
      if (Status status = cuda::check(error, "cannot launch the drawing of boxes"); !status.ok()) return status;
    }
    return {};
  }

  Box box_of(const Image& dst, const Fill& fill) const {
    const FormatInfo& format = info(geometry().format);
    const RoleValues values = box_values(format);
    const ChannelSet& set = format.sets[fill.set];
    const Plane& plane = dst.planes[set.plane];
    Box box{};
    box.data = static_cast<unsigned char*>(plane.data) + fill.rect.y * plane.pitch +
               std::ptrdiff_t(fill.rect.x) * set.channels * format.sample_bytes();
    box.pitch = plane.pitch;
    box.width = fill.rect.width;
    box.rows = fill.rect.height;
    box.channels = set.channels;
    for (int c = 0; c < set.channels; ++c) {
      if (set.roles[c] == Role::other) continue;
      box.own |= 1 << c;
      box.words[c] = std::uint16_t(values[std::size_t(set.roles[c])] << format.shift);
    }
    return box;
  }

  const Schedule schedule_;
  // Kernels; null if they do not run:
  const void* const compare_;
  const void* const open_;
  const void* const restart_;
  const void* const light_;
  const void* const change_;
  const void* const box_;
  cuda::DeviceMemory kept_, bits_;
  cuda::HostMemory records_;
  std::vector<int> first_x_;           ///< the cell of slot 0 of the tiles of a row
  KernelParams params_, open_params_;  ///< of the analysis, and of open_
  Image small_, small_difference_;     ///< at the size of the analysis
  unsigned char *foreground_ = nullptr, *model_ = nullptr;
};

}  // namespace

Result<std::unique_ptr<Diff>> make_cuda(Plan plan) {
  auto made = std::make_unique<CudaDiff>(std::move(plan));
  if (Status status = made->prepare(); !status.ok()) return status;
  return std::unique_ptr<Diff>(std::move(made));
}

}  // namespace cudavision::diff
