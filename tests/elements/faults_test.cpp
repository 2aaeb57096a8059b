// SPDX-License-Identifier: LGPL-2.1-or-later
// Problems around an element that runs for months: a clock that jumps, a thousand restarts. docs/faults.md lists all
// faults and their tests.
#include <malloc.h>

#include <filesystem>

#include "tests/elements/harness.hpp"

using namespace cudavision::test;

namespace {

const GstClockTime hour = 3600 * GST_SECOND;

long entries_of(const char* folder) {
  long count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder)) ++count;
  return count;
}

/// Allocated bytes; 0 where the C library does not report them, and with sanitizers, which keep freed memory.
double heap_in_use() {
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 33) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  const struct mallinfo2 info = mallinfo2();
  return double(info.uordblks + info.hblkhd);
#else
  return 0;
#endif
}

}  // namespace

// A camera that sets its clock, or a source that restarts, sends timestamps that jump back and forth, or none. No frame
// is lost or changed.
TEST(goes_on_when_the_clock_jumps, Each::run) {
  const std::string caps = caps_text("NV12", {64, 48});
  Rig rig(run), steady(run);
  rig.caps(caps);
  steady.caps(caps);
  Rig fresh(run);
  fresh.caps_alone(caps);
  const Picture first = fresh.filter(noise(rig.video()));
  const GstClockTime times[] = {
      2 * hour, 2 * hour + 40 * GST_MSECOND, 0, 40 * GST_MSECOND, 1000 * hour, GST_CLOCK_TIME_NONE, hour, hour, 1, 0};
  for (unsigned i = 0; i < G_N_ELEMENTS(times); ++i) {
    at("frame " + std::to_string(i));
    const Buffer frame = noise(rig.video(), i + 1);
    const Picture expected = steady.filter(frame);
    Buffer in = copied(frame);
    GST_BUFFER_PTS(in.get()) = times[i];
    const Buffer out = rig.push(std::move(in));
    EXPECT_EQ(GST_BUFFER_PTS(out.get()), times[i]);
    const Picture came = picture(out.get(), rig.video());
    // A frame after a long jump is not compared, and the next frame is compared with it.
    if (!profile(run.element).remembers) EXPECT_SAME(came, expected);
  }
  rig.filter(black(rig.video()));
  if (profile(run.element).remembers) EXPECT(difference(rig.filter(noise(rig.video())), first, 0) != "");
  EXPECT_EQ(rig.error().text, "");
}

// Threads, open files and memory do not grow after the first starts.
TEST(starts_a_thousand_times, Each::run) {
  constexpr int warm = 50, starts = 1000;
  g_autoptr(GstElement) element = make_element(run);
  gst_object_ref_sink(element);
  long threads = 0, files = 0;
  double heap = 0;
  for (int i = 0; i < warm + starts; ++i) {
    at("start " + std::to_string(i));
    {
      GstHarness* harness = gst_harness_new_with_element(element, "sink", "src");
      gst_harness_set_src_caps_str(harness, caps_text("NV12", {64, 48}).c_str());
      EXPECT_EQ(gst_harness_push(harness, noise(video_info("NV12", {64, 48})).release()), GST_FLOW_OK);
      gst_harness_push_event(harness, gst_event_new_eos());
      gst_buffer_unref(gst_harness_pull(harness));
      gst_harness_teardown(harness);
    }
    EXPECT_EQ(gst_element_set_state(element, GST_STATE_NULL), GST_STATE_CHANGE_SUCCESS);
    if (i + 1 != warm) continue;
    threads = entries_of("/proc/self/task");
    files = entries_of("/proc/self/fd");
    heap = heap_in_use();
  }
  EXPECT_EQ(entries_of("/proc/self/task") <= threads + 1, true);
  EXPECT_EQ(entries_of("/proc/self/fd"), files);
  const double grown = (heap_in_use() - heap) / starts;
  FAIL_UNLESS(grown < 100, "%s keeps %.0f bytes of each start", run.element.c_str(), grown);
}

// An application may make a new element instead of restarting the old one.
TEST(is_made_a_thousand_times, Each::element) {
  constexpr int warm = 50, made = 1000;
  double heap = 0;
  for (int i = 0; i < warm + made; ++i) {
    if (i == warm) heap = heap_in_use();
    gst_object_unref(gst_object_ref_sink(make_element(run)));
  }
  const double grown = (heap_in_use() - heap) / made;
  FAIL_UNLESS(grown < 100, "%s keeps %.0f bytes of each element", run.element.c_str(), grown);
}

int main() { return run_tests("faults"); }
