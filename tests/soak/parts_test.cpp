// SPDX-License-Identifier: LGPL-2.1-or-later
// What the soak judges with: the states of a pipeline's elements, and time as a busy machine gives it.
#include <time.h>

#include <fstream>

#include "tests/elements/expect.hpp"
#include "tests/soak/fair_time.hpp"
#include "tests/soak/states.hpp"

using cudavision::test::expect;
using namespace cudavision::soak;

namespace {

void finds_an_element_in_another_state() {
  GstElement* pipeline = gst_parse_launch("fakesrc ! identity ! fakesink name=sink sync=false", nullptr);
  GstElement* sink = gst_bin_get_by_name(GST_BIN(pipeline), "sink");
  const auto wait = [&] { gst_element_get_state(pipeline, nullptr, nullptr, GST_CLOCK_TIME_NONE); };
  expect(element_not_in(pipeline, GST_STATE_NULL).empty(), "before: " + element_not_in(pipeline, GST_STATE_NULL));
  gst_element_set_state(pipeline, GST_STATE_PLAYING);
  wait();
  expect(element_not_in(pipeline, GST_STATE_PLAYING).empty(),
         "playing: " + element_not_in(pipeline, GST_STATE_PLAYING));
  expect(!element_not_in(pipeline, GST_STATE_PAUSED).empty(), "an element that plays is in PAUSED");
  // As a flush at the wrong moment leaves it: the pipeline plays, and its sink does not. Locked,
  // because the pipeline would take it along.
  gst_element_set_locked_state(sink, TRUE);
  gst_element_set_state(sink, GST_STATE_PAUSED);
  gst_element_get_state(sink, nullptr, nullptr, GST_CLOCK_TIME_NONE);
  wait();
  expect(is_resting(pipeline), "on its way:\n" + states_of(pipeline));
  const std::string found = element_not_in(pipeline, GST_STATE_PLAYING);
  expect(found.rfind("sink: PAUSED", 0) == 0, "found " + found);
  expect(states_of(pipeline).find(found) != std::string::npos, "not in the list: " + states_of(pipeline));
  gst_element_set_locked_state(sink, FALSE);
  gst_element_set_state(pipeline, GST_STATE_PLAYING);
  wait();
  expect(element_not_in(pipeline, GST_STATE_PLAYING).empty(),
         "PLAYING again: " + element_not_in(pipeline, GST_STATE_PLAYING));
  gst_element_set_state(pipeline, GST_STATE_NULL);
  gst_object_unref(sink);
  gst_object_unref(pipeline);
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
           "the meter says " + std::to_string(work.ran) + " ns, and does not begin anew");
  else
    expect(work.ran == 0 && work.waited == 0 && share_of(work) == 1,
           "without the kernel's numbers the time is the clock's");
  const double begin = fair_time();
  while (fair_time() == begin) g_usleep(1000);
  expect(fair_time() > begin, "the time runs backwards");
}

}  // namespace

int main(int argc, char** argv) {
  gst_init(&argc, &argv);
  finds_an_element_in_another_state();
  counts_time_by_what_threads_get();
  return cudavision::test::exit_status();
}
