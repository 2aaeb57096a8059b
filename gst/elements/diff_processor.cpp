// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gst/elements/diff_processor.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "gst/elements/diff_messages.hpp"
#include "gst/elements/diff_objects.hpp"
#include "kernels/diff/size_limit.hpp"

namespace cudavision {
namespace {

/// Running time and stream time. They advance even if frames have no timestamps, and never go backwards.
struct Clock {
  GstClockTime now = 0, played = 0;
  GstClockTime last = GST_CLOCK_TIME_NONE;         ///< running time of the last frame
  GstClockTime last_stream = GST_CLOCK_TIME_NONE;  ///< stream time of the last frame
  int direction = 0;                               ///< of the last step of the stream time: 1 or -1; 0: unknown

  /// Advances to the next frame. Returns the running time since the last frame, or `step` if it is unknown.
  GstClockTime advance(const FrameTimes& times, GstClockTime step) {
    const GstClockTime time = times.running_time, stream = times.stream_time;
    const bool goes_on = GST_CLOCK_TIME_IS_VALID(time) && GST_CLOCK_TIME_IS_VALID(last) && time >= last;
    if (goes_on) step = time - last;
    GstClockTime stream_step = step;
    // A step against the direction of the previous step is a jump, for example where a clip is looped.
    if (goes_on && GST_CLOCK_TIME_IS_VALID(stream) && GST_CLOCK_TIME_IS_VALID(last_stream)) {
      const int way = stream > last_stream ? 1 : stream < last_stream ? -1 : direction;
      if (direction == 0 || way == direction) stream_step = MAX(stream, last_stream) - MIN(stream, last_stream);
      direction = way;
    }
    last = time;
    last_stream = stream;
    now += step;
    played += stream_step;
    return step;
  }
  /// The next frame begins a run.
  void interrupt() {
    last = last_stream = GST_CLOCK_TIME_NONE;
    direction = 0;
  }
};

/// The usual time between the frames of a stream, and whether the stream was interrupted.
class Pace {
 public:
  /// `interval`: the time between frames that the caps declare; none: the caps declare no time.
  explicit Pace(GstClockTime interval = GST_CLOCK_TIME_NONE) : declared_(interval) {}

  /// Takes over what another instance knows about the stream.
  void continue_from(const Pace& previous) {
    const GstClockTime declared = declared_;
    *this = previous;
    declared_ = declared;
  }

  /// Another stream, or another part of the stream, begins.
  void forget() { *this = Pace(declared_); }

  /// Advances to a frame. Returns whether the time since the last frame is longer than `seconds`, and longer than three
  /// times the usual time. Without the second condition, the pictures of a time-lapse would never be compared. 0
  /// seconds: never.
  bool was_away(GstClockTime time, double seconds) {
    const GstClockTime last = std::exchange(last_, time);
    if (!GST_CLOCK_TIME_IS_VALID(time) || !GST_CLOCK_TIME_IS_VALID(last) || time <= last) return false;
    const GstClockTime step = time - last, usual = usual_or(step);
    steps_[seen_++ % steps_.size()] = step;
    return seconds > 0 && double(step) > seconds * GST_SECOND && step / 3 > usual;
  }

 private:
  /// The median of the last steps. Before the first step: the interval that the caps declare or, if there is none,
  /// `step`.
  GstClockTime usual_or(GstClockTime step) const {
    if (seen_ == 0) return GST_CLOCK_TIME_IS_VALID(declared_) ? declared_ : step;
    auto sorted = steps_;
    const std::size_t count = std::min(seen_, steps_.size());
    std::sort(sorted.begin(), sorted.begin() + std::ptrdiff_t(count));
    return sorted[count / 2];
  }

  GstClockTime declared_, last_ = GST_CLOCK_TIME_NONE;  ///< last_: running time of the last frame
  std::array<GstClockTime, 5> steps_{};
  std::size_t seen_ = 0;
};

/// Finds the frames that have a message because they are the last frames of an interval. Intervals begin at multiples
/// of their length.
struct Intervals {
  /// The number of the interval in which the last due message ended; none: no message yet.
  std::optional<guint64> told;

  /// Whether a message is due with a frame: with the first frame, and with each frame after which a new interval
  /// begins. `end`: when the frame ends.
  bool due(GstClockTime end, GstClockTime length) {
    const guint64 number = length > 0 ? end / length : 0;
    return std::exchange(told, number) != number || length == 0;
  }
};

/// Finds when motion begins and ends. Times are running times in ns.
struct Motion {
  bool on = false;
  guint frames = 0;        ///< consecutive frames with motion
  GstClockTime still = 0;  ///< time since the last frame with motion
  /// Stream times of the first frame of this motion (or of consecutive frames that may become a motion), and of the
  /// last frame with motion.
  GstClockTime began = GST_CLOCK_TIME_NONE, last = GST_CLOCK_TIME_NONE;

  /// Whether the gap elapsed while no frame arrived for the time `missing`. The last frame must have had no motion.
  bool ended_unseen(GstClockTime missing, const MotionSettings& settings) const {
    return on && still > 0 && still + missing >= settings.gap * GST_SECOND;
  }

  /// Advances to the next frame, which is `step` after the last one. Returns the event of the message.
  const char* advance(bool moves, GstClockTime step, GstClockTime stream_time, const MotionSettings& settings) {
    if (moves && !on && frames == 0) began = stream_time;
    if (moves) last = stream_time;
    still = moves ? 0 : still + step;
    frames = moves ? frames + (frames < settings.min_motion_frames) : 0;
    if (on) {
      if (moves || still < settings.gap * GST_SECOND) return "motion";
      on = false;
      return "end";
    }
    on = frames >= settings.min_motion_frames;
    return on ? "begin" : "none";
  }
};

/// Finds the frames that have a message about the light or the camera. Times are as in track::Moment::now.
class CameraEvents {
 public:
  /// Advances to the next frame. Returns the event of its message; null: none.
  const char* advance(const Finding& finding, GstClockTime now) {
    using diff::Cause;
    const bool was_moving = std::exchange(moving_, finding.cause == Cause::moved);
    if (moving_ && !was_moving) x_ = y_ = 0, began_ = finding.times.stream_time;
    x_ += finding.moved_x, y_ += finding.moved_y;
    if (moving_ != was_moving) return moving_ ? "moves" : "moved";
    if (finding.cause != Cause::light) return finding.cause == Cause::scene ? "scene" : nullptr;
    const bool goes_on = lit_ && now < *lit_ + settled;
    lit_ = now;
    return goes_on ? nullptr : "light";
  }
  /// Called when the stream ends. Returns whether the camera was moving.
  bool ends() { return std::exchange(moving_, false); }
  /// Sets the fields of a `moved` message.
  void set(GstStructure* message) const {
    gst_structure_set(message, "began", G_TYPE_UINT64, began_, "x", G_TYPE_INT, x_, "y", G_TYPE_INT, y_, nullptr);
  }

 private:
  /// A change of the light within this time after another change belongs to that change, for example when a camera
  /// switches to infrared.
  static constexpr GstClockTime settled = 2 * GST_SECOND;
  bool moving_ = false;
  int x_ = 0, y_ = 0;
  GstClockTime began_ = GST_CLOCK_TIME_NONE;
  std::optional<GstClockTime> lit_;
};

class DiffProcessor : public Processor {
 public:
  DiffProcessor(std::unique_ptr<diff::Diff> diff, DiffContext context)
      : diff_(std::move(diff)),
        settings_(context.settings),
        objects_(settings_, std::move(context.places), std::move(context.counts)) {
    const int rate_n = GST_VIDEO_INFO_FPS_N(&context.video), rate_d = GST_VIDEO_INFO_FPS_D(&context.video);
    const bool has_rate = rate_n > 0 && rate_d > 0;
    frame_duration_ = has_rate ? gst_util_uint64_scale(GST_SECOND, guint64(rate_d), guint64(rate_n)) : GST_SECOND / 25;
    pace_ = Pace(has_rate ? frame_duration_ : GST_CLOCK_TIME_NONE);
    const auto frames_in = [&](GstClockTime time) {
      return unsigned(
          std::clamp<GstClockTime>(time / std::max<GstClockTime>(frame_duration_, 1), 2, results_in_flight));
    };
    const GstClockTime half_second = GST_SECOND / 2 / std::max<GstClockTime>(frame_duration_, 1);
    if (settings_.max_area < G_MAXINT) limit_.emplace(unsigned(std::max<GstClockTime>(half_second, 2)));
    takes_after_ = frames_in(120 * GST_MSECOND), holds_after_ = frames_in(900 * GST_MSECOND);
  }

  /// Takes over the state of motion, the objects and, if possible, the reference.
  void continue_from(DiffProcessor& previous) {
    diff_->continue_from(*previous.diff_);
    pace_.continue_from(previous.pace_);
    clock_ = previous.clock_;
    objects_.continue_from(previous.objects_);
    motion_ = previous.motion_;
    intervals_ = previous.intervals_;
    camera_ = previous.camera_;
    if (settings_.post_messages) sums_ = previous.sums_;
    found_ = std::move(previous.found_);
    if (limit_ && previous.limit_) limit_ = std::move(previous.limit_);
  }

  bool passes_through() const override { return output() == diff::Output::none; }
  bool adds_metas() const override { return settings_.attach_roi; }
  bool reads_results() const override { return output() != diff::Output::overlay; }  // else submit() has read them
  int results_kept() const override { return steers() ? int(takes_after_) : results_in_flight; }

  Status submit(const FrameJob& job) override {
    Submitted& frame = frames_[job.number % results_in_flight];
    frame.restarts = pace_.was_away(job.times.running_time, settings_.forget_after);
    if (frame.restarts) diff_->reset();
    if (first_ == 0 || frame.restarts) first_ = job.number;
    if (steers()) diff_->steer(learning_for(job.number));
    Status status = diff_->submit(job.src, job.dst ? *job.dst : Image{}, job.queue);
    frame.ticket = diff_->ticket();
    if (!status.ok() || output() != diff::Output::overlay) return status;
    if (status = job.wait(); !status.ok()) return status;
    measure(job.number);
    return diff_->draw_boxes(*job.dst, found_.regions.kept, job.queue);
  }

  void finished(const FrameReport& report) override {
    if (output() != diff::Output::overlay) measure(report.number);  // otherwise submit() measured it
    if (frames_[report.number % results_in_flight].restarts) as_of_last([&] { end_run(report.element); });
    found_.times = report.times;
    const GstClockTime step = clock_.advance(report.times, frame_duration_);
    moment_ = {clock_.now, report.times.stream_time, clock_.played};
    objects_.advance(found_.regions, found_.cells, moment_, found_.cause != diff::Cause::none);
    if (steers()) learning_[report.number % results_in_flight] = objects_.learning(found_.cells);
    if (settings_.attach_roi) attach_metas(report.buffer);
    const GstClockTime missing = step > frame_duration_ ? step - frame_duration_ : 0;
    if (found_.moves && motion_.ended_unseen(missing, settings_)) as_of_last([&] { end_motion(report.element); });
    const bool was_on = motion_.on;
    const char* event = motion_.advance(found_.moves, step, report.times.stream_time, settings_);
    publish(report.element, was_on);
    if (settings_.post_messages) sums_.add(found_, motion_.on);
    if (const char* said = camera_.advance(found_, clock_.now)) post_camera(report.element, said);
    const bool due = intervals_.due(end_of(report.times), settings_.message_interval);
    if (due || motion_.on != was_on) post_sums(report.element, event);
    post_objects(report.element);
  }

  /// Posts due messages immediately, as the next frame would. The clock advances only with that frame.
  void passed(GstClockTime running_time, GstElement* element) override {
    if (!GST_CLOCK_TIME_IS_VALID(clock_.last) || running_time <= clock_.last) return;
    const GstClockTime step = running_time - clock_.last;
    objects_.passed(clock_.now + step);
    if (step > frame_duration_ && motion_.ended_unseen(step - frame_duration_, settings_)) end_motion(element);
    post_objects(element);
  }

  /// If frames are missing, the scene is still the same: only time has passed.
  void interrupted(Interruption why, GstElement* element) override {
    if (why == Interruption::discont) return;
    if (why == Interruption::caps && settings_.reference == diff::Reference::first && first_ != 0)
      GST_ELEMENT_WARNING(
          element, STREAM, FORMAT,
          ("the caps changed: reference=first discards its first frame, and compares with the next one"), (nullptr));
    diff_->reset();
    if (limit_) limit_->reset();
    first_ = 0;
    pace_.forget();
    end_run(element);
  }

 private:
  /// The data of a frame between its submit() and its finished().
  struct Submitted {
    std::uint64_t ticket = 0;
    bool restarts = false;  ///< the stream was interrupted for too long: nothing before this frame counts
  };

  /// Whether objects decide what the background learns. Otherwise, the results of a frame need not be known soon.
  bool steers() const { return objects_.on() && is_adaptive(settings_); }

  /// What may be learned from a frame. Only frames of its run decide this.
  std::vector<diff::Learning> learning_for(std::uint64_t number) const {
    const auto decided = [&](unsigned before) {
      const bool is_of_run = number >= first_ + before;
      return is_of_run ? learning_[(number - before) % results_in_flight] : std::vector<diff::Learning>();
    };
    std::vector<diff::Learning> cells = decided(holds_after_), taken = decided(takes_after_);
    const std::size_t count = std::max(cells.size(), taken.size());  // empty: usual in all cells
    cells.resize(count, diff::Learning::usual), taken.resize(count, diff::Learning::usual);
    std::transform(cells.begin(), cells.end(), taken.begin(), cells.begin(), diff::taking);
    return cells;
  }

  diff::Output output() const { return settings_.output; }

  /// When a frame ends, in running time. 1/16 of its duration is added, because containers round times.
  GstClockTime end_of(const FrameTimes& times) const {
    const GstClockTime duration = GST_CLOCK_TIME_IS_VALID(times.duration) ? times.duration : frame_duration_;
    return (GST_CLOCK_TIME_IS_VALID(times.running_time) ? times.running_time + duration : clock_.now) + duration / 16;
  }

  /// Makes all objects leave and ends motion, with the results of the last frame. Frames that no message has summed up
  /// yet get a message.
  void end_run(GstElement* element) {
    clock_.interrupt();
    objects_.finish();
    post_objects(element);
    end_motion(element);
    if (camera_.ends()) post_camera(element, "moved");
    if (sums_.frames > 0) post_sums(element, "none");
    motion_ = {};
    intervals_ = {};
    camera_ = {};
  }

  void post_camera(GstElement* element, const char* event) const {
    if (!settings_.post_messages) return;
    GstStructure* message = found_message(event);
    if (std::string_view(event) == "moved") camera_.set(message);
    post(element, message);
  }

  void end_motion(GstElement* element) {
    if (!std::exchange(motion_.on, false)) return;
    publish(element, true);
    post_sums(element, "end");
  }

  /// Calls work() with the results of the frame before the current one.
  template <typename Work>
  void as_of_last(Work work) {
    std::swap(found_, before_);
    work();
    std::swap(found_, before_);
  }

  /// Reads the result of the frame with this number from the plan.
  void measure(std::uint64_t number) {
    before_ = std::move(found_);
    const diff::FrameResult& result = diff_->result(frames_[number % results_in_flight].ticket);
    found_ = {
        {}, false,       result.cause, result.moved_x, result.moved_y, result.changed_ratio, result.mean_difference,
        {}, result.cells};
    if (limit_ && (frames_[number % results_in_flight].restarts || result.cause == diff::Cause::scene ||
                   result.cause == diff::Cause::moved))
      limit_->reset();
    if (result.changed > 0 || limit_)
      found_.regions = diff::find_regions(result.cells, settings_.regions(), limit_ ? &*limit_ : nullptr);
    found_.moves = !found_.regions.kept.empty() && result.changed_ratio >= settings_.motion_threshold;
  }

  void attach_metas(GstBuffer* buffer) const {
    if (objects_.on())
      attach_objects(buffer, objects_.objects(), objects_.zones(), moment_);
    else
      attach_regions(buffer, found_.regions.kept);
  }

  void publish(GstElement* element, bool was_on) const {
    publish_readings(element, {found_.changed_ratio, motion_.on});
    if (motion_.on != was_on) g_object_notify(G_OBJECT(element), "motion");
  }

  /// (transfer full) The message about the last frame.
  GstStructure* found_message(const char* event) const {
    GstStructure* message = motion_message(found_, event);
    if (std::string_view(event) == "end")
      gst_structure_set(message, "began", G_TYPE_UINT64, motion_.began, "last-motion", G_TYPE_UINT64, motion_.last,
                        nullptr);
    return message;
  }

  void post(GstElement* element, GstStructure* message) const {
    settings_.post_messages ? post_message(element, message) : gst_structure_free(message);
  }

  /// Posts the message about the last frame, with the sums over the frames since the last message. Without an interval,
  /// each frame has a message, and there is nothing to sum up.
  void post_sums(GstElement* element, const char* event) {
    const FrameSums sums = std::exchange(sums_, {});
    if (!settings_.post_messages) return;
    GstStructure* message = found_message(event);
    if (settings_.message_interval > 0 || sums.frames > 1) sums.set(message);
    post(element, message);
  }

  void post_objects(GstElement* element) {
    for (GstStructure* message : objects_.take_messages(found_.times)) post(element, message);
  }

  const std::unique_ptr<diff::Diff> diff_;
  const MotionSettings settings_;
  GstClockTime frame_duration_;
  Clock clock_;
  track::Moment moment_;  ///< the moment of the last reported frame
  Motion motion_;
  Intervals intervals_;
  CameraEvents camera_;
  FrameSums sums_;
  Objects objects_;
  std::optional<diff::SizeLimit> limit_;  ///< if there is a largest area
  Pace pace_;                             ///< the pace of the submitted frames
  Finding found_;                         ///< the result for the last reported frame
  Finding before_;                        ///< the result for the frame before it
  Submitted frames_[results_in_flight];   ///< the last frames, indexed by their numbers
  /// What may be learned, by the number of the frame that decided it. Later frames apply it: `take` after a few frames,
  /// so that ghosts end soon, and the rest after more frames. The results of a frame are then known with every
  /// async-depth, so the same frames always give the same results.
  std::vector<diff::Learning> learning_[results_in_flight];
  unsigned takes_after_ = 2, holds_after_ = 2;
  std::uint64_t first_ = 0;  ///< the number of the first frame of the run; 0: none yet
};

}  // namespace

std::unique_ptr<Processor> diff_processor(std::unique_ptr<diff::Diff> diff, DiffContext context) {
  Processor* const previous = context.previous;
  auto processor = std::make_unique<DiffProcessor>(std::move(diff), std::move(context));
  if (previous) processor->continue_from(static_cast<DiffProcessor&>(*previous));
  return processor;
}

}  // namespace cudavision
