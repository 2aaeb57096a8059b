// SPDX-License-Identifier: LGPL-2.1-or-later
// A fault of GStreamer that the soak meets, without elements of this plugin (UPSTREAM.md). A flush that meets the
// change of state of another flush can leave the sink in PAUSED forever, while the pipeline says that it plays. Here a
// second seek comes at the right moment. Setting the state again must free the sink.
// Exit status: 0, whether the fault is there or not; 1 if the sink is not freed.
#include "tests/soak/states.hpp"
#include "tests/soak/upstream.hpp"

using namespace cudavision::soak;

namespace {

enum { idle, awaited, sink_plays, sought };

/// Holds the thread that has set the sink to PLAYING, and has other elements still to set, until the second seek.
GstBusSyncReply hold(GstBus*, GstMessage* message, gpointer data) {
  Step& step = *static_cast<Step*>(data);
  GstState state = GST_STATE_NULL;
  if (GST_MESSAGE_TYPE(message) == GST_MESSAGE_STATE_CHANGED)
    gst_message_parse_state_changed(message, nullptr, &state, nullptr);
  if (state == GST_STATE_PLAYING && g_str_equal(GST_MESSAGE_SRC_NAME(message), "sink") && step.go(awaited, sink_plays))
    step.await(sought);
  gst_message_unref(message);
  return GST_BUS_DROP;
}

/// The element that does not play, when no element is on its way to another state; empty: all play.
std::string not_playing(Player& player) {
  player.wait();
  // GStreamer may say that a change of state has ended while the sink is still on its way.
  while (!is_resting(player.pipeline())) g_usleep(1000);
  return element_not_in(player.pipeline(), GST_STATE_PLAYING);
}

}  // namespace

int main(int argc, char** argv) {
  gst_init(&argc, &argv);
  g_autofree gchar* version = gst_version_string();
  std::printf("%s\n", version);
  Step step;
  Player player("videotestsrc name=source ! identity ! fakesink name=sink sync=false");
  player.play();
  player.wait();
  player.watch(hold, &step);
  step.set(awaited);
  gst_element_send_event(player.find("source"), new_flushing_seek());
  step.await(sink_plays);
  gst_element_send_event(player.find("source"), new_flushing_seek());
  step.set(sought);
  if (not_playing(player).empty()) return std::printf("not stuck: this GStreamer does not have the fault\n"), 0;
  std::printf("stuck:\n%s", states_of(player.pipeline()).c_str());
  player.play();
  const std::string other = not_playing(player);
  std::printf("after PLAYING was set again: %s\n", other.empty() ? "all elements play" : other.c_str());
  return !other.empty();
}
