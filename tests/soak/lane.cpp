// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tests/soak/lane.hpp"

#include <chrono>
#include <thread>
#include <utility>

#include "tests/soak/reference.hpp"

namespace cudavision::soak {
namespace {

/// The CUDA context of the first element that made one: an application shares one between its pipelines.
std::mutex context_mutex;
GstContext* cuda_context = nullptr;

void share_context(GstMessage* message) {
  const std::lock_guard<std::mutex> lock(context_mutex);
  if (GST_MESSAGE_TYPE(message) == GST_MESSAGE_HAVE_CONTEXT) {
    GstContext* context = nullptr;
    gst_message_parse_have_context(message, &context);
    if (!cuda_context && gst_context_has_context_type(context, "gst.cuda.context"))
      cuda_context = context;
    else
      gst_context_unref(context);
  } else {
    const gchar* type = nullptr;
    gst_message_parse_context_type(message, &type);
    if (cuda_context && g_strcmp0(type, "gst.cuda.context") == 0)
      gst_element_set_context(GST_ELEMENT(GST_MESSAGE_SRC(message)), cuda_context);
  }
}

void sleep_ms(int milliseconds) { std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds)); }

}  // namespace

Lane::Lane(const std::string& name, std::uint64_t seed, const Options& options)
    : options_(options), random_(seed), report_(name, seed) {}

Lane::~Lane() = default;

void Lane::own(GstElement* pipeline) {
  pipeline_.reset(pipeline);
  GstBus* bus = gst_element_get_bus(pipeline);
  gst_bus_set_sync_handler(bus, message, this, nullptr);
  gst_object_unref(bus);
}

GstBusSyncReply Lane::message(GstBus*, GstMessage* message, gpointer data) {
  Lane& self = *static_cast<Lane*>(data);
  const GstMessageType type = GST_MESSAGE_TYPE(message);
  if (type == GST_MESSAGE_NEED_CONTEXT || type == GST_MESSAGE_HAVE_CONTEXT) share_context(message);
  if ((type == GST_MESSAGE_ERROR || type == GST_MESSAGE_WARNING) && !self.interrupted_ &&
      GST_MESSAGE_SRC(message) != GST_OBJECT(self.dismissed_.load())) {
    GError* error = nullptr;
    gchar* details = nullptr;
    (type == GST_MESSAGE_ERROR ? gst_message_parse_error : gst_message_parse_warning)(message, &error, &details);
    self.report_.fail(std::string(type == GST_MESSAGE_ERROR ? "error of " : "warning of ") + GST_MESSAGE_SRC_NAME(message) + ": " +
                      error->message + " (" + (details ? details : "") + ")");
    g_error_free(error);
    g_free(details);
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
  const double begin = fair_time();
  for (;;) {
    // Looks at the elements too: a bin that is set to the state in which it is says SUCCESS while its sink is still on its way there.
    const bool waits = gst_element_get_state(pipeline(), nullptr, nullptr, GST_SECOND / 5) == GST_STATE_CHANGE_ASYNC;
    const bool rests = is_resting(pipeline());  // asked first, because the last change may end right now
    const std::string other = element_not_in(pipeline(), state);
    if (!waits && other.empty()) return;
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
  report_.fail(std::string("the state of each element ") + what + ' ' + gst_element_state_get_name(state) + '\n' + states());
}

void Lane::add_memory_filter(GstElement* filter, const std::string& fields) { memory_filters_.emplace_back(filter, fields); }

void Lane::change_memory() {
  if (memory_filters_.empty() || !on_cuda()) return;
  const std::string memory = random_.pick({"video/x-raw", "video/x-raw(memory:CUDAMemory)"});
  const auto& [filter, fields] = random_.pick(memory_filters_);
  report_.act(std::string(GST_OBJECT_NAME(filter)) + ": " + memory);
  gst_util_set_object_arg(G_OBJECT(filter), "caps", (memory + fields).c_str());
}

void Lane::turn(GstElement* element) {
  if (!g_object_class_find_property(G_OBJECT_GET_CLASS(element), "async-depth")) return;
  const std::string depth = "async-depth=" + std::to_string(random_.below(5));
  report_.act(std::string(GST_OBJECT_NAME(element)) + ": " + depth);
  set(element, depth);
}

void Lane::pause_and_play() {
  report_.act("PAUSED");
  reach(GST_STATE_PAUSED);
  if (random_.one_in(3)) seek(guint64(random_.below(int(length()))));
  sleep_ms(random_.below(60));
  report_.act("PLAYING");
  reach(GST_STATE_PLAYING);
}

void Lane::stop_and_play() {
  const GstState state = random_.one_in(4) ? GST_STATE_NULL : GST_STATE_READY;
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

void Lane::run(const std::atomic<bool>& stop) {
  report_.act("first PLAYING");
  reach(GST_STATE_PLAYING);
  while (!stop) {
    sleep_ms(random_.one_in(8) ? random_.below(400) : random_.below(60));
    if (ended_.exchange(false)) {
      seek(guint64(random_.below(int(length()))));
    } else if (random_.one_in(60)) {
      stop_and_play();
    } else if (random_.one_in(10)) {
      pause_and_play();
    } else if (random_.one_in(6)) {
      seek(guint64(random_.below(int(length()))));
    } else if (random_.one_in(8)) {
      change_memory();
    } else {
      disturb();
    }
    settle(GST_STATE_PLAYING);
  }
  report_.act("end");
  const Interruption interruption(*this);
  gst_element_set_state(pipeline(), GST_STATE_NULL);
  report_.end();
}

}  // namespace cudavision::soak
