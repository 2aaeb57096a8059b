// SPDX-License-Identifier: LGPL-2.1-or-later
// A fault of GStreamer that a flushing seek can meet at a mixer, without elements of this plugin (UPSTREAM.md):
//   upstream_flush [SECONDS]
// A flush that comes from upstream, in another thread, can start GstAggregator's task again while a flushing seek waits
// for the end of it. The seek then waits for ever. This is made so once for certain: the seek is held between its
// FLUSH_START and gst_pad_stop_task() until the other flush has ended. Then SECONDS (none) long two threads do it by
// chance: one seeks the pipeline, the other one its source.
// Exit status: 0, whether the fault is there or not; 1 if the way out does not free the seek.
#include <gst/gst.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <random>
#include <string>
#include <thread>

namespace {

constexpr int many_frames = 2000;  ///< that come while the seek waits for the end of the task that makes them
constexpr int patience = 10000;    ///< milliseconds

void sleep_ms(int milliseconds) { std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds)); }

class Player {
 public:
  explicit Player(const std::string& mixer) {
    const std::string launch = "videotestsrc name=source ! video/x-raw,format=RGBA,width=16,height=16 ! " + mixer +
                               " name=mixer ! fakesink name=sink sync=false async=false";
    pipeline_ = gst_parse_launch(launch.c_str(), nullptr);
    source_ = gst_bin_get_by_name(GST_BIN(pipeline_), "source");
    sink_ = gst_bin_get_by_name(GST_BIN(pipeline_), "sink");
    GstElement* element = gst_bin_get_by_name(GST_BIN(pipeline_), "mixer");
    mixer_src_ = gst_element_get_static_pad(element, "src");
    mixer_sink_ = gst_element_get_static_pad(element, "sink_0");
    gst_object_unref(element);
    const auto count = [](GstPad*, GstPadProbeInfo*, gpointer data) {
      ++static_cast<Player*>(data)->frames_;
      return GST_PAD_PROBE_OK;
    };
    gst_pad_add_probe(mixer_src_, GST_PAD_PROBE_TYPE_BUFFER, count, this, nullptr);
    gst_element_set_state(pipeline_, GST_STATE_PLAYING);
    while (frames_ < 3) sleep_ms(1);
  }
  ~Player() {
    gst_element_set_state(pipeline_, GST_STATE_NULL);
    for (gpointer each :
         {gpointer(mixer_src_), gpointer(mixer_sink_), gpointer(source_), gpointer(sink_), gpointer(pipeline_)})
      gst_object_unref(each);
  }
  /// A flushing seek of the mixer, as a sink of the pipeline would forward it. Returns when it has ended.
  void seek_mixer() { seek(mixer_src_); }
  /// A flushing seek of the source alone: its FLUSH_START and FLUSH_STOP come to the mixer from upstream.
  void seek_source() {
    GstPad* pad = gst_pad_get_peer(mixer_sink_);
    seek(pad);
    gst_object_unref(pad);
  }
  /// EOS ends the loop of the task.
  void send_eos() { gst_element_send_event(source_, gst_event_new_eos()); }
  GstPad* mixer_src() const { return mixer_src_; }
  GstElement* source() const { return source_; }
  long frames() const { return frames_; }

 private:
  static void seek(GstPad* pad) {
    GstEvent* event =
        gst_event_new_seek(1, GST_FORMAT_TIME, GST_SEEK_FLAG_FLUSH, GST_SEEK_TYPE_SET, 0, GST_SEEK_TYPE_NONE, -1);
    gst_pad_send_event(pad, event);
  }
  GstElement *pipeline_, *source_, *sink_;
  GstPad *mixer_src_, *mixer_sink_;
  std::atomic<long> frames_{0};
};

struct Meeting {
  std::mutex mutex;
  std::condition_variable changed;
  bool holds = true, held = false, go_on = false;
};

/// Sends the FLUSH_START of the seek on, as the pad would, and holds the seek before it comes to gst_pad_stop_task().
GstPadProbeReturn hold_seek(GstPad* pad, GstPadProbeInfo* info, gpointer data) {
  Meeting& meeting = *static_cast<Meeting*>(data);
  GstEvent* event = GST_PAD_PROBE_INFO_EVENT(info);
  std::unique_lock<std::mutex> lock(meeting.mutex);
  if (GST_EVENT_TYPE(event) != GST_EVENT_FLUSH_START || !meeting.holds) return GST_PAD_PROBE_OK;
  meeting.holds = false;
  lock.unlock();
  GstPad* peer = gst_pad_get_peer(pad);
  gst_pad_send_event(peer, gst_event_ref(event));
  gst_object_unref(peer);
  lock.lock();
  meeting.held = true;
  meeting.changed.notify_all();
  meeting.changed.wait(lock, [&] { return meeting.go_on; });
  return GST_PAD_PROBE_DROP;
}

bool meet_for_certain(const std::string& mixer) {
  auto* player = new Player(mixer);  // not freed if the seek does not end
  auto* meeting = new Meeting;
  auto* ended = new std::atomic<bool>(false);
  gst_pad_add_probe(player->mixer_src(),
                    GstPadProbeType(GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM | GST_PAD_PROBE_TYPE_EVENT_FLUSH), hold_seek,
                    meeting, nullptr);
  std::thread seeker([player, ended] {
    player->seek_mixer();
    *ended = true;
  });
  {
    std::unique_lock<std::mutex> lock(meeting->mutex);
    meeting->changed.wait(lock, [&] { return meeting->held; });
  }
  player->seek_source();  // its FLUSH_STOP starts the task
  const long begin = player->frames();
  while (player->frames() == begin) sleep_ms(1);
  {
    const std::lock_guard<std::mutex> lock(meeting->mutex);
    meeting->go_on = true;
    meeting->changed.notify_all();
  }
  const long before = player->frames();
  while (!*ended && player->frames() < before + many_frames) sleep_ms(1);
  const bool stuck = !*ended;
  std::printf("%s: ", mixer.c_str());
  if (stuck)
    std::printf("the seek waits in gst_pad_stop_task() while the task has made %ld frames; ",
                player->frames() - before);
  else
    std::printf("the seek ended: this GStreamer does not have the fault\n");
  std::fflush(stdout);
  if (stuck) {
    player->send_eos();
    for (int i = 0; i < 30000 && !*ended; ++i) sleep_ms(1);
    std::printf("after EOS it %s\n", *ended ? "ends" : "still waits");
    std::fflush(stdout);
    if (!*ended) return seeker.detach(), false;
  }
  seeker.join();
  delete player;
  delete meeting;
  delete ended;
  return true;
}

/// Ends the process if a seek waits for ever, or if no frame comes any more.
void meet_by_chance(const std::string& mixer, double seconds) {
  Player player(mixer);
  std::atomic<bool> stop{false};
  std::atomic<long> seeks{0}, ended{0};
  const auto repeat = [&stop](auto&& f, unsigned seed) {
    for (std::minstd_rand random(seed); !stop; std::this_thread::sleep_for(std::chrono::microseconds(random() % 3000)))
      f();
  };
  std::thread of_source([&] { repeat([&] { player.seek_source(); }, 1); });
  std::thread of_mixer([&] {
    repeat(
        [&] {
          ++seeks;
          player.seek_mixer();
          ++ended;
        },
        2);
  });
  const auto give_up = [&](const char* what, long frames) {
    std::printf("%s by chance: seek %ld %s; meanwhile %ld frames came\n", mixer.c_str(), seeks.load(), what, frames);
    std::fflush(stdout);
    std::_Exit(0);
  };
  for (int i = 0; i < int(seconds * 100); ++i) {
    sleep_ms(10);
    const long now = ended, frames = player.frames();
    for (int j = 0; j < patience && (ended == now || player.frames() == frames); ++j) sleep_ms(1);
    if (ended == now) give_up("has not ended for 10 s", player.frames() - frames);
    if (player.frames() == frames) give_up("and others have ended", 0);
  }
  stop = true;
  of_source.join();
  of_mixer.join();
  std::printf("%s by chance: %ld seeks, all ended\n", mixer.c_str(), ended.load());
}

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
  const bool freed = meet_for_certain("compositor");
  if (argc > 1 && freed) meet_by_chance("compositor", std::atof(argv[1]));
  return freed ? 0 : 1;
}
