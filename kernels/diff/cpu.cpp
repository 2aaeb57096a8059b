// SPDX-License-Identifier: LGPL-2.1-or-later
#include <atomic>
#include <cstring>
#include <numeric>
#include <opencv2/imgproc.hpp>
#include <optional>

#include "kernels/cpu/filter.hpp"
#include "kernels/diff/cpu_adaptive.hpp"
#include "kernels/diff/cpu_adaptive_outline.hpp"
#include "kernels/diff/cpu_camera.hpp"
#include "kernels/diff/cpu_compare.hpp"
#include "kernels/diff/cpu_enclosed.hpp"
#include "kernels/diff/cpu_looks.hpp"
#include "kernels/diff/cpu_masks.hpp"
#include "kernels/diff/cpu_mog2.hpp"
#include "kernels/diff/cpu_samples.hpp"
#include "kernels/diff/cpu_scale.hpp"
#include "kernels/diff/sequence.hpp"

namespace cudavision::diff {
namespace {

/// Rows of a strip: few enough for the cache, and even for subsampled chroma.
constexpr int strip_rows = 32;

class CpuDiff final : public Sequence {
 public:
  explicit CpuDiff(Plan plan) : Sequence(std::move(plan), Backend::cpu) {
    const FormatInfo& format = info(geometry().format);
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
    const int type = format.sample_bytes() == 1 ? CV_16U : CV_32S;
    for (int i = 0; i < format.set_count; ++i) {
      const ChannelSet& set = format.sets[i];
      access_[i] = cpu::SetAccess(format, set, Border::replicate, {}, false);
      for (int c = 0; c < access_[i].channels(); ++c)
        if (this->plan().compares(role(i, c))) compared_channels_[i].push_back(c);
      compared_[i] = !compared_channels_[i].empty();
      white_[i] = scalar(set, white_values(format));
      black_[i] = scalar(set, black_values(format));
      tint_[i] = scalar(set, tint_values(format));
      const Rect grid = analysis().grid(set);
      if (this->plan().has_background() && compared_[i])
        background_[i].create(grid.height, grid.width, CV_MAKETYPE(type, access_[i].channels()));
    }
    if (!this->plan().masked.empty()) {
      cv::Mat unmasked(analysis().height, analysis().width, CV_8U, cv::Scalar(255));
      for (const Rect& rect : this->plan().masked) unmasked(cpu::cv_rect(rect)).setTo(0);
      for (int i = 0; i < format.set_count; ++i)
        unmasked_[i] = any_of(unmasked, format.sets[i].shift_x, format.sets[i].shift_y);
    }
    if (this->plan().has_mixture())
      model_.resize(mog2::row_state_bytes(analysis().width, analysis().height, compared_channels(this->plan())));
    else if (this->plan().has_adaptive())
      model_.resize(adaptive::state_bytes(analysis().width, analysis().height, adaptive::cpu_places) + 64);
    if (ByteRows::fit(this->plan()) && !this->plan().drops_shadows()) bytes_.emplace(this->plan());
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

  /// The role of channel `value` of a set's values.
  Role role(int index, int value) const {
    return info(geometry().format).sets[index].roles[access_[index].stored_channel(value)];
  }
  cv::Scalar scalar(const ChannelSet& set, const RoleValues& values) const {
    cv::Scalar result;
    for (int c = 0, at = 0; c < set.channels; ++c)
      if (set.roles[c] != Role::other) result[at++] = values[std::size_t(set.roles[c])];
    return result;
  }

  /// The rows begin … end of a picture, on the grid of a set.
  static cv::Rect strip_of(const Geometry& picture, int index, int begin, int end) {
    const ChannelSet& set = info(picture.format).sets[index];
    const int from = begin >> set.shift_y, to = subsampled(end, set.shift_y);
    return {0, from, picture.grid(set).width, to - from};
  }

  template <typename Work>
  static void for_strips(const Geometry& picture, Work work) {
    const int strips = (picture.height + strip_rows - 1) / strip_rows;
    cv::parallel_for_({0, strips}, [&](const cv::Range& range) {
      for (int strip = range.start; strip < range.end; ++strip)
        work(strip * strip_rows, std::min((strip + 1) * strip_rows, picture.height));
    });
  }

  cv::Mat values(int index, const Image& image, const cv::Rect& rect, cpu::Scratch& scratch) const {
    const cv::Mat frame = cpu::set_mat(image, info(geometry().format).sets[index]);
    return access_[index].read(frame, {rect.x, rect.y, rect.width, rect.height}, scratch);
  }

  bool swap_reference(Sequence& other) override {
    auto* const previous = dynamic_cast<CpuDiff*>(&other);
    if (!previous) return false;
    memory_.swap(previous->memory_);
    background_.swap(previous->background_);
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
      if (plan().compares_samples()) shrink_frame(given);
      frame.src = small_;
      frame.dst = small_difference_;
    }
    if (frame.number == 0) began_ = 0, watch_ = {};
    if (plan().keeps_previous() && frame.number < began_ + std::uint64_t(params.interval)) frame.compared = false;
    const bool is_adaptive = plan().has_adaptive();
    const std::uint64_t of_adaptive =
        is_adaptive ? steps_.update(adaptive_work(frame), bytes(), began_, unmasked_[0], changed_) : 0;
    std::atomic<std::uint64_t> sum{0};
    if (plan().has_mixture())
      update_mixture(frame, !frame.compared, [&](int begin, int end) { sum += compare(frame, begin, end); });
    else if (plan().compares_samples())
      for_strips(analysis(), [&](int begin, int end) { sum += compare(frame, begin, end); });
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
    if (plan().completes()) complete_mask(frame);
    if (plan().shows_mask()) for_strips(geometry(), [&](int begin, int end) { show_changed(given, begin, end); });
    if (plan().measures_looks()) {
      LooksJob looks = looks_job(plan(), given);
      if (is_adaptive && frame.compared) looks.structure = structure_job(adaptive_work(frame));
      measure_looks(looks, bytes(), opened_, plan().cells, slot.cells, slot.looks);
    }
    if (plan().scales() && writes_difference) enlarge_difference(given);
    return {};
  }

  /// Sets mask_ to the shown form of opened_.
  void complete_mask(const Frame& frame) {
    opened_.copyTo(filled_);
    filler_.fill(plan().reach(), unmasked_[0], filled_);
    mask_ = filled_;
    if (!plan().scales()) return;
    mask_ = enlarged(filled_, plan().params.analysis_scale, {geometry().width, geometry().height});
    adaptive::refine_outline(adaptive_work(frame), bytes(), filled_, unmasked_[0], mask_);
  }

  /// Sets small_ to the frame at the size of the analysis. Only compared sets are needed.
  void shrink_frame(const Frame& frame) {
    for (int i = 0; i < info(geometry().format).set_count; ++i) {
      if (!compared_[i]) continue;
      const ChannelSet& set = info(geometry().format).sets[i];
      const Rect grid = geometry().grid(set);
      cpu::Scratch scratch, small_scratch;
      cv::Mat out = cpu::set_mat(small_, set), small = access_[i].target(out, small_scratch);
      shrink(values(i, frame.src, {0, 0, grid.width, grid.height}, scratch), plan().params.analysis_scale, small);
      access_[i].write(small, out, out);
    }
  }

  /// Shows small_difference_ in the frame.
  void enlarge_difference(const Frame& frame) {
    for (int i = 0; i < info(geometry().format).set_count; ++i) {
      const ChannelSet& set = info(geometry().format).sets[i];
      const Rect grid = geometry().grid(set), small = analysis().grid(set);
      const cv::Mat in = cpu::set_mat(frame.src, set);
      cv::Mat out = cpu::set_mat(frame.dst, set);
      cpu::Scratch scratch, small_scratch;
      cv::Mat shown = access_[i].target(out, scratch);
      if (compared_[i])
        enlarged(values(i, small_difference_, {0, 0, small.width, small.height}, small_scratch),
                 plan().params.analysis_scale, {grid.width, grid.height})
            .copyTo(shown);
      else
        shown.setTo(black_[i]);
      access_[i].write(shown, in, out);
    }
  }

  /// Finds why many pixels changed. Restarts the reference if necessary.
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
      return begin_anew(frame, 0);
    }
    const adaptive::Job job = adaptive_work(frame);
    OneThread team;
    camera::Scratch scratch;
    scratch.profiles = job.profiles;
    const camera::Decision why =
        camera::decide(team, watch_, began_, camera_rule(plan(), frame), above, structure_job(job), scratch,
                       [this](int x, int y) { return changed_.ptr(y)[x] != 0; });
    found.cause = why.cause, found.moved_x = why.x, found.moved_y = why.y;
    if (why.begins) begin_anew(frame, why.kept);
  }

  /// Restarts the reference with this frame. kept: see camera::Decision.
  void begin_anew(const Frame& frame, std::uint64_t kept) {
    began_ = frame.number;
    if (plan().has_mixture()) update_mixture(frame, true, [](int, int) {});
    if (plan().has_adaptive()) adaptive::begin_anew(adaptive_work(frame), kept);
    for (int i = 0; i < info(geometry().format).set_count; ++i) {
      if (!compared_[i]) continue;
      const ChannelSet& set = info(geometry().format).sets[i];
      const cv::Mat src = cpu::set_mat(frame.src, set);
      if (plan().keeps_first() && ring_[0].planes[set.plane].data) access_[i].copy(src, cpu::set_mat(ring_[0], set));
      if (background_[i].empty()) continue;
      cpu::Scratch scratch;
      const cv::Mat v = values(i, frame.src, {0, 0, src.cols, src.rows}, scratch);
      cv::Mat was(v.size(), v.type());
      step_background(v, background_[i], was, true, plan().follow);
    }
  }

  bool bytes() const { return info(geometry().format).sample_bytes() == 1; }

  adaptive::Job adaptive_work(const Frame& frame) {
    adaptive::Job job = adaptive_job(plan(), frame);
    const auto aligned = (reinterpret_cast<std::uintptr_t>(model_.data()) + 63) / 64 * 64;
    adaptive::set_state(job, reinterpret_cast<void*>(aligned), adaptive::cpu_places);
    if (!learning_.empty()) job.learning = learning_map(plan(), learning_.data());
    return job;
  }

  /// Calls then(begin, end) for each strip of rows while it is in the cache.
  template <typename Then>
  void update_mixture(const Frame& frame, bool begin, Then then) {
    mog2::Job job = mixture_job(plan(), frame);
    job.begin = begin;
    const mog2::Rates rates = mog2::rates_of(job, began_);
    for_strips(analysis(), [&](int from, int to) {
      mog2::update_rows(job, rates, bytes(), compared_channels(plan()), model_.data(), from, to, changed_);
      then(from, to);
    });
  }

  /// Compares a strip: fills changed_, shows the differences if requested, and keeps the frame. Returns the sum of the
  /// pixels' differences.
  std::uint64_t compare(const Frame& frame, int begin, int end) {
    if (bytes_ && frame.compared) return bytes_->compare(frame, begin, end, unmasked_[0], changed_);
    const FormatInfo& format = info(geometry().format);
    const Params& params = plan().params;
    cpu::Scratch scratch[max_sets], reference_scratch[max_sets];
    cv::Mat v[max_sets], r[max_sets];
    for (int i = 0; i < format.set_count; ++i) {
      if (!compared_[i]) continue;
      const cv::Rect rect = strip_of(analysis(), i, begin, end);
      v[i] = r[i] = values(i, frame.src, rect, scratch[i]);
      if (plan().has_background()) {
        r[i] = cv::Mat(v[i].size(), v[i].type());
        step_background(v[i], background_[i](rect), r[i], !frame.compared, plan().follow);
      } else if (frame.compared) {
        r[i] = values(i, frame.reference, rect, reference_scratch[i]);
      }
    }
    if (plan().luma_of_rgb()) {
      const bool already = plan().has_mixture() && frame.compared;
      const cv::Mat luma = luma_of_sets(format, v, false), reference = luma_of_sets(format, r, already);
      for (int i = 0; i < format.set_count; ++i) {
        v[i] = repeated(luma, access_[i].channels());
        r[i] = repeated(reference, access_[i].channels());
      }
    }

    cv::Mat most;  // the greatest difference of the channels of each pixel
    for (int i = 0; i < format.set_count; ++i) {
      const ChannelSet& set = format.sets[i];
      const cv::Rect rect = strip_of(analysis(), i, begin, end);
      cv::Mat difference, excluded;
      if (!unmasked_[i].empty()) excluded = unmasked_[i](rect) == 0;
      if (compared_[i]) {
        cv::absdiff(v[i], r[i], difference);
        if (!excluded.empty()) difference.setTo(0, excluded);
        const cv::Mat of_set =
            at_pixels(greatest(difference, compared_channels_[i]), set, {analysis().width, end - begin});
        most = most.empty() ? of_set : cv::max(most, of_set);
      }
      if (params.output == Output::difference && (compared_[i] || !plan().scales())) {
        const cv::Mat in = cpu::set_mat(frame.src, set)(rect);
        cv::Mat out = cpu::set_mat(frame.dst, set)(rect);
        cv::Mat shown = access_[i].target(out, scratch[i]);
        const bool about_middle = is_chroma(role(i, 0)) || plan().show.mode == Mode::signed_;
        if (!compared_[i])
          shown.setTo(black_[i]);
        else if (plan().show.plain && !about_middle)
          difference.copyTo(shown);
        else
          show_difference(plan().show, v[i], r[i], shown, about_middle);
        if (!excluded.empty())
          shown.setTo(plan().show.mode == Mode::signed_ ? cv::Scalar::all(plan().show.middle) : black_[i], excluded);
        access_[i].write(shown, in, out);
      }
      if (frame.keep.planes[set.plane].data)
        access_[i].copy(cpu::set_mat(frame.src, set)(rect), cpu::set_mat(frame.keep, set)(rect));
    }
    if (!unmasked_[0].empty()) most.setTo(0, unmasked_[0].rowRange(begin, end) == 0);
    cv::Mat changed = changed_.rowRange(begin, end);
    if (!plan().has_model() || !frame.compared)
      cv::compare(most, plan().threshold, changed, cv::CMP_GT);
    else if (!unmasked_[0].empty())
      changed.setTo(0, unmasked_[0].rowRange(begin, end) == 0);
    if (plan().drops_shadows() && frame.compared)
      clear_shadows(plan().shadow, format, compared_channels_, v, r, changed);
    return std::uint64_t(cv::sum(most)[0]);
  }

  void show_changed(const Frame& frame, int begin, int end) const {
    const FormatInfo& format = info(geometry().format);
    const Params& params = plan().params;
    for (int i = 0; i < format.set_count; ++i) {
      const ChannelSet& set = format.sets[i];
      const cv::Rect rect = strip_of(geometry(), i, begin, end);
      const bool mask = params.output == Output::mask, uniform = mask && white_[i] == black_[i];  // chroma of YUV
      const cv::Mat changed = uniform ? cv::Mat() : any_of(mask_.rowRange(begin, end), set.shift_x, set.shift_y);
      const cv::Mat in = cpu::set_mat(frame.src, set)(rect);
      cv::Mat out = cpu::set_mat(frame.dst, set)(rect);
      cpu::Scratch scratch, source_scratch;
      cv::Mat shown = access_[i].target(out, scratch);
      if (uniform) {
        shown.setTo(black_[i]);
      } else if (mask && shown.type() == CV_8UC1) {
        show_mask(changed, uchar(black_[i][0]), uchar(white_[i][0]), shown);
      } else if (mask) {
        shown.setTo(black_[i]);
        shown.setTo(white_[i], changed);
      } else {
        const cv::Mat v =
            access_[i].read(cpu::set_mat(frame.src, set), {rect.x, rect.y, rect.width, rect.height}, source_scratch);
        v.copyTo(shown);
        tint(changed, tint_[i], shown);
      }
      access_[i].write(shown, in, out);
    }
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
    const FormatInfo& format = info(geometry().format);
    const RoleValues colour = box_values(format);
    for (const Fill& one : fills) {
      const ChannelSet& set = format.sets[one.set];
      const Plane& plane = dst.planes[set.plane];
      const int bytes = format.sample_bytes();
      for (int y = one.rect.y; y < one.rect.y + one.rect.height; ++y)
        for (int x = one.rect.x; x < one.rect.x + one.rect.width; ++x)
          for (int c = 0; c < set.channels; ++c) {
            if (set.roles[c] == Role::other) continue;
            const std::uint16_t word = std::uint16_t(colour[std::size_t(set.roles[c])] << format.shift);
            // Little-endian: the first bytes of the word are its low ones.
            std::memcpy(
                static_cast<char*>(plane.data) + y * plane.pitch + (std::ptrdiff_t(x) * set.channels + c) * bytes,
                &word, std::size_t(bytes));
          }
    }
    return {};
  }

  std::array<cpu::SetAccess, max_sets> access_;
  std::array<bool, max_sets> compared_{};  ///< whether the set is compared
  std::array<std::vector<int>, max_sets> compared_channels_;
  std::array<cv::Scalar, max_sets> white_, black_, tint_;
  std::array<cv::Mat, max_sets> background_, unmasked_;  ///< by set; counted_ is empty if all pixels are counted
  std::vector<std::vector<unsigned char>> memory_;       ///< memory of the ring
  std::vector<unsigned char> small_memory_;
  Image small_, small_difference_;  ///< at the size of the analysis, in small_memory_
  std::vector<unsigned char> model_;
  adaptive::CpuSteps steps_;
  Filler filler_;
  std::optional<ByteRows> bytes_;
  cv::Mat changed_, opened_, filled_;  ///< masks of the analysis
  cv::Mat mask_;  ///< the shown mask: the opened mask in pixels of the frame, see Plan::completes()
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
