// SPDX-License-Identifier: LGPL-2.1-or-later
// A fault of GStreamer before 1.24.10 that a flush can meet during a change of caps, without elements of this
// plugin (UPSTREAM.md). A capsfilter whose caps have changed warns "not negotiated" after the flush.
// To reproduce it, the new caps are held in the capsfilter until the FLUSH_START of a seek has passed it. Meanwhile the
// source gets another size, so that the mixer negotiates again after the flush.
// Exit status: 0, whether the fault is there or not; 1 if a message comes that the soak would not tolerate.
#include "tests/soak/late_caps.hpp"
#include "tests/soak/upstream.hpp"

using namespace cudavision::soak;

namespace {

enum { idle, armed, held };

struct Messages {
  std::atomic<int> warnings{0}, others{0};
};

std::string caps(int round) {
  return std::string("video/x-raw,width=64,height=64,format=") + (round % 2 ? "I420" : "RGBA");
}

GstPadProbeReturn hold_caps(GstPad*, GstPadProbeInfo* info, gpointer data) {
  Step& step = *static_cast<Step*>(data);
  if (GST_QUERY_TYPE(GST_PAD_PROBE_INFO_QUERY(info)) == GST_QUERY_ACCEPT_CAPS && step.go(armed, held)) step.await(idle);
  return GST_PAD_PROBE_OK;
}

GstPadProbeReturn flush(GstPad*, GstPadProbeInfo* info, gpointer data) {
  if (GST_EVENT_TYPE(GST_PAD_PROBE_INFO_EVENT(info)) == GST_EVENT_FLUSH_START) static_cast<Step*>(data)->set(idle);
  return GST_PAD_PROBE_OK;
}

GstBusSyncReply count(GstBus*, GstMessage* message, gpointer data) {
  Messages& messages = *static_cast<Messages*>(data);
  if (warns_of_late_caps(message)) {
    ++messages.warnings;
  } else if (GST_MESSAGE_TYPE(message) == GST_MESSAGE_WARNING || GST_MESSAGE_TYPE(message) == GST_MESSAGE_ERROR) {
    ++messages.others;
    g_autofree gchar* text = gst_structure_to_string(gst_message_get_structure(message));
    std::printf("of %s: %s\n", GST_MESSAGE_SRC_NAME(message), text);
  }
  gst_message_unref(message);
  return GST_BUS_DROP;
}

/// Changes the caps, and seeks before they arrive. Returns when frames come again.
void meet(Player& player, Step& step, int round) {
  const auto set_caps = [&](const char* filter, const std::string& caps) {
    gst_util_set_object_arg(G_OBJECT(player.find(filter)), "caps", caps.c_str());
  };
  step.set(armed);
  set_caps("filter", caps(round));
  step.await(held);
  set_caps("input", round % 2 ? "video/x-raw,width=32,height=32" : "video/x-raw,width=48,height=48");
  gst_element_seek_simple(player.pipeline(), GST_FORMAT_TIME, GST_SEEK_FLAG_FLUSH, 0);
  player.wait();
  player.await_frames(3);
}

}  // namespace

int main(int argc, char** argv) {
  gst_init(&argc, &argv);
  if (!has_compositor()) return 77;
  constexpr int rounds = 10;
  int others = 0;
  for (const char* mode : {"delayed", "immediate"}) {
    Step step;
    Messages messages;
    Player player(
        "videotestsrc ! capsfilter name=input caps-change-mode=delayed ! compositor ! capsfilter name=filter "
        "caps=" +
        caps(0) + " caps-change-mode=" + mode + " ! fakesink name=sink sync=false");
    player.watch(count, &messages);
    player.probe("sink", "sink", GST_PAD_PROBE_TYPE_QUERY_DOWNSTREAM, hold_caps, &step);
    player.probe("sink", "sink", GST_PAD_PROBE_TYPE_EVENT_FLUSH, flush, &step);
    player.play();
    player.await_frames(3);
    for (int round = 1; round <= rounds; ++round) meet(player, step, round);
    std::printf("caps-change-mode=%s: %d of %d times a warning \"not negotiated\" of the capsfilter\n", mode,
                messages.warnings.load(), rounds);
    others += messages.others;
  }
  return others ? 1 : 0;
}
