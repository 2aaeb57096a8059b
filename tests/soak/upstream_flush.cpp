// SPDX-License-Identifier: LGPL-2.1-or-later
// A fault of GStreamer that a flushing seek can meet at a mixer, without elements of this plugin (UPSTREAM.md). A flush
// that comes from upstream, in another thread, can start GstAggregator's task again while a flushing seek waits for the
// end of it. The seek then waits forever. Here the seek is held between its FLUSH_START and gst_pad_stop_task() until
// the other flush has ended.
// Exit status: 0, whether the fault is there or not; 1 if the way out does not free the seek.
#include <thread>

#include "tests/soak/upstream.hpp"

using namespace cudavision::soak;

namespace {

constexpr int many_frames = 2000;  ///< that come while the seek waits for the end of the task that makes them
enum { begin, flushed, held, go_on };

/// Sends the FLUSH_START of the seek on, as the pad would, and holds the seek before it comes to gst_pad_stop_task().
GstPadProbeReturn hold_seek(GstPad* pad, GstPadProbeInfo* info, gpointer data) {
  Step& step = *static_cast<Step*>(data);
  GstEvent* event = GST_PAD_PROBE_INFO_EVENT(info);
  if (GST_EVENT_TYPE(event) != GST_EVENT_FLUSH_START || !step.go(begin, flushed)) return GST_PAD_PROBE_OK;
  g_autoptr(GstPad) peer = gst_pad_get_peer(pad);
  gst_pad_send_event(peer, gst_event_ref(event));
  step.set(held);
  step.await(go_on);
  return GST_PAD_PROBE_DROP;
}

}  // namespace

int main(int argc, char** argv) {
  gst_init(&argc, &argv);
  if (!has_compositor()) return 77;
  // Not freed, because a seek that waits forever uses them.
  auto* player = new Player(
      "videotestsrc name=source ! video/x-raw,format=RGBA,width=16,height=16 ! compositor name=mixer ! "
      "fakesink name=sink sync=false async=false");
  auto* step = new Step;
  auto* ended = new std::atomic<bool>(false);
  player->play();
  player->await_frames(3);
  player->probe("mixer", "src", GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM | GST_PAD_PROBE_TYPE_EVENT_FLUSH, hold_seek, step);
  std::thread seeker([=] {  // as a sink of the pipeline would forward it
    gst_pad_send_event(player->find("mixer", "src"), new_flushing_seek());
    *ended = true;
  });
  step->await(held);
  // The FLUSH_STOP of the source starts the task.
  g_autoptr(GstPad) above = gst_pad_get_peer(player->find("mixer", "sink_0"));
  gst_pad_send_event(above, new_flushing_seek());
  player->await_frames(1);
  step->set(go_on);
  const long before = player->frames();
  while (!*ended && player->frames() < before + many_frames) g_usleep(1000);
  if (*ended) {
    seeker.join();
    delete player;
    return std::printf("the seek ended: this GStreamer does not have the fault\n"), 0;
  }
  std::printf("the seek waits in gst_pad_stop_task() while the task has made %ld frames; ", player->frames() - before);
  gst_element_send_event(player->find("source"), gst_event_new_eos());  // ends the loop of the task
  for (int i = 0; i < 30000 && !*ended; ++i) g_usleep(1000);
  std::printf("after EOS it %s\n", *ended ? "ends" : "still waits");
  if (*ended)
    seeker.join();
  else
    seeker.detach();
  return !*ended;
}
