// SPDX-License-Identifier: LGPL-2.1-or-later
#include <atomic>
#include <numeric>
#include <opencv2/imgproc.hpp>

#include "kernels/cpu/threads.hpp"
#include "kernels/diff/cpu_adaptive.hpp"
#include "kernels/diff/cpu_adaptive_outline.hpp"
#include "kernels/diff/cpu_stages.hpp"
#include "kernels/diff/sequence.hpp"

namespace cudavision::diff {
namespace {

/// Rows of a strip: few enough for the cache, and an even number for subsampled chroma.
constexpr int strip_rows = 32;

/// The team of camera.hpp.
struct OneThread {
  bool first() const { return true; }
  void wait() const {}
  template <typename Work>
  void each(int across, int down, Work work) const {
    for (int j = 0; j < down; ++j)
      for (int i = 0; i < across; ++i) work(i, j);
  }
  void add(std::uint32_t& to, std::uint32_t value) const { to += value; }
  camera::Sums sum(const camera::Sums& own) const { return own; }
};

class CpuDiff final : public Sequence {
 public:
  explicit CpuDiff(Plan plan) : Sequence(std::move(plan), Backend::cpu), sets_(this->plan()) {
    const Params& params = this->plan().params;
    const FrameLayout layout = frame_layout(this->plan());
    ring_.resize(std::size_t(ring_size(params)));
    for (Image& image : ring_) {
      memory_.emplace_back(layout.bytes);
      image = layout.at(analysis(), memory_.back().data());
    }
    if (this->plan().scales()) {
      small_memory_.resize(2 * layout.bytes);
      small_ = layout.at(analysis(), small_memory_.data());
      small_difference_ = layout.at(analysis(), small_memory_.data() + layout.bytes);
    }
    if (this->plan().has_mixture())
      model_.resize(mog2::row_state_bytes(analysis().width, analysis().height, compared_channels(this->plan())));
    else if (this->plan().has_adaptive())
      model_.resize(adaptive::state_bytes(analysis().width, analysis().height, adaptive::cpu_places) + 64);
    changed_.create(analysis().height, analysis().width, CV_8U);
    results_.resize(std::size_t(params.in_flight));
  }

  void steer(const std::vector<Learning>& cells) override { learning_ = cells; }

 private:
  struct Slot {
    FrameCounts found;
    std::vector<std::uint32_t> cells;
    std::vector<CellLooks> looks;
  };

  const Geometry& analysis() const { return plan().analysis; }

  /// nanoseconds: the approximate time per pixel.
  template <typename Work>
  void for_strips(const Geometry& picture, double nanoseconds, Work work) const {
    const int strips = (picture.height + strip_rows - 1) / strip_rows;
    const double pixels = double(picture.width) * picture.height;
    // Showing the mask of an adaptive background takes little time compared with finding it.
    const bool shows = !plan().has_adaptive() && (plan().shows_mask() || plan().params.output == Output::difference);
    const cpu::Work size = shows ? cpu::picture_work(pixels, nanoseconds) : cpu::analysis_work(pixels, nanoseconds);
    cpu::for_ranges(strips, size, [&](int begin, int end) {
      for (int strip = begin; strip < end; ++strip)
        work(strip * strip_rows, std::min((strip + 1) * strip_rows, picture.height));
    });
  }

  bool swap_reference(Sequence& other) override {
    auto* const previous = dynamic_cast<CpuDiff*>(&other);
    if (!previous) return false;
    memory_.swap(previous->memory_);
    sets_.swap_background(previous->sets_);
    model_.swap(previous->model_);
    std::swap(began_, previous->began_);
    std::swap(watch_, previous->watch_);
    return true;
  }

  Status compute(const Frame& given, Queue) override {
    const Params& params = plan().params;
    const bool writes_difference = params.output == Output::difference;
    Frame frame = given;
    if (plan().scales()) {
      if (plan().compares_samples()) sets_.shrink_frame(given.src, small_);
      frame.src = small_;
      frame.dst = small_difference_;
    }
    if (frame.number == 0) began_ = 0, watch_ = {};
    if (plan().keeps_previous() && frame.number < began_ + std::uint64_t(params.interval)) frame.compared = false;
    const bool is_adaptive = plan().has_adaptive();
    const std::uint64_t of_adaptive =
        is_adaptive ? steps_.update(adaptive_work(frame), bytes(), began_, sets_.unmasked(), changed_) : 0;
    std::atomic<std::uint64_t> sum{0};
    if (plan().has_mixture())
      update_mixture(frame, !frame.compared,
                     [&](int begin, int end) { sum += sets_.compare(frame, begin, end, changed_); });
    else if (plan().compares_samples())
      for_strips(analysis(), sets_.time_of_pixel(),
                 [&](int begin, int end) { sum += sets_.compare(frame, begin, end, changed_); });
    if (is_adaptive) sum = of_adaptive;
    Slot& slot = results_[std::size_t(frame.slot)];
    slot.found.compared = frame.compared;
    slot.found.sum = sum;
    find_cause(frame, slot.found);
    if (slot.found.cause != Cause::none) changed_.setTo(0);
    if (params.open_radius > 0 && frame.compared) {
      const int side = 2 * params.open_radius + 1;
      cv::morphologyEx(changed_, opened_, cv::MORPH_OPEN, cv::getStructuringElement(cv::MORPH_RECT, {side, side}));
    } else {
      opened_ = changed_;
    }
    const bool counts_small = params.cell_size % params.analysis_scale == 0;
    const bool enlarges = plan().shows_mask() && !plan().completes();
    mask_ = opened_;
    if (plan().scales() && (enlarges || !counts_small))
      mask_ = enlarged(opened_, params.analysis_scale, {geometry().width, geometry().height});
    counts_small ? count(opened_, params.analysis_scale, plan().cells, slot.cells)
                 : count(mask_, 1, plan().cells, slot.cells);
    if (plan().completes()) complete_mask(frame, given.dst);
    if (plan().shows_mask())
      for_strips(geometry(), 0.5, [&](int begin, int end) { sets_.show_changed(given, mask_, begin, end); });
    if (plan().measures_looks()) {
      LooksJob looks = looks_job(plan(), given);
      if (is_adaptive && frame.compared) looks.structure = structure_job(adaptive_work(frame));
      measure_looks(looks, bytes(), opened_, plan().cells, slot.cells, slot.looks);
    }
    if (plan().scales() && writes_difference) sets_.enlarge_difference(small_difference_, given);
    return {};
  }

  /// Sets mask_ to the form of opened_ that is shown, or writes it to mask_plane(), and mask_ is empty.
  void complete_mask(const Frame& frame, const Image& dst) {
    opened_.copyTo(filled_);
    filler_.fill(plan().reach(), sets_.unmasked(), filled_);
    mask_ = filled_;
    if (!plan().scales()) return;
    mask_ = sets_.mask_plane(dst);
    const bool writes = !mask_.empty();
    const MaskBytes shown = writes ? sets_.mask_bytes() : MaskBytes();
    if (writes)
      enlarge_mask(filled_, plan().params.analysis_scale, shown, mask_);
    else
      mask_ = enlarged(filled_, plan().params.analysis_scale, {geometry().width, geometry().height});
    adaptive::refine_outline(adaptive_work(frame), bytes(), filled_, sets_.unmasked(), shown, mask_);
    if (writes) mask_.release();
  }

  /// Determines why many pixels changed. Restarts the reference if necessary.
  void find_cause(const Frame& frame, FrameCounts& found) {
    found.cause = Cause::none;
    found.moved_x = found.moved_y = 0;
    if (!plan().detects_light() || !frame.compared) {
      watch_ = {};
      return;
    }
    const auto above = std::uint32_t(cv::countNonZero(changed_));
    if (!plan().has_adaptive()) {
      if (above <= plan().light_limit) return;
      found.cause = Cause::light;
      return begin_anew(frame);
    }
    const adaptive::Job job = adaptive_work(frame);
    OneThread team;
    camera::Scratch scratch;
    scratch.profiles = job.profiles;
    const camera::Decision why = camera::decide(
        team, watch_, began_, camera_rule(plan(), frame), above, structure_job(job), scratch,
        [this](int x, int y) { return changed_.ptr(y)[x] != 0; },
        [&](int x, int y) { return applies(Learning::hold, job.learning.at(x, y)); });
    found.cause = why.cause, found.moved_x = why.x, found.moved_y = why.y;
    if (!why.begins) return;
    adaptive::Relight light{};
    adaptive::RelightSums sums;
    if (why.kept) adaptive::measure(team, job, why.kept, sums, light);
    adaptive::begin_anew(job, why, light);
    begin_anew(frame);
  }

  /// Restarts the reference with this frame, unless it is adaptive.
  void begin_anew(const Frame& frame) {
    began_ = frame.number;
    if (plan().has_mixture()) update_mixture(frame, true, [](int, int) {});
    sets_.restart(frame.src, plan().keeps_first() ? &ring_[0] : nullptr);
  }

  bool bytes() const { return info(geometry().format).sample_bytes() == 1; }

  adaptive::Job adaptive_work(const Frame& frame) {
    adaptive::Job job = adaptive_job(plan(), frame);
    const auto aligned = (reinterpret_cast<std::uintptr_t>(model_.data()) + 63) / 64 * 64;
    adaptive::set_state(job, reinterpret_cast<void*>(aligned), adaptive::cpu_places);
    if (!learning_.empty()) job.learning = learning_map(plan(), learning_.data());
    return job;
  }

  /// Calls then(begin, end) for each strip of rows while the strip is in the cache.
  template <typename Then>
  void update_mixture(const Frame& frame, bool begin, Then then) {
    mog2::Job job = mixture_job(plan(), frame);
    job.begin = begin;
    const mog2::Rates rates = mog2::rates_of(job, began_);
    for_strips(analysis(), 10 + sets_.time_of_pixel(), [&](int from, int to) {
      mog2::update_rows(job, rates, bytes(), compared_channels(plan()), model_.data(), from, to, changed_);
      then(from, to);
    });
  }

  FrameCounts collect(int slot, std::vector<std::uint32_t>& changed) const override {
    changed = results_[std::size_t(slot)].cells;
    FrameCounts found = results_[std::size_t(slot)].found;
    found.changed = std::accumulate(changed.begin(), changed.end(), std::uint64_t(0));
    return found;
  }

  void collect_looks(int slot, std::vector<CellLooks>& looks) const override {
    const Slot& from = results_[std::size_t(slot)];
    for (std::size_t i = 0; i < looks.size(); ++i)
      if (from.cells[i] > 0) looks[i] = from.looks[i];
  }

  Status fill(const Image& dst, const std::vector<Fill>& fills, Queue) override {
    sets_.fill(dst, fills);
    return {};
  }

  FrameSets sets_;
  std::vector<std::vector<unsigned char>> memory_;  ///< memory of the ring
  std::vector<unsigned char> small_memory_;
  Image small_, small_difference_;  ///< at the size of the analysis, in small_memory_
  std::vector<unsigned char> model_;
  adaptive::CpuSteps steps_;
  Filler filler_;
  cv::Mat changed_, opened_, filled_;  ///< masks of the analysis
  cv::Mat mask_;  ///< the shown mask: the opened mask at the size of the frame; see Plan::completes()
  std::vector<Slot> results_;
  std::vector<Learning> learning_;  ///< see steer()
  std::uint64_t began_ = 0;         ///< the number of the frame with which the reference began
  camera::Watch watch_{};
};

}  // namespace

Result<std::unique_ptr<Diff>> make_cpu(Plan plan) {
  return std::unique_ptr<Diff>(std::make_unique<CpuDiff>(std::move(plan)));
}

}  // namespace cudavision::diff
