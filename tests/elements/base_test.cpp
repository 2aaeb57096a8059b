// SPDX-License-Identifier: LGPL-2.1-or-later
// Tests parts of gst/base: the base class of filters, with an element that checks what the base class does while it
// calls the element; caps, including builds without CUDA; Deadline; Polled; the time between frames.
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "gst/base/caps.hpp"
#include "gst/base/filter/deadline.hpp"
#include "gst/base/filter/filter_element.hpp"
#include "gst/base/frame.hpp"
#include "gst/base/poller.hpp"
#include "tests/elements/expect.hpp"

// included last, because its macro fail() breaks C++ headers
#include <gst/check/gstcheck.h>
#include <gst/check/gstharness.h>

namespace {

using namespace cudavision;
using cudavision::test::expect;

GstElement* element = nullptr;
std::atomic<int> plans{0}, with_lock{0};

struct Watching : Processor {
  bool passes_through() const override { return true; }
  bool reads_results() const override { return false; }
  Status submit(const FrameJob&) override { return {}; }
};

/// Whether the object lock of the element is held.
bool is_locked() {
  if (!GST_OBJECT_TRYLOCK(element)) return true;
  GST_OBJECT_UNLOCK(element);
  return false;
}

struct WatchingElement : PictureFilter {
  static constexpr const char *type_name = "GstCudaVisionWatching", *element_name = "watching", *long_name = "Watching",
                              *klass = "Filter", *description = "Looks at the base class";
  struct Settings {
    guint size = 0;
  };
  static std::vector<Property<Settings>> properties() {
    return {Property<Settings>::count("size", "Size", &Settings::size, 0, 10, "{}")};
  }
  static Status check(const Settings&) { return {}; }
  static Result<FilterPlan> make_plan(const Settings& settings, const PlanContext&) {
    ++plans;
    with_lock += is_locked();
    // another change while the plan for the previous change is made
    if (plans == 2) g_object_set(element, "size", 3, nullptr);
    expect(settings.size == (plans == 1 ? 0u : plans == 2 ? 2u : 3u), "a plan is made from one state of the settings");
    return FilterPlan{std::make_unique<Watching>(), {}};
  }
};

/// Making a plan can be slow, because kernels are loaded and the GPU is waited for. Reading and setting properties must
/// not wait for it.
void makes_plans_without_the_object_lock() {
  element = gst_element_factory_make("watching", nullptr);
  gst_object_ref_sink(element);
  g_object_set(element, "backend", 2, nullptr);  // cpu
  GstHarness* harness = gst_harness_new_with_element(element, "sink", "src");
  gst_harness_set_src_caps_str(harness, "video/x-raw,format=GRAY8,width=4,height=4,framerate=25/1");
  const auto push = [&] {
    const GstFlowReturn flow = gst_harness_push(harness, gst_buffer_new_allocate(nullptr, 16, nullptr));
    expect(flow == GST_FLOW_OK, "a frame passes");
    gst_buffer_unref(gst_harness_pull(harness));
  };
  push();
  expect(plans == 1, "a plan is made for the caps");
  g_object_set(element, "size", 2, nullptr);
  push();
  push();
  expect(plans == 3, "a plan is made for each change, also for one that comes meanwhile");
  expect(with_lock == 0, "the object lock is free while a plan is made");
  guint size = 0;
  g_object_get(element, "size", &size, nullptr);
  expect(size == 3, "the last change stays");
  gst_harness_teardown(harness);
  gst_object_unref(element);
}

using Caps = Owned<GstCaps>;

void leaves_out_memory_that_it_cannot_use() {
  for (bool with_cuda : {true, false})
    for (const auto& [memory, usable] : {std::pair{"", true},
                                         {"(ANY)", true},
                                         {"(memory:CUDAMemory)", with_cuda},
                                         {"(memory:CUDAMemory, meta:GstVideoOverlayComposition)", false},
                                         {"(memory:GLMemory)", false}}) {
      const std::string text = std::string("video/x-raw") + memory + ",format=NV12,width=64,height=48";
      const Caps caps(gst_caps_from_string(text.c_str())), left(usable_caps(caps.get(), with_cuda));
      expect(!gst_caps_is_empty(left.get()) == usable, text + (with_cuda ? " with" : " without") + " CUDA");
    }
}

/// Whether the element `last` of a pipeline would answer a caps query with CUDA memory only.
bool insists(GstElement* pipeline) {
  g_autoptr(GstElement) last = gst_bin_get_by_name(GST_BIN(pipeline), "last");
  g_autoptr(GstPad) sink = gst_element_get_static_pad(last, "sink");
  const Caps answer(
      insist_on_cuda(gst_caps_from_string("video/x-raw(memory:CUDAMemory),format=NV12;video/x-raw,format=NV12"), sink));
  return gst_caps_get_size(answer.get()) == 1 && is_cuda_caps(answer.get());
}

void asks_other_branches_each_time() {
  for (const auto& [branch, takes_cuda] :
       {std::pair{"fakesink", true}, {"video/x-raw ! fakesink", false}, {"fakesink", true}}) {
    g_autoptr(GstElement) pipeline =
        gst_parse_launch((std::string("tee name=t ! fakesink name=last  t. ! ") + branch).c_str(), nullptr);
    expect(insists(pipeline) == takes_cuda, std::string("beside ") + branch);
  }
}

/// An element with several inputs may mix memories. It is recognised even if its second input appears while its pads
/// are examined.
void notices_an_input_that_comes_meanwhile() {
  for (bool comes : {false, true}) {
    g_autoptr(GstElement) pipeline = gst_parse_launch("identity ! funnel name=f ! fakesink name=last", nullptr);
    g_autoptr(GstElement) funnel = gst_bin_get_by_name(GST_BIN(pipeline), "f");
    g_autoptr(GstPad) src = gst_element_get_static_pad(funnel, "src");
    if (comes)
      gst_pad_set_iterate_internal_links_function(
          src, +[](GstPad* pad, GstObject* parent) {
            GstIterator* links = gst_pad_iterate_internal_links_default(pad, parent);
            gst_object_unref(gst_element_request_pad_simple(GST_ELEMENT(parent), "sink_%u"));
            return links;
          });
    expect(insists(pipeline) != comes, comes ? "another input comes" : "there is one input");
  }
}

using namespace std::chrono_literals;

/// Waits until a condition is true, at most a minute. Returns whether it became true.
template <typename F>
bool comes_true(F&& condition) {
  for (const auto late = Deadline::Clock::now() + 60s; !condition() && Deadline::Clock::now() < late;)
    std::this_thread::sleep_for(1ms);
  return condition();
}

void calls_at_the_deadline() {
  std::atomic<int> calls{0};
  Deadline deadline([&] {
    ++calls;
    return Deadline::Time();
  });
  deadline.set(Deadline::Clock::now() + 1h);
  deadline.set(Deadline::Clock::now() + 2h);
  expect(calls == 0, "a deadline in the future is not reached");
  const auto soon = Deadline::Clock::now() + 20ms;
  deadline.set(soon);
  expect(comes_true([&] { return calls == 1; }), "an earlier deadline replaces a later one");
  expect(Deadline::Clock::now() >= soon, "it is reached when its time has come");
  deadline.set(Deadline::Clock::now() + 20ms);
  expect(comes_true([&] { return calls == 2; }), "a deadline can be set again");
  for (const auto& later : {Deadline::Time(), Deadline::Time(Deadline::Clock::now() + 1h)}) {
    Deadline::Clock::time_point taken_back;
    do {  // repeated if this thread was delayed that long
      calls = 0;
      taken_back = Deadline::Clock::now() + 50ms;
      deadline.set(taken_back);
      deadline.set(later);
    } while (Deadline::Clock::now() >= taken_back);
    std::this_thread::sleep_until(taken_back + 50ms);
    expect(calls == 0, "a deadline that is taken back, or moved, is not reached");
  }
}

void sets_deadlines_from_the_function() {
  std::atomic<int> calls{0};
  Deadline deadline([&] { return ++calls < 5 ? Deadline::Time(Deadline::Clock::now()) : std::nullopt; });
  deadline.set(Deadline::Clock::now());
  expect(comes_true([&] { return calls == 5; }), "the function returns the next deadline");
}

void ends_after_the_function() {
  std::atomic<bool> begun{false}, ended{false};
  {
    Deadline deadline([&] {
      begun = true;
      std::this_thread::sleep_for(50ms);
      ended = true;
      return Deadline::Time();
    });
    deadline.set(Deadline::Clock::now());
    expect(comes_true([&] { return begun.load(); }), "the function is called");
  }
  expect(ended, "the destructor waits for the function");
}

void ends_in_the_function() {
  std::atomic<bool> is_set{false}, ended{false};
  auto* deadline = new std::optional<Deadline>;
  deadline->emplace([&, deadline] {
    while (!is_set) std::this_thread::yield();
    deadline->reset();  // like a probe that stops the element
    delete deadline;
    ended = true;
    return Deadline::Time(Deadline::Clock::now());
  });
  (*deadline)->set(Deadline::Clock::now());
  is_set = true;
  expect(comes_true([&] { return ended.load(); }), "the function can end the deadline");
}

void knows_the_time_between_frames() {
  const auto time_of = [](int rate_n, int rate_d) {
    GstVideoInfo video;
    gst_video_info_set_format(&video, GST_VIDEO_FORMAT_GRAY8, 16, 16);
    video.fps_n = rate_n, video.fps_d = rate_d;
    return time_between_frames(video);
  };
  expect(time_of(30000, 1001) == 33'366'666, "the time is 1 s ÷ the rate, rounded down");
  expect(time_of(1, 60) == 60 * GST_SECOND, "a frame a minute is a rate");
  for (const auto& [n, d] : {std::pair{1, 61}, {0, 1}, {-1, 1}, {1, -1}})
    expect(time_of(n, d) == GST_CLOCK_TIME_NONE, "rarer frames, and rates that are none, have no time");
}

void polls_while_an_object_is_busy() {
  std::atomic<int> polls{0};
  Polled polled(Polled::Purpose::reports, [&] { return ++polls < 3; });
  expect(polls == 0, "an object that is not busy is not polled");
  for (int expected : {3, 4}) {
    polled.wake();
    expect(comes_true([&] { return polls == expected; }), "a busy object is polled until it is no longer busy");
  }
  g_usleep(50'000);
  expect(polls == 4, "and no longer");
}

}  // namespace

int main(int argc, char** argv) {
  gst_check_init(&argc, &argv);
  FilterElement<WatchingElement>::register_in(nullptr);
  makes_plans_without_the_object_lock();
  leaves_out_memory_that_it_cannot_use();
  asks_other_branches_each_time();
  notices_an_input_that_comes_meanwhile();
  calls_at_the_deadline();
  sets_deadlines_from_the_function();
  ends_after_the_function();
  ends_in_the_function();
  knows_the_time_between_frames();
  polls_while_an_object_is_busy();
  return cudavision::test::exit_status();
}
