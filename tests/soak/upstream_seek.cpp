// SPDX-License-Identifier: LGPL-2.1-or-later
// A fault of GStreamer that the soak meets, without elements of this plugin (UPSTREAM.md):
//   upstream_seek [SECONDS [PIPELINES]]
// A flush that meets the change of state of another flush can leave the sink in PAUSED for ever, while the pipeline
// says that it plays. This is made so once for certain, by a second seek at the right moment. Then SECONDS (none) long
// PIPELINES (4) do it by chance: each flushes, seeks with a flush at once, and waits for the end of the change of
// state, again and again. A round is stuck if the sink is not in PLAYING and no change of state is under way. Setting
// the state again must free it.
// Exit status: 0, whatever the number of rounds that were stuck; 1 if one could not be freed.
#include <gst/gst.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "tests/soak/states.hpp"

namespace {

using namespace cudavision::soak;

class Player {
 public:
  Player() {
    pipeline_ = gst_parse_launch("videotestsrc name=source ! identity ! fakesink name=sink sync=false", nullptr);
    source_ = gst_bin_get_by_name(GST_BIN(pipeline_), "source");
    gst_element_set_state(pipeline_, GST_STATE_PLAYING);
    wait();
  }
  ~Player() {
    gst_element_set_state(pipeline_, GST_STATE_NULL);
    gst_object_unref(source_);
    gst_object_unref(pipeline_);
  }

  GstElement* pipeline() const { return pipeline_; }
  void wait() { gst_element_get_state(pipeline_, nullptr, nullptr, GST_CLOCK_TIME_NONE); }
  void flush() {
    gst_element_send_event(source_, gst_event_new_flush_start());
    gst_element_send_event(source_, gst_event_new_flush_stop(TRUE));
  }
  void seek() {
    gst_element_send_event(source_, gst_event_new_seek(1, GST_FORMAT_TIME, GST_SEEK_FLAG_FLUSH, GST_SEEK_TYPE_SET, 0,
                                                       GST_SEEK_TYPE_NONE, -1));
  }
  /// Waits until no element is on its way to another state. Returns whether the sink is stuck then.
  bool is_stuck() {
    rest();
    return !element_not_in(pipeline_, GST_STATE_PLAYING).empty();
  }
  /// Returns whether all elements play after the state was set again.
  bool free() {
    std::printf("stuck:\n%s", states_of(pipeline_).c_str());
    gst_element_set_state(pipeline_, GST_STATE_PLAYING);
    wait();
    rest();
    const std::string other = element_not_in(pipeline_, GST_STATE_PLAYING);
    std::printf("after PLAYING was set again: %s\n", other.empty() ? "all elements play" : other.c_str());
    std::fflush(stdout);
    return other.empty();
  }

 private:
  // GStreamer may say that a change of state has ended while the sink is still on its way.
  void rest() {
    while (!is_resting(pipeline_)) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

  GstElement *pipeline_, *source_;
};

/// The second seek comes when the pipeline has set its sink to PLAYING, and has its other elements still to set.
/// Returns false if the sink was stuck and could not be freed.
bool meet_for_certain() {
  struct Meeting {
    std::mutex mutex;
    std::condition_variable changed;
    bool awaited = false, sink_plays = false, sought = false;
  } meeting;
  Player player;
  GstBus* bus = gst_element_get_bus(player.pipeline());
  const auto handler = [](GstBus*, GstMessage* message, gpointer data) {
    Meeting& meeting = *static_cast<Meeting*>(data);
    GstState state = GST_STATE_NULL;
    if (GST_MESSAGE_TYPE(message) == GST_MESSAGE_STATE_CHANGED)
      gst_message_parse_state_changed(message, nullptr, &state, nullptr);
    if (state == GST_STATE_PLAYING && g_str_equal(GST_MESSAGE_SRC_NAME(message), "sink")) {
      std::unique_lock<std::mutex> lock(meeting.mutex);
      if (std::exchange(meeting.awaited, false)) {
        meeting.sink_plays = true;
        meeting.changed.notify_all();
        meeting.changed.wait(lock, [&] { return meeting.sought; });
      }
    }
    gst_message_unref(message);
    return GST_BUS_DROP;
  };
  gst_bus_set_sync_handler(bus, handler, &meeting, nullptr);
  gst_object_unref(bus);
  {
    const std::lock_guard<std::mutex> lock(meeting.mutex);
    meeting.awaited = true;
  }
  player.seek();
  {
    std::unique_lock<std::mutex> lock(meeting.mutex);
    meeting.changed.wait(lock, [&] { return meeting.sink_plays; });
  }
  player.seek();
  {
    const std::lock_guard<std::mutex> lock(meeting.mutex);
    meeting.sought = true;
    meeting.changed.notify_all();
  }
  player.wait();
  if (player.is_stuck()) return player.free();
  std::printf("not stuck: this GStreamer does not have the fault\n");
  return true;
}

struct Counts {
  std::atomic<bool> stop{false};
  std::atomic<long> rounds{0}, stuck{0}, lost{0};
};

void meet_by_chance(Counts& counts) {
  for (Player player; !counts.stop; ++counts.rounds) {
    player.flush();
    player.seek();
    player.wait();
    if (!player.is_stuck()) continue;
    ++counts.stuck;
    if (!player.free()) ++counts.lost;
  }
}

}  // namespace

int main(int argc, char** argv) {
  gst_init(&argc, &argv);
  const double seconds = argc > 1 ? std::atof(argv[1]) : 0;
  const int pipelines = argc > 2 ? std::atoi(argv[2]) : 4;
  gchar* version = gst_version_string();
  std::printf("%s\nA seek at the right moment\n", version);
  g_free(version);
  const bool freed = meet_for_certain();
  if (seconds > 0) std::printf("By chance\n");
  Counts counts;
  std::vector<std::thread> threads;
  for (int i = 0; i < pipelines && seconds > 0; ++i) threads.emplace_back([&counts] { meet_by_chance(counts); });
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  counts.stop = true;
  for (std::thread& thread : threads) thread.join();
  if (seconds > 0)
    std::printf("%ld of %ld rounds were stuck, %ld could not be freed\n", counts.stuck.load(), counts.rounds.load(),
                counts.lost.load());
  return freed && !counts.lost ? 0 : 1;
}
