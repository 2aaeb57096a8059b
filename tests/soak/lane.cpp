// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tests/soak/lane.hpp"

#include <algorithm>
#include <chrono>
#include <sstream>
#include <stdexcept>
#include <thread>
#include <utility>

#include "tests/soak/late_caps.hpp"
#include "tests/soak/reference.hpp"
#include "tests/streams/plugin.hpp"

namespace cudavision::soak {
namespace {

void sleep_ms(int milliseconds) { std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds)); }

}  // namespace

Lane::Lane(const std::string& name, std::uint64_t seed, const Options& options)
    : options_(options),
      random_(seed),
      report_(name + (options.twin ? " without our elements" : ""), seed, options.number, options.journal) {}

Lane::~Lane() = default;

void Lane::launch(const std::string& text) {
  g_autoptr(GError) error = nullptr;
  pipeline_.reset(gst_parse_launch(text.c_str(), &error));
  if (error) g_error("%s: %s", text.c_str(), error->message);
  g_autoptr(GstBus) bus = gst_element_get_bus(pipeline());
  gst_bus_set_sync_handler(bus, message, this, nullptr);
}

GstElement* Lane::find(const std::string& name) const {
  g_autoptr(GstElement) element = gst_bin_get_by_name(GST_BIN(pipeline()), name.c_str());
  return element;
}

void Lane::add_probe(GstElement* element, const char* name, GstPadProbeCallback probe, gpointer data) {
  constexpr int types =
      GST_PAD_PROBE_TYPE_BUFFER | GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM | GST_PAD_PROBE_TYPE_EVENT_FLUSH;
  g_autoptr(GstPad) pad = gst_element_get_static_pad(element, name);
  gst_pad_add_probe(pad, GstPadProbeType(types), probe, data, nullptr);
}

void Lane::watch(GstElement* sink, Arrivals& arrivals) {
  arrivals.lane_ = this;
  add_probe(sink, "sink", came, &arrivals);
}

GstPadProbeReturn Lane::came(GstPad* pad, GstPadProbeInfo* info, gpointer data) {
  Arrivals& arrivals = *static_cast<Arrivals*>(data);
  if (info->type & GST_PAD_PROBE_TYPE_BUFFER) {
    GstBuffer* buffer = GST_PAD_PROBE_INFO_BUFFER(info);
    g_autoptr(GstCaps) caps = gst_pad_get_current_caps(pad);
    GstVideoInfo video;
    if (!caps || !gst_video_info_from_caps(&video, caps))
      arrivals.lane_->report_.fail("a frame came out without caps");
    else
      arrivals.arrive(buffer, video,
                      gst_segment_to_running_time(&arrivals.segment_, GST_FORMAT_TIME, GST_BUFFER_PTS(buffer)));
  } else {
    GstEvent* event = GST_PAD_PROBE_INFO_EVENT(info);
    if (GST_EVENT_TYPE(event) == GST_EVENT_SEGMENT) gst_event_copy_segment(event, &arrivals.segment_);
    arrivals.arrive(GST_EVENT_TYPE(event));
  }
  return GST_PAD_PROBE_OK;
}

GstBusSyncReply Lane::message(GstBus*, GstMessage* message, gpointer data) {
  Lane& self = *static_cast<Lane*>(data);
  const GstMessageType type = GST_MESSAGE_TYPE(message);
  streams::share_context(message);
  const bool interrupted = self.interrupted_;
  if (type == GST_MESSAGE_ERROR && interrupted) self.erred_ = true;
  if (!interrupted && warns_of_late_caps(message)) {
    ++self.late_caps_;
    self.report_.note('#', std::string("GStreamer has kept new caps from ") + GST_MESSAGE_SRC_NAME(message));
  } else if ((type == GST_MESSAGE_ERROR || type == GST_MESSAGE_WARNING) && !interrupted) {
    g_autoptr(GError) error = nullptr;
    g_autofree gchar* details = nullptr;
    (type == GST_MESSAGE_ERROR ? gst_message_parse_error : gst_message_parse_warning)(message, &error, &details);
    const bool expected = g_str_has_prefix(error->message, "the caps changed: ");  // the lane changed them
    if (!expected)
      self.report_.fail(std::string(type == GST_MESSAGE_ERROR ? "error of " : "warning of ") +
                        GST_MESSAGE_SRC_NAME(message) + ": " + error->message + " (" + (details ? details : "") + ")");
  }
  gst_message_unref(message);
  return GST_BUS_DROP;
}

void Lane::reach(GstState state) {
  const char* name = gst_element_state_get_name(state);
  if (gst_element_set_state(pipeline(), state) == GST_STATE_CHANGE_FAILURE)
    return report_.fail(std::string("no change to ") + name);
  settle(state);
}

void Lane::settle(GstState state) {
  bool may_be_stuck = std::exchange(flushed_twice_, false) && state == GST_STATE_PLAYING;
  if (erred_.exchange(false)) {  // otherwise the pipeline would not follow the next flush
    report_.act(std::string(gst_element_state_get_name(state)) + " once more, because of an error");
    if (gst_element_set_state(pipeline(), state) == GST_STATE_CHANGE_FAILURE) return fail_state(state, "cannot become");
  }
  const double begin = fair_time();
  for (;;) {
    // Also examines the elements: if a bin is set to its current state, it reports SUCCESS while its sink is still
    // changing.
    const bool waits = gst_element_get_state(pipeline(), nullptr, nullptr, GST_SECOND / 5) == GST_STATE_CHANGE_ASYNC;
    bool rests = is_resting(pipeline());  // asked first, because the last change may end at this moment,
    const std::string other = element_not_in(pipeline(), state);
    rests = rests && is_resting(pipeline());  // and again, because another one may begin
    if (!waits && other.empty()) return report_.note('=', gst_element_state_get_name(state));
    if (!waits && rests) {
      if (!std::exchange(may_be_stuck, false)) return fail_state(state, "does not become");
      ++times_freed_;
      report_.act("PLAYING once more, because of " + other);
      gst_element_set_state(pipeline(), state);
    }
    if (fair_time() - begin > options_.patience) return fail_state(state, "does not become, in time,");
    if (!waits) sleep_ms(1);
  }
}

void Lane::fail_state(GstState state, const char* what) {
  report_.fail(std::string("the state of each element ") + what + ' ' + gst_element_state_get_name(state) + '\n' +
               states());
}

void Lane::add_memory_filter(GstElement* filter, const std::string& fields) {
  memory_filters_.emplace_back(filter, fields);
}

void Lane::change_memory(std::size_t filter, bool cuda) {
  const auto& [element, fields] = memory_filters_[filter];
  const std::string memory = cuda ? "video/x-raw(memory:CUDAMemory)" : "video/x-raw";
  report_.act(std::string(GST_OBJECT_NAME(element)) + ": " + memory);
  gst_util_set_object_arg(G_OBJECT(element), "caps", (memory + fields).c_str());
}

void Lane::turn(GstElement* element, std::istream& numbers) {
  const std::string depth = "async-depth=" + std::to_string(next(numbers, 5));
  if (!g_object_class_find_property(G_OBJECT_GET_CLASS(element), "async-depth")) return;
  report_.act(std::string(GST_OBJECT_NAME(element)) + ": " + depth);
  set(element, depth);
}

void Lane::pause_and_play(std::istream& numbers) {
  report_.act("PAUSED");
  reach(GST_STATE_PAUSED);
  const int milliseconds = int(next(numbers, 1000));
  if (numbers >> std::ws; !numbers.eof()) seek(next(numbers, length()));
  sleep_ms(milliseconds);
  report_.act("PLAYING");
  reach(GST_STATE_PLAYING);
}

void Lane::stop_and_play(GstState state) {
  report_.act(gst_element_state_get_name(state));
  {
    const Interruption interruption(*this);
    reach(state);
  }
  forget();
  ended_ = false;
  report_.act("PLAYING again");
  reach(GST_STATE_PLAYING);
}

std::uint64_t Lane::next(std::istream& numbers, std::uint64_t limit) {
  std::uint64_t number = 0;
  if (!(numbers >> number) || number >= limit) throw std::runtime_error("it needs another number, or a lower one");
  return number;
}

std::string Lane::choose_any() {
  if (random_.one_in(60)) return random_.one_in(4) ? "null" : "ready";
  if (random_.one_in(10)) {
    const std::string milliseconds = number_below(60);
    return "pause" + milliseconds + (random_.one_in(3) ? number_below(length()) : "");
  }
  if (random_.one_in(6)) return "seek" + number_below(length());
  if (!memory_filters_.empty() && on_cuda() && random_.one_in(8))
    return "memory" + number_below(memory_filters_.size()) + number_below(2);
  return choose();
}

void Lane::perform_any(const std::string& name, std::istream& numbers) {
  if (name == "null" || name == "ready") return stop_and_play(name == "null" ? GST_STATE_NULL : GST_STATE_READY);
  if (name == "pause") return pause_and_play(numbers);
  if (name == "seek" || name == "restart") {
    ended_ = false;  // frames arrive again, even if a fast replay had ended before this seek
    return seek(next(numbers, length()));
  }
  if (name == "memory") {
    const std::size_t filter = std::size_t(next(numbers, memory_filters_.size()));
    const bool cuda = next(numbers, 2) != 0;
    return options_.twin ? void() : change_memory(filter, cuda);  // GStreamer's elements here use system memory
  }
  if (name == "play") {
    report_.act("first PLAYING");
    return reach(GST_STATE_PLAYING);
  }
  perform(name, numbers);
}

void Lane::step(const std::string& action) {
  report_.note('>', action);
  std::istringstream numbers(action);
  std::string name;
  numbers >> name;
  try {
    perform_any(name, numbers);
  } catch (const std::runtime_error& error) {
    report_.fail("the action \"" + action + "\": " + error.what());
  }
  settle(GST_STATE_PLAYING);
  if (name == options_.fault && ++faulty_ == 3) report_.spoil_next();
}

void Lane::end() {
  report_.note('>', "end");
  report_.act("end");
  const Interruption interruption(*this);
  gst_element_set_state(pipeline(), GST_STATE_NULL);
  report_.end();
}

void Lane::run(const std::atomic<bool>& stop, long actions) {
  step("play");
  for (long i = 0; !stop && i < actions; ++i) {
    sleep_ms(random_.one_in(8) ? random_.below(400) : random_.below(60));
    step(ended_.exchange(false) ? "restart" + number_below(length()) : choose_any());
  }
  end();
}

void Lane::await(const Step& step, long frames) const {
  // Waits for the frame count of the recorded run, but not forever: a pipeline at its end sends none, and another
  // machine is slower.
  const bool restarts = step.action.compare(0, 7, "restart") == 0;
  const double most = std::min(options_.patience / 2, 10 * step.seconds + 0.5), begin = fair_time();
  while (fair_time() - begin < most && (restarts ? !ended_ : report_.frames() < frames + step.frames && !ended_))
    sleep_ms(1);
}

void Lane::replay(const std::atomic<bool>& stop, const std::vector<Step>& steps) {
  long frames = 0;
  for (const Step& next : steps) {
    if (stop || next.action == "end") break;
    await(next, frames);
    frames = report_.frames();
    step(next.action);
  }
  if (!steps.empty() && steps.back().action == "end") await(steps.back(), frames);
  await({0.5, 3, "end"}, report_.frames());  // frames show the effect of the last action
  end();
}

}  // namespace cudavision::soak
