// SPDX-License-Identifier: LGPL-2.1-or-later
// A fault of GStreamer before 1.24.10 that a flush can meet while new caps are under way, without elements of this
// plugin (UPSTREAM.md). A capsfilter whose caps have changed warns "not negotiated" after the flush.
// It is made so: the new caps are held in the capsfilter until the FLUSH_START of a seek has passed it. Meanwhile the
// source gets another size, so that the mixer negotiates again after the flush.
// Exit status: 0, whether the fault is there or not; 1 if a message comes that the soak would not tolerate.
#include <gst/gst.h>

#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <string>

#include "tests/soak/late_caps.hpp"

namespace {

class Player {
 public:
  explicit Player(const std::string& mode) {
    const std::string launch =
        "videotestsrc ! capsfilter name=input caps-change-mode=delayed ! compositor ! capsfilter name=filter caps=" +
        caps(0) + " caps-change-mode=" + mode + " ! fakesink name=sink sync=false";
    pipeline_ = gst_parse_launch(launch.c_str(), nullptr);
    GstBus* bus = gst_element_get_bus(pipeline_);
    gst_bus_set_sync_handler(bus, message, this, nullptr);
    gst_object_unref(bus);
    GstElement* sink = gst_bin_get_by_name(GST_BIN(pipeline_), "sink");
    GstPad* pad = gst_element_get_static_pad(sink, "sink");
    gst_pad_add_probe(pad, GST_PAD_PROBE_TYPE_QUERY_DOWNSTREAM, hold_caps, this, nullptr);
    gst_pad_add_probe(pad, GstPadProbeType(GST_PAD_PROBE_TYPE_BUFFER | GST_PAD_PROBE_TYPE_EVENT_FLUSH), came, this,
                      nullptr);
    gst_object_unref(pad);
    gst_object_unref(sink);
    gst_element_set_state(pipeline_, GST_STATE_PLAYING);
    await_frames();
  }
  ~Player() {
    gst_element_set_state(pipeline_, GST_STATE_NULL);
    gst_object_unref(pipeline_);
  }
  /// Changes the caps, and seeks while they are under way. Returns when frames come again.
  void meet(int round) {
    set_caps("filter", caps(round), State::armed);
    wait_until(State::held);
    set_caps("input", round % 2 ? "video/x-raw,width=32,height=32" : "video/x-raw,width=48,height=48", State::held);
    gst_element_seek_simple(pipeline_, GST_FORMAT_TIME, GST_SEEK_FLAG_FLUSH, 0);
    gst_element_get_state(pipeline_, nullptr, nullptr, GST_CLOCK_TIME_NONE);
    await_frames();
  }
  int warnings() const { return warnings_; }
  int others() const { return others_; }

 private:
  enum class State { idle, armed, held };

  static std::string caps(int round) {
    return std::string("video/x-raw,width=64,height=64,format=") + (round % 2 ? "I420" : "RGBA");
  }
  void set_caps(const char* name, const std::string& caps, State state) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      state_ = state;
    }
    GstElement* filter = gst_bin_get_by_name(GST_BIN(pipeline_), name);
    gst_util_set_object_arg(G_OBJECT(filter), "caps", caps.c_str());
    gst_object_unref(filter);
  }
  void wait_until(State state) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return state_ == state; });
  }
  void await_frames() const {
    const long begin = frames_;
    while (frames_ < begin + 3) g_usleep(1000);
  }

  static GstPadProbeReturn hold_caps(GstPad*, GstPadProbeInfo* info, gpointer data) {
    Player& self = *static_cast<Player*>(data);
    std::unique_lock<std::mutex> lock(self.mutex_);
    if (GST_QUERY_TYPE(GST_PAD_PROBE_INFO_QUERY(info)) != GST_QUERY_ACCEPT_CAPS || self.state_ != State::armed)
      return GST_PAD_PROBE_OK;
    self.state_ = State::held;
    self.changed_.notify_all();
    self.changed_.wait(lock, [&] { return self.state_ == State::idle; });
    return GST_PAD_PROBE_OK;
  }
  static GstPadProbeReturn came(GstPad*, GstPadProbeInfo* info, gpointer data) {
    Player& self = *static_cast<Player*>(data);
    if (info->type & GST_PAD_PROBE_TYPE_BUFFER) {
      ++self.frames_;
    } else if (GST_EVENT_TYPE(GST_PAD_PROBE_INFO_EVENT(info)) == GST_EVENT_FLUSH_START) {
      const std::lock_guard<std::mutex> lock(self.mutex_);
      self.state_ = State::idle;
      self.changed_.notify_all();
    }
    return GST_PAD_PROBE_OK;
  }
  static GstBusSyncReply message(GstBus*, GstMessage* message, gpointer data) {
    Player& self = *static_cast<Player*>(data);
    if (cudavision::soak::warns_of_late_caps(message)) {
      ++self.warnings_;
    } else if (GST_MESSAGE_TYPE(message) == GST_MESSAGE_WARNING || GST_MESSAGE_TYPE(message) == GST_MESSAGE_ERROR) {
      ++self.others_;
      gchar* text = gst_structure_to_string(gst_message_get_structure(message));
      std::printf("of %s: %s\n", GST_MESSAGE_SRC_NAME(message), text);
      g_free(text);
    }
    gst_message_unref(message);
    return GST_BUS_DROP;
  }

  GstElement* pipeline_;
  std::mutex mutex_;
  std::condition_variable changed_;
  State state_ = State::idle;
  std::atomic<long> frames_{0};
  std::atomic<int> warnings_{0}, others_{0};
};

}  // namespace

int main(int argc, char** argv) {
  gst_init(&argc, &argv);
  if (GstElementFactory* factory = gst_element_factory_find("compositor"))
    gst_object_unref(factory);
  else
    return std::printf("skipped: no compositor\n"), 77;
  gchar* version = gst_version_string();
  std::printf("%s\n", version);
  g_free(version);
  constexpr int rounds = 10;
  int others = 0;
  for (const char* mode : {"delayed", "immediate"}) {
    Player player(mode);
    for (int round = 1; round <= rounds; ++round) player.meet(round);
    std::printf("caps-change-mode=%s: %d of %d times a warning \"not negotiated\" of the capsfilter\n", mode,
                player.warnings(), rounds);
    others += player.others();
  }
  return others ? 1 : 0;
}
