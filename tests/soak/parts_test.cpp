// SPDX-License-Identifier: LGPL-2.1-or-later
// Tests the parts that judge a soak run: the states of a pipeline's elements, time on a busy machine, and the
// warnings that it tolerates.
#include <time.h>

#include <fstream>

#include "tests/elements/expect.hpp"
#include "tests/soak/fair_time.hpp"
#include "tests/soak/late_caps.hpp"
#include "tests/soak/states.hpp"

using cudavision::test::expect;
using namespace cudavision::soak;

namespace {

void finds_an_element_in_another_state() {
  g_autoptr(GstElement) pipeline = gst_parse_launch("fakesrc ! identity ! fakesink name=sink sync=false", nullptr);
  g_autoptr(GstElement) sink = gst_bin_get_by_name(GST_BIN(pipeline), "sink");
  const auto wait_for = [](GstElement* element) {
    gst_element_get_state(element, nullptr, nullptr, GST_CLOCK_TIME_NONE);
  };
  const auto expect_all_in = [&](GstState state, const char* when) {
    wait_for(pipeline);
    expect(element_not_in(pipeline, state).empty(), when + (": " + element_not_in(pipeline, state)));
  };
  expect_all_in(GST_STATE_NULL, "before");
  gst_element_set_state(pipeline, GST_STATE_PLAYING);
  expect_all_in(GST_STATE_PLAYING, "playing");
  expect(!element_not_in(pipeline, GST_STATE_PAUSED).empty(), "an element that plays is in PAUSED");
  // Like the result of a flush at the wrong moment, the pipeline plays, but its sink does not. The sink is locked,
  // because the pipeline would change its state otherwise.
  gst_element_set_locked_state(sink, TRUE);
  gst_element_set_state(sink, GST_STATE_PAUSED);
  wait_for(sink);
  wait_for(pipeline);
  expect(is_resting(pipeline), "on its way:\n" + states_of(pipeline));
  const std::string found = element_not_in(pipeline, GST_STATE_PLAYING);
  expect(found.rfind("sink: PAUSED", 0) == 0, "found " + found);
  expect(states_of(pipeline).find(found) != std::string::npos, "not in the list: " + states_of(pipeline));
  gst_element_set_locked_state(sink, FALSE);
  gst_element_set_state(pipeline, GST_STATE_PLAYING);
  expect_all_in(GST_STATE_PLAYING, "PLAYING again");
  gst_element_set_state(pipeline, GST_STATE_NULL);
}

void counts_time_by_what_threads_get() {
  expect(share_of({0, 0}) == 1, "nothing wants to run: the time is the clock's");
  expect(share_of({100, 0}) == 1, "nothing waits");
  expect(share_of({10, 90}) == 0.1, "threads wait nine times as long as they run");
  WorkMeter meter;
  meter.next();
  for (const auto begin = clock(); clock() - begin < CLOCKS_PER_SEC / 20;) continue;
  const Work work = meter.next();
  if (std::ifstream("/proc/self/schedstat").good())
    expect(work.ran > 0 && meter.next().ran < work.ran,
           "the meter says " + std::to_string(work.ran) + " ns, and does not restart");
  else
    expect(work.ran == 0 && work.waited == 0 && share_of(work) == 1,
           "without the kernel's numbers the time is the clock's");
  const double begin = fair_time();
  while (fair_time() == begin) g_usleep(1000);
  expect(fair_time() > begin, "the time runs backwards");
}

constexpr Version with_fault{1, 22, 0};

/// A capsfilter below a pad, as the fault of GStreamer leaves them: the caps of the capsfilter have changed, the pad
/// has the new caps, and its peer has the old ones. Each member changes this.
struct Below {
  const char* element = "capsfilter";
  const char* wanted = "video/x-raw,format=I420";  ///< the caps of the capsfilter
  const char* sent = "video/x-raw,format=I420,width=4,height=4,framerate=1/1";
  bool linked = true, segment = false;
  Version version = with_fault;
  bool error = false;
  GQuark domain = GST_STREAM_ERROR;
  gint code = GST_STREAM_ERROR_FORMAT;
  const char* text = "not negotiated";
};

bool tolerates(const Below& below) {
  g_autoptr(GstElement) filter = gst_element_factory_make(below.element, "filter");
  g_autoptr(GstPad) sink = gst_element_get_static_pad(filter, "sink");
  g_autoptr(GstPad) above = gst_pad_new("above", GST_PAD_SRC);
  gst_element_set_state(filter, GST_STATE_PAUSED);
  gst_pad_set_active(above, TRUE);
  gst_pad_link(above, sink);
  gst_pad_push_event(above, gst_event_new_stream_start("stream"));
  g_autoptr(GstCaps) old = gst_caps_from_string("video/x-raw,format=RGBA,width=4,height=4,framerate=1/1");
  gst_pad_push_event(above, gst_event_new_caps(old));
  GstSegment segment;
  gst_segment_init(&segment, GST_FORMAT_TIME);
  if (below.segment) gst_pad_push_event(above, gst_event_new_segment(&segment));
  if (g_strcmp0(below.element, "capsfilter") == 0) gst_util_set_object_arg(G_OBJECT(filter), "caps", below.wanted);
  g_autoptr(GstCaps) caps = gst_caps_from_string(below.sent);
  g_autoptr(GstEvent) sent = gst_event_new_caps(caps);
  gst_pad_store_sticky_event(above, sent);  // does not push it
  if (!below.linked) gst_pad_unlink(above, sink);

  g_autoptr(GError) error = g_error_new_literal(below.domain, below.code, below.text);
  g_autoptr(GstMessage) message =
      (below.error ? gst_message_new_error : gst_message_new_warning)(GST_OBJECT(filter), error, "details");
  const bool tolerated = warns_of_late_caps(message, below.version);
  gst_element_set_state(filter, GST_STATE_NULL);
  return tolerated;
}

/// `change` modifies one property, so the warning has another cause.
template <typename F>
void tolerates_not(const char* what, F&& change) {
  Below below;
  change(below);
  expect(!tolerates(below), std::string("a warning is tolerated although ") + what);
}

void tolerates_only_the_warning_of_late_caps() {
  expect(tolerates({}), "the warning of a capsfilter that awaits its new caps");
  tolerates_not("a segment has come", [](Below& below) { below.segment = true; });
  tolerates_not("the old caps fit", [](Below& below) { below.wanted = "video/x-raw"; });
  tolerates_not("the pad above has the old caps, too",
                [](Below& below) { below.sent = "video/x-raw,format=RGBA,width=4,height=4,framerate=1/1"; });
  tolerates_not("no pad is above", [](Below& below) { below.linked = false; });
  tolerates_not("it is of another element", [](Below& below) { below.element = "identity"; });
  tolerates_not("it is an error", [](Below& below) { below.error = true; });
  tolerates_not("its domain is another one", [](Below& below) { below.domain = GST_CORE_ERROR; });
  tolerates_not("its code is another one", [](Below& below) { below.code = GST_STREAM_ERROR_DECODE; });
  tolerates_not("it says something else", [](Below& below) { below.text = "no buffers"; });
  for (const Version fixed : {Version{1, 24, 10}, Version{1, 26, 0}, Version{2, 0, 0}})
    tolerates_not("GStreamer does not have the fault", [&](Below& below) { below.version = fixed; });
  for (const Version faulty : {Version{1, 24, 9}, Version{1, 23, 99}, Version{1, 20, 3}})
    expect(forgets_caps(faulty), "1." + std::to_string(faulty.minor) + " has the fault");
}

}  // namespace

int main(int argc, char** argv) {
  gst_init(&argc, &argv);
  g_log_set_always_fatal(GLogLevelFlags(G_LOG_LEVEL_CRITICAL | G_LOG_LEVEL_WARNING));
  finds_an_element_in_another_state();
  counts_time_by_what_threads_get();
  tolerates_only_the_warning_of_late_caps();
  return cudavision::test::exit_status();
}
