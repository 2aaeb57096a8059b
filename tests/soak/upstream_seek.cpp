// SPDX-License-Identifier: LGPL-2.1-or-later
// Reproduces a fault of GStreamer that the soak meets, without elements of this plugin (UPSTREAM.md). A flush that
// meets the change of state of another flush can leave the sink in PAUSED forever, while the pipeline reports PLAYING.
// Here a second seek comes at the critical moment. Setting the state again must free the sink. Exit status: 0, with or
// without the fault; 1 if the sink is not freed.
#include <condition_variable>
#include <cstdio>
#include <mutex>

#include "tests/soak/states.hpp"

using namespace cudavision::soak;

namespace {

enum { idle, awaited, sink_plays, sought };

/// A step at which threads wait for each other.
class Step {
 public:
  void await(int step) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return step_ == step; });
  }
  /// Continues if the current step is the one before `to`. Returns whether it was.
  bool go(int to) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (step_ != to - 1) return false;
    step_ = to;
    changed_.notify_all();
    return true;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int step_ = idle;
};

/// After the sink is set to PLAYING, holds the thread, which still has to set other elements, until the second seek.
GstBusSyncReply hold(GstBus*, GstMessage* message, gpointer data) {
  Step& step = *static_cast<Step*>(data);
  GstState state = GST_STATE_NULL;
  if (GST_MESSAGE_TYPE(message) == GST_MESSAGE_STATE_CHANGED)
    gst_message_parse_state_changed(message, nullptr, &state, nullptr);
  if (state == GST_STATE_PLAYING && g_str_equal(GST_MESSAGE_SRC_NAME(message), "sink") && step.go(sink_plays))
    step.await(sought);
  gst_message_unref(message);
  return GST_BUS_DROP;
}

void wait_for(GstElement* pipeline) { gst_element_get_state(pipeline, nullptr, nullptr, GST_CLOCK_TIME_NONE); }

/// The element that does not play, when no element is changing to another state; empty: all play.
std::string not_playing(GstElement* pipeline) {
  wait_for(pipeline);
  // GStreamer may report the end of a change of state while the sink is still changing.
  while (!is_resting(pipeline)) g_usleep(1000);
  return element_not_in(pipeline, GST_STATE_PLAYING);
}

void seek(GstElement* source) {
  gst_element_send_event(source, gst_event_new_seek(1, GST_FORMAT_TIME, GST_SEEK_FLAG_FLUSH, GST_SEEK_TYPE_SET, 0,
                                                    GST_SEEK_TYPE_NONE, -1));
}

}  // namespace

int main(int argc, char** argv) {
  gst_init(&argc, &argv);
  g_autofree gchar* version = gst_version_string();
  std::printf("%s\n", version);
  Step step;
  g_autoptr(GstElement) pipeline =
      gst_parse_launch("videotestsrc name=source ! identity ! fakesink name=sink sync=false", nullptr);
  g_autoptr(GstElement) source = gst_bin_get_by_name(GST_BIN(pipeline), "source");
  g_autoptr(GstBus) bus = gst_element_get_bus(pipeline);
  gst_element_set_state(pipeline, GST_STATE_PLAYING);
  wait_for(pipeline);
  gst_bus_set_sync_handler(bus, hold, &step, nullptr);
  step.go(awaited);
  seek(source);
  step.await(sink_plays);
  seek(source);
  step.go(sought);
  const std::string stuck = not_playing(pipeline);
  std::printf("%s\n%s", stuck.empty() ? "not stuck: this GStreamer does not have the fault" : "stuck:",
              states_of(pipeline).c_str());
  gst_element_set_state(pipeline, GST_STATE_PLAYING);
  const std::string other = not_playing(pipeline);
  std::printf("after PLAYING was set again: %s\n", other.empty() ? "all elements play" : other.c_str());
  gst_element_set_state(pipeline, GST_STATE_NULL);
  return !other.empty();
}
