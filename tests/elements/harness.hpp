// SPDX-License-Identifier: LGPL-2.1-or-later
// What the element tests are written in: tests that run on every backend there is, frames, and one element between two pads.
#pragma once

#include <memory>
#include <opencv2/core.hpp>
#include <sstream>
#include <string>
#include <type_traits>
#include <vector>

#include "tests/elements/profiles.hpp"

// Last: its macro fail() is also a name in C++.
#include <gst/check/gstcheck.h>
#include <gst/check/gstharness.h>
#include <gst/video/video.h>

namespace cudavision::test {

// Tests -------------------------------------------------------------------------------------------------------------------------

/// What a test is run with: an element of the plugin, on one of the backends that work here.
struct Run {
  std::string element, backend;
};

enum class Each {
  run,      ///< every filter of the suite, or the one element it is about, on every backend that works here
  element,  ///< every element of the suite, whatever the backend
};

/// Every element of the plugin, or the one of this name, with backend=auto.
std::vector<Run> find_elements(const char* only = nullptr);
/// Those of them that make one frame of one frame, on a backend; none where that does not work here, which is said.
std::vector<Run> find_filters(const std::vector<Run>& elements, const char* backend);

struct Test {
  Test(const char* name, Each each, void (*body)(int));
};

const Run& begin(Each each, int index);

/// Defines a test; it gets `const Run& run`.
#define TEST(name, each)                                                                            \
  static void name(const ::cudavision::test::Run&);                                                 \
  static const ::cudavision::test::Test name##_test{#name, each, [](int index) {                    \
                                                      tcase_fn_start(#name, __FILE__, __LINE__);    \
                                                      name(::cudavision::test::begin(each, index)); \
                                                      gst_task_cleanup_all();                       \
                                                    }};                                             \
  static void name([[maybe_unused]] const ::cudavision::test::Run& run)

enum class Needs { any_backend, cuda };

/// The main() of a test program. `element`: the one it is about; NULL: every element of the plugin. Its exit code is 77 (skipped)
/// where nothing can be run.
int run_tests(const char* suite, const char* element = nullptr, Needs needs = Needs::any_backend);

/// Whether this process may look for devices anew: each test has one of its own, unless CK_FORK=no.
bool own_process();

/// Says what a test is at, for the messages of its failures.
void at(const std::string& what);
std::string where();

template <typename T>
std::string show(const T& value) {
  std::ostringstream text;
  text << value;
  return text.str();
}
/// Numbers by their values, whatever their types.
template <typename A, typename B>
bool same(const A& a, const B& b) {
  if constexpr (std::is_integral_v<A> && std::is_integral_v<B>)
    return gint64(a) == gint64(b);
  else
    return a == b;
}

/// As fail_unless(), which writes a file each time it passes, and only knows one thread.
#define FAIL_UNLESS(condition, ...)                    \
  do {                                                 \
    if (!(condition)) fail_unless(FALSE, __VA_ARGS__); \
  } while (0)
#define EXPECT(condition) FAIL_UNLESS(condition, "%s: not so: %s", ::cudavision::test::where().c_str(), #condition)
#define EXPECT_EQ(actual, expected)                                                                                            \
  do {                                                                                                                         \
    const auto& actual_ = (actual);                                                                                            \
    const auto& expected_ = (expected);                                                                                        \
    FAIL_UNLESS(::cudavision::test::same(actual_, expected_), "%s: %s is %s, and not %s", ::cudavision::test::where().c_str(), \
                #actual, ::cudavision::test::show(actual_).c_str(), ::cudavision::test::show(expected_).c_str());              \
  } while (0)
/// Of pictures; the message says where they differ.
#define EXPECT_SAME(actual, expected) EXPECT_WITHIN(actual, expected, 0)
#define EXPECT_WITHIN(actual, expected, tolerance)                                                                                \
  do {                                                                                                                            \
    const std::string wrong_ = ::cudavision::test::difference((actual), (expected), (tolerance));                                 \
    FAIL_UNLESS(wrong_.empty(), "%s: %s is not %s: %s", ::cudavision::test::where().c_str(), #actual, #expected, wrong_.c_str()); \
  } while (0)
#define EXPECT_CONTAINS(text, part)                                                                 \
  FAIL_UNLESS(std::string(text).find(part) != std::string::npos, "%s: \"%s\" does not name \"%s\"", \
              ::cudavision::test::where().c_str(), std::string(text).c_str(), std::string(part).c_str())

// Owners ------------------------------------------------------------------------------------------------------------------------

struct Release {
  void operator()(GstBuffer* held) const { gst_buffer_unref(held); }
  void operator()(GstCaps* held) const { gst_caps_unref(held); }
  void operator()(GstEvent* held) const { gst_event_unref(held); }
  void operator()(GstQuery* held) const { gst_query_unref(held); }
};
using Buffer = std::unique_ptr<GstBuffer, Release>;
using Caps = std::unique_ptr<GstCaps, Release>;
using Event = std::unique_ptr<GstEvent, Release>;
using Query = std::unique_ptr<GstQuery, Release>;

// Frames ------------------------------------------------------------------------------------------------------------------------

struct Size {
  int width, height;
};

/// The formats of the element's sink template in this memory (NULL: system memory).
std::vector<std::string> formats(const Run& run, const char* feature = nullptr);
std::string caps_text(const std::string& format, Size size, const std::string& more = "", const char* feature = nullptr);
GstVideoInfo video_info(const std::string& format, Size size);

/// A frame of noise over all that the format's depth allows, tightly packed (with GStreamer's default strides).
Buffer noise(const GstVideoInfo& video, unsigned seed = 1);
/// A frame whose components have one value each.
Buffer flat(const GstVideoInfo& video, const std::vector<int>& values);
/// One of black, in every pixel (and without opacity).
Buffer black(const GstVideoInfo& video);
/// A frame like `frame`, cut out of it.
Buffer cut(const GstVideoInfo& video, GstBuffer* frame, const GstVideoRectangle& rectangle);
/// The same frame with rows and planes apart, every byte between them `poison`, and a GstVideoMeta that says so.
Buffer spread(const GstVideoInfo& video, GstBuffer* frame, guint8 poison);

/// A picture as one matrix (CV_16U) of sample values for each component: R, G, B(, A, or padding), Y, Cb, Cr.
using Picture = std::vector<cv::Mat>;
Picture picture(GstBuffer* buffer, const GstVideoInfo& video);
std::string difference(const Picture& actual, const Picture& expected, int tolerance);
/// Where the pixels of a component of the format lie, in a picture.
cv::Rect scaled(const GstVideoInfo& video, int component, const cv::Rect& pixels);

// Elements ----------------------------------------------------------------------------------------------------------------------

/// Sets properties as written on a command line ("sigma=2 kernel-size=9"), all in one g_object_set.
void set(gpointer object, const std::string& settings);
/// (transfer full, floating) The element on the run's backend, with what its profile needs to work and then `settings`.
GstElement* make_element(const Run& run, const std::string& settings = "");
/// Makes an element use one CUDA context with all others of this process: to make one takes longer than most tests.
GstElement* with_shared_context(GstElement* element, const Run& run);
std::string get_enum(gpointer object, const char* property);

struct Message {
  GQuark domain = 0;
  int code = 0;
  std::string text;  ///< empty: there was no message
};
/// The first message of this type that waits on a bus; those before it are dropped. Waits up to `wait` for one.
Message pop_message(GstBus* bus, GstMessageType type, GstClockTime wait = 0);

/// One element, playing between the pads of a harness.
class Rig {
 public:
  explicit Rig(const Run& run, const std::string& settings = "");
  explicit Rig(GstElement* element);
  ~Rig();
  Rig(const Rig&) = delete;
  Rig& operator=(const Rig&) = delete;

  GstHarness* harness() const { return harness_; }
  GstElement* element() const { return harness_->element; }
  const GstVideoInfo& video() const { return video_; }
  Caps src_caps() const;

  void caps(const std::string& text);
  /// As caps(), but an element that remembers has not seen a black frame afterwards.
  void caps_alone(const std::string& text);
  /// Pushes a frame and pulls what it became. Fails the test where nothing comes.
  Buffer push(Buffer frame);
  /// As push(), with a copy of the frame.
  Picture filter(const Buffer& frame);
  Message warning() { return pop_message(bus_, GST_MESSAGE_WARNING); }
  Message error() { return pop_message(bus_, GST_MESSAGE_ERROR); }

 private:
  GstHarness* harness_;
  GstBus* bus_;
  GstVideoInfo video_;
};

/// What a new element makes of a frame.
Picture filtered(const Run& run, const std::string& settings, const GstVideoInfo& video, const Buffer& frame);

}  // namespace cudavision::test
