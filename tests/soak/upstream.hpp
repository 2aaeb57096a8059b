// SPDX-License-Identifier: LGPL-2.1-or-later
// For the programs that show faults of GStreamer (UPSTREAM.md): a pipeline, and threads that meet at the right moment.
#pragma once

#include <gst/gst.h>

#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <string>

namespace cudavision::soak {

/// Whether this GStreamer has a compositor. Prints the version.
inline bool has_compositor() {
  g_autofree gchar* version = gst_version_string();
  std::printf("%s\n", version);
  g_autoptr(GstElementFactory) factory = gst_element_factory_find("compositor");
  if (!factory) std::printf("skipped: no compositor\n");
  return factory;
}

/// A step at which threads wait for each other.
class Step {
 public:
  void await(int step) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return step_ == step; });
  }
  void set(int step) {
    const std::lock_guard<std::mutex> lock(mutex_);
    step_ = step;
    changed_.notify_all();
  }
  /// Goes to the step `to` if this is the step `from`. Returns whether it was.
  bool go(int from, int to) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (step_ != from) return false;
    step_ = to;
    changed_.notify_all();
    return true;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int step_ = 0;
};

/// A pipeline that plays. Its sink has the name "sink".
class Player {
 public:
  explicit Player(const std::string& launch) : pipeline_(gst_parse_launch(launch.c_str(), nullptr)) {
    const auto count = [](GstPad*, GstPadProbeInfo*, gpointer player) {
      ++static_cast<Player*>(player)->frames_;
      return GST_PAD_PROBE_OK;
    };
    probe("sink", "sink", GST_PAD_PROBE_TYPE_BUFFER, count, this);
  }
  ~Player() {
    gst_element_set_state(pipeline_, GST_STATE_NULL);
    gst_object_unref(pipeline_);
  }
  Player(const Player&) = delete;

  void play() { gst_element_set_state(pipeline_, GST_STATE_PLAYING); }
  void wait() { gst_element_get_state(pipeline_, nullptr, nullptr, GST_CLOCK_TIME_NONE); }
  GstElement* pipeline() const { return pipeline_; }
  /// An element, or a pad of one. The pipeline keeps it.
  GstElement* find(const char* element) const {
    g_autoptr(GstElement) found = gst_bin_get_by_name(GST_BIN(pipeline_), element);
    return found;
  }
  GstPad* find(const char* element, const char* pad) const {
    g_autoptr(GstPad) found = gst_element_get_static_pad(find(element), pad);
    return found;
  }
  void probe(const char* element, const char* pad, int types, GstPadProbeCallback callback, gpointer data) {
    gst_pad_add_probe(find(element, pad), GstPadProbeType(types), callback, data, nullptr);
  }
  void watch(GstBusSyncHandler handler, gpointer data) {
    g_autoptr(GstBus) bus = gst_element_get_bus(pipeline_);
    gst_bus_set_sync_handler(bus, handler, data, nullptr);
  }
  void await_frames(long more) const {
    for (const long begin = frames_; frames_ < begin + more;) g_usleep(1000);
  }

 private:
  GstElement* pipeline_;
  std::atomic<long> frames_{0};
};

inline GstEvent* new_flushing_seek() {
  return gst_event_new_seek(1, GST_FORMAT_TIME, GST_SEEK_FLAG_FLUSH, GST_SEEK_TYPE_SET, 0, GST_SEEK_TYPE_NONE, -1);
}

}  // namespace cudavision::soak
