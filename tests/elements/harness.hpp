// SPDX-License-Identifier: LGPL-2.1-or-later
// The framework of the element tests: tests that run on every available backend, test frames, and one element between
// two pads.
#pragma once

#include <atomic>
#include <cstring>
#include <memory>
#include <opencv2/core.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <type_traits>
#include <vector>

#include "gst/base/owned.hpp"
#include "tests/elements/profiles.hpp"

// included last, because its macro fail() breaks C++ headers
#include <gst/check/gstcheck.h>
#include <gst/check/gstharness.h>
#include <gst/video/video.h>

namespace cudavision::test {

// Tests ---------------------------------------------------------------------------------------------------------------

/// One run of a test: an element of the plugin on a backend that works on this machine.
struct Run {
  std::string element, backend;
};

enum class Each {
  run,      ///< every filter, or the only element of the suite, on every backend that works on this machine
  element,  ///< every element of the suite, with backend=auto
};

/// Returns every element of the plugin, or the one named `only`, with backend=auto.
std::vector<Run> find_elements(const char* only = nullptr);
/// Returns the filters among these elements, on a backend. If the backend does not work here, prints a line and returns
/// none.
std::vector<Run> find_filters(const std::vector<Run>& elements, const char* backend);

struct Test {
  Test(const char* name, Each each, void (*body)(int));
};

const Run& begin(Each each, int index);

/// Defines a test. Its body can use `const Run& run`.
#define TEST(name, each)                                                                            \
  static void name(const ::cudavision::test::Run&);                                                 \
  static const ::cudavision::test::Test name##_test{#name, each, [](int index) {                    \
                                                      tcase_fn_start(#name, __FILE__, __LINE__);    \
                                                      name(::cudavision::test::begin(each, index)); \
                                                      gst_task_cleanup_all();                       \
                                                    }};                                             \
  static void name([[maybe_unused]] const ::cudavision::test::Run& run)

enum class Needs { any_backend, cuda };

/// The main() of a test program. `element` is the only element to test, or NULL for every element of the plugin.
/// Returns the exit code: 77 (skipped) if no backend works.
int run_tests(const char* suite, const char* element = nullptr, Needs needs = Needs::any_backend);

/// Whether each test runs in its own process (unless CK_FORK=no). A test may then initialise the CUDA driver
/// differently.
bool own_process();

/// Sets the current step of a test. Failure messages contain it.
void at(const std::string& what);
std::string where();

template <typename T>
std::string show(const T& value) {
  std::ostringstream text;
  text << value;
  return text.str();
}
/// Compares integers by value, even if their types differ.
template <typename A, typename B>
bool same(const A& a, const B& b) {
  if constexpr (std::is_integral_v<A> && std::is_integral_v<B>)
    return gint64(a) == gint64(b);
  else
    return a == b;
}

/// Like fail_unless(), but faster and safe in any thread. fail_unless() writes a file each time it passes.
#define FAIL_UNLESS(condition, ...)                    \
  do {                                                 \
    if (!(condition)) fail_unless(FALSE, __VA_ARGS__); \
  } while (0)
#define EXPECT(condition) FAIL_UNLESS(condition, "%s: not so: %s", ::cudavision::test::where().c_str(), #condition)
#define EXPECT_EQ(actual, expected)                                                                      \
  do {                                                                                                   \
    const auto& actual_ = (actual);                                                                      \
    const auto& expected_ = (expected);                                                                  \
    FAIL_UNLESS(::cudavision::test::same(actual_, expected_), "%s: %s is %s, and not %s",                \
                ::cudavision::test::where().c_str(), #actual, ::cudavision::test::show(actual_).c_str(), \
                ::cudavision::test::show(expected_).c_str());                                            \
  } while (0)
/// Compares pictures. The message tells where they differ.
#define EXPECT_SAME(actual, expected) EXPECT_WITHIN(actual, expected, 0)
#define EXPECT_WITHIN(actual, expected, tolerance)                                                               \
  do {                                                                                                           \
    const std::string wrong_ = ::cudavision::test::difference((actual), (expected), (tolerance));                \
    FAIL_UNLESS(wrong_.empty(), "%s: %s is not %s: %s", ::cudavision::test::where().c_str(), #actual, #expected, \
                wrong_.c_str());                                                                                 \
  } while (0)
#define EXPECT_CONTAINS(text, part)                                                                 \
  FAIL_UNLESS(std::string(text).find(part) != std::string::npos, "%s: \"%s\" does not name \"%s\"", \
              ::cudavision::test::where().c_str(), std::string(text).c_str(), std::string(part).c_str())

// Owners --------------------------------------------------------------------------------------------------------------

using Buffer = Owned<GstBuffer>;
using Caps = Owned<GstCaps>;
using Event = Owned<GstEvent>;
using Query = Owned<GstQuery>;
using Sample = Owned<GstSample>;

// Frames --------------------------------------------------------------------------------------------------------------

inline constexpr const char* cuda_memory = "memory:CUDAMemory";

struct Size {
  int width, height;
};

/// The formats that the element's sink template lists for this memory (NULL: system memory).
std::vector<std::string> formats(const Run& run, const char* feature = nullptr);
std::string caps_text(const std::string& format, Size size, const std::string& more = "",
                      const char* feature = nullptr);
GstVideoInfo video_info(const std::string& format, Size size);
std::string caps_of(const GstVideoInfo& video, const char* feature = nullptr);

/// Makes a frame of noise over the full range of the format, with GStreamer's default strides.
Buffer noise(const GstVideoInfo& video, unsigned seed = 1);
/// Makes a frame with one value for each component.
Buffer flat(const GstVideoInfo& video, const std::vector<int>& values);
/// Makes a black frame. Its alpha, if any, is 0.
Buffer black(const GstVideoInfo& video);
void copy_frame(GstBuffer* from, GstBuffer* to, const GstVideoInfo& video);
inline Buffer copied(const Buffer& frame) { return Buffer(gst_buffer_copy_deep(frame.get())); }
Buffer cut(const GstVideoInfo& video, GstBuffer* frame, const GstVideoRectangle& rectangle);
void add_crop(GstBuffer* frame, const GstVideoRectangle& part);
/// Adds a GstVideoCropMeta, after a GstVideoMeta of the whole frame.
void add_crop(GstBuffer* frame, const GstVideoInfo& whole, const GstVideoRectangle& part);
Buffer timed(Buffer frame, GstClockTime pts, GstClockTime duration = 40 * GST_MSECOND);
/// Writes value(x, y) to the 8-bit samples of the first component in the visible part of a rectangle.
template <typename F>
void paint(const GstVideoInfo& video, const Buffer& frame, const cv::Rect& rect, F&& value) {
  GstVideoFrame map;
  EXPECT(gst_video_frame_map(&map, &video, frame.get(), GST_MAP_WRITE));
  const cv::Rect all(0, 0, GST_VIDEO_INFO_WIDTH(&video), GST_VIDEO_INFO_HEIGHT(&video)), inside = rect & all;
  for (int y = inside.y; y < inside.br().y; ++y)
    for (int x = inside.x; x < inside.br().x; ++x)
      static_cast<guint8*>(GST_VIDEO_FRAME_COMP_DATA(
          &map, 0))[y * GST_VIDEO_FRAME_COMP_STRIDE(&map, 0) + x * GST_VIDEO_FRAME_COMP_PSTRIDE(&map, 0)] =
          guint8(value(x, y));
  gst_video_frame_unmap(&map);
}
inline void paint(const GstVideoInfo& video, const Buffer& frame, const cv::Rect& rect, int value) {
  paint(video, frame, rect, [value](int, int) { return value; });
}
/// The regions of interest of a frame, in order.
std::vector<GstVideoRegionOfInterestMeta*> rois_of(GstBuffer* frame);
cv::Rect box_of(const GstVideoRegionOfInterestMeta* roi);
/// Copies a frame with padding between rows and planes, filled with `poison`. The copy has a matching GstVideoMeta.
Buffer spread(const GstVideoInfo& video, GstBuffer* frame, guint8 poison);

/// A picture as one CV_16U matrix of samples for each component: R, G, B (then A or padding), or Y, Cb, Cr.
using Picture = std::vector<cv::Mat>;
Picture picture(GstBuffer* buffer, const GstVideoInfo& video);
std::string difference(const Picture& actual, const Picture& expected, int tolerance);
/// Converts a rectangle in pixels to a rectangle in the samples of a component.
cv::Rect scaled(const GstVideoInfo& video, int component, const cv::Rect& pixels);

// Elements ------------------------------------------------------------------------------------------------------------

/// Sets properties from command-line text ("sigma=2 kernel-size=9"), all in one g_object_set.
void set(gpointer object, const std::string& settings);
/// (transfer full, floating) Makes the element on the backend of the run, with the `needs` of its profile and then
/// `settings`.
GstElement* make_element(const Run& run, const std::string& settings = "");
/// Makes an element use the CUDA context shared in this process. Creating a context takes longer than most tests.
GstElement* with_shared_context(GstElement* element, const Run& run);
std::string get_enum(gpointer object, const char* property);
/// The value of a property whose C type is T.
template <typename T>
T get(gpointer object, const char* property) {
  T value{};
  g_object_get(object, property, &value, nullptr);
  return value;
}
/// The value of a property as on a command line; "none" for a NULL string.
std::string value_text(gpointer object, GParamSpec* spec);
template <typename F>
void each_property(gpointer object, F&& f) {
  guint count = 0;
  GParamSpec** specs = g_object_class_list_properties(G_OBJECT_GET_CLASS(object), &count);
  for (guint i = 0; i < count; ++i) f(specs[i]);
  g_free(specs);
}
/// Whether a class of the plugin defines the property, not an inherited class.
bool is_own(const GParamSpec* spec);
/// Moves a property from one value to another between time 0 and `end`. With `absolute`, these are values of the
/// property. Otherwise 0 and 1 are the ends of its range.
void control(gpointer object, const char* property, double from, double to, GstClockTime end, bool absolute);

struct Message {
  GQuark domain = 0;
  int code = 0;
  std::string text;  ///< empty: there was no message
  bool is_error = false;
};
Message read_message(GstMessage* message);
/// Pops the first message of this type from a bus and drops earlier ones. Waits up to `wait` for one.
Message pop_message(GstBus* bus, GstMessageType type, GstClockTime wait = 0);

class Told {
 public:
  explicit Told(const GstStructure* message) : structure_(gst_structure_copy(message), gst_structure_free) {}

  std::string name() const { return gst_structure_get_name(structure_.get()); }
  int size() const { return gst_structure_n_fields(structure_.get()); }
  bool has(const char* field) const { return gst_structure_has_field(structure_.get(), field); }

  // The value of a field, which must exist and have this type.
  std::string text(const char* field) const { return g_value_get_string(value(field, G_TYPE_STRING)); }
  int integer(const char* field) const { return g_value_get_int(value(field, G_TYPE_INT)); }
  guint count(const char* field) const { return g_value_get_uint(value(field, G_TYPE_UINT)); }
  guint64 time(const char* field) const { return g_value_get_uint64(value(field, G_TYPE_UINT64)); }
  bool flag(const char* field) const { return g_value_get_boolean(value(field, G_TYPE_BOOLEAN)); }
  double number(const char* field) const { return g_value_get_double(value(field, G_TYPE_DOUBLE)); }
  /// The structures in an array.
  std::vector<Told> list(const char* field) const;
  /// The texts in an array: "a,b".
  std::string texts(const char* field) const;
  std::vector<guint64> counts(const char* field) const;
  /// The fields x, y, width and height, with `prefix` before their names.
  cv::Rect box(const std::string& prefix = "") const;

 private:
  const GValue* value(const char* field, GType type) const;

  std::shared_ptr<GstStructure> structure_;
};
/// Pops the element's next message, if one arrives within `wait`.
std::optional<Told> next_message(GstElement* element, GstClockTime wait = 0);
/// The element messages since the last call.
std::vector<Told> messages_of(GstElement* element);

/// Counts the log lines that contain a text.
class LineCount {
 public:
  explicit LineCount(const char* text) : text_(text) {
    gst_debug_set_active(TRUE);
    gst_debug_set_threshold_for_name("cudavision", GST_LEVEL_LOG);
    gst_debug_add_log_function(count, this, nullptr);
  }
  ~LineCount() {
    gst_debug_remove_log_function_by_data(this);
    gst_debug_set_threshold_for_name("cudavision", GST_LEVEL_NONE);
    gst_debug_set_active(FALSE);
  }
  LineCount(const LineCount&) = delete;
  LineCount& operator=(const LineCount&) = delete;

  /// The number of lines since the last call.
  int take() { return lines_.exchange(0); }

 private:
  static void count(GstDebugCategory* category, GstDebugLevel, const gchar*, const gchar*, gint, GObject*,
                    GstDebugMessage* message, gpointer self) {
    auto* lines = static_cast<LineCount*>(self);
    if (g_strcmp0(gst_debug_category_get_name(category), "cudavision") == 0 &&
        std::strstr(gst_debug_message_get(message), lines->text_))
      ++lines->lines_;
  }

  const char* const text_;
  std::atomic<int> lines_{0};
};

/// Plays a pipeline until its end or an error. Returns that message (transfer full), or null on a timeout.
GstMessage* play_to_end(GstElement* pipeline, GstClockTime wait = 20 * GST_SECOND);

/// One element in state PLAYING between the pads of a harness.
class Rig {
 public:
  /// Calls caps(caps) if there are caps.
  explicit Rig(const Run& run, const std::string& settings = "", const std::string& caps = "");
  explicit Rig(GstElement* element);
  ~Rig();
  Rig(const Rig&) = delete;
  Rig& operator=(const Rig&) = delete;

  GstHarness* harness() const { return harness_; }
  GstElement* element() const { return harness_->element; }
  const GstVideoInfo& video() const { return video_; }
  Caps src_caps() const;

  void caps(const std::string& text);
  /// Like caps(), without the black frame that caps() pushes for an element with Profile::remembers.
  void caps_alone(const std::string& text);
  /// Pushes a frame and pulls the result. The test fails if there is none.
  Buffer push(Buffer frame);
  /// Like push(), with a copy of the frame.
  Picture filter(const Buffer& frame);
  Message warning() { return pop_message(bus_, GST_MESSAGE_WARNING); }
  Message error() { return pop_message(bus_, GST_MESSAGE_ERROR); }

 private:
  GstHarness* harness_;
  GstBus* bus_;
  GstVideoInfo video_;
};

void flush(const Rig& rig);
/// A segment of times that starts at 0. `change` may modify it.
template <typename F>
GstEvent* new_segment(F&& change) {
  GstSegment segment;
  gst_segment_init(&segment, GST_FORMAT_TIME);
  change(segment);
  return gst_event_new_segment(&segment);
}
inline GstEvent* new_segment() {
  return new_segment([](GstSegment&) {});
}

/// All frames of a pipeline, which has an appsink named `out` at its end. The test fails if the pipeline does not end.
/// (transfer full)
std::vector<Sample> samples_of(GstElement* pipeline);
std::vector<Picture> frames_of(GstElement* pipeline, const GstVideoInfo& video);
std::vector<Picture> frames_of(const std::string& pipeline, const GstVideoInfo& video);

/// The output of a new element for one frame.
Picture filtered(const Run& run, const std::string& settings, const GstVideoInfo& video, const Buffer& frame);

}  // namespace cudavision::test
