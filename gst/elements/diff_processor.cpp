// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gst/elements/diff_processor.hpp"

#include <utility>

#include "gst/elements/diff_messages.hpp"
#include "gst/elements/diff_metas.hpp"

namespace cudavision {
namespace {

/// Finds when motion begins and ends. Times are running times in ns.
struct Motion {
  bool on = false;
  guint frames = 0;                           ///< consecutive frames with motion
  GstClockTime still = 0;                     ///< time since the last frame with motion
  GstClockTime last = GST_CLOCK_TIME_NONE;    ///< running time of the last frame
  GstClockTime unsaid = GST_CLOCK_TIME_NONE;  ///< time since the last message; NONE: no message yet

  /// Goes on to the next frame. `step` is the duration of frames without times. Returns the event of the message.
  const char* advance(bool moves, const FrameTimes& times, GstClockTime step, const MotionSettings& settings) {
    const GstClockTime now = times.running_time;
    if (GST_CLOCK_TIME_IS_VALID(now) && GST_CLOCK_TIME_IS_VALID(last) && now >= last) step = now - last;
    last = now;
    if (GST_CLOCK_TIME_IS_VALID(unsaid)) unsaid += step;
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

class DiffProcessor : public Processor {
 public:
  DiffProcessor(std::unique_ptr<diff::Diff> diff, const MotionSettings& settings, const GstVideoInfo& video)
      : diff_(std::move(diff)), settings_(settings) {
    const int rate_n = GST_VIDEO_INFO_FPS_N(&video), rate_d = GST_VIDEO_INFO_FPS_D(&video);
    frame_duration_ = rate_n > 0 ? gst_util_uint64_scale(GST_SECOND, guint64(rate_d), guint64(rate_n)) : GST_SECOND / 25;
  }

  /// Takes over the reference, if possible, and the state of motion.
  void continue_from(DiffProcessor& previous) {
    diff_->continue_from(*previous.diff_);
    motion_ = previous.motion_;
    found_ = std::move(previous.found_);
  }

  bool passes_through() const override { return output() == diff::Output::none; }
  bool adds_metas() const override { return settings_.attach_roi; }
  bool reads_results() const override { return output() != diff::Output::overlay; }  // then submit() has read them
  int results_kept() const override { return results_in_flight; }

  Status submit(const FrameJob& job) override {
    Status status = diff_->submit(job.src, job.dst ? *job.dst : Image{}, job.queue);
    tickets_[job.number % results_in_flight] = diff_->ticket();
    if (!status.ok() || output() != diff::Output::overlay) return status;
    if (status = job.wait(); !status.ok()) return status;
    measure(job.number);
    return diff_->draw_boxes(*job.dst, found_.regions.kept, job.queue);
  }

  void finished(const FrameReport& report) override {
    if (output() != diff::Output::overlay) measure(report.number);
    found_.times = report.times;
    if (settings_.attach_roi) attach_rois(report.buffer, found_.regions.kept);
    const bool was_on = motion_.on;
    const char* event = motion_.advance(found_.moves, report.times, frame_duration_, settings_);
    publish(report.element, was_on);
    if (motion_.on != was_on || !(motion_.unsaid < settings_.message_interval)) post(report.element, event);
  }

  void interrupted(Interruption, GstElement* element) override {
    diff_->reset();
    const bool was_on = std::exchange(motion_, {}).on;
    if (!was_on) return;
    publish(element, was_on);
    post(element, "end");
    motion_ = {};
  }

 private:
  diff::Output output() const { return diff::Output(settings_.output); }

  /// Reads the result of the frame with this number from the plan.
  void measure(std::uint64_t number) {
    const diff::FrameResult result = diff_->result(tickets_[number % results_in_flight]);
    found_ = {{}, false, result.changed_ratio, result.mean_difference, {}};
    if (result.changed > 0) found_.regions = diff::find_regions(result.cells, settings_.regions());
    found_.moves = !found_.regions.kept.empty() && result.changed_ratio >= settings_.motion_threshold;
  }

  void publish(GstElement* element, bool was_on) const {
    publish_readings(element, {found_.changed_ratio, motion_.on});
    if (motion_.on != was_on) g_object_notify(G_OBJECT(element), "motion");
  }

  void post(GstElement* element, const char* event) {
    motion_.unsaid = 0;
    if (!settings_.post_messages) return;
    post_message(element, motion_message(found_, event));
  }

  const std::unique_ptr<diff::Diff> diff_;
  const MotionSettings settings_;
  GstClockTime frame_duration_;
  Motion motion_;
  Finding found_;                                  ///< the result for the last frame that was reported
  std::uint64_t tickets_[results_in_flight] = {};  ///< of the last frames, by their numbers
};

}  // namespace

std::unique_ptr<Processor> diff_processor(std::unique_ptr<diff::Diff> diff, const MotionSettings& settings,
                                          const GstVideoInfo& video, Processor* previous) {
  auto processor = std::make_unique<DiffProcessor>(std::move(diff), settings, video);
  if (previous) processor->continue_from(static_cast<DiffProcessor&>(*previous));
  return processor;
}

}  // namespace cudavision
