// SPDX-License-Identifier: LGPL-2.1-or-later
// Compares cudablend with GStreamer's compositor on the same frames, and with formulas in double precision.
#include <dlfcn.h>
#include <gst/controller/gstdirectcontrolbinding.h>
#include <gst/controller/gstinterpolationcontrolsource.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <tuple>

#include "tests/elements/harness.hpp"

using namespace cudavision::test;

namespace {

constexpr GstClockTime frame_time = GST_SECOND / 25, patience = 10 * GST_SECOND;
constexpr int max_pads = 64;
const Run compositor{"compositor", ""};
const char* const cuda_memory = "memory:CUDAMemory";
/// A Mixer turns buffers with this flag into gap events.
constexpr GstBufferFlags as_gap_event = GST_BUFFER_FLAG_CORRUPTED;
const std::string as_gap_event_name = "corrupted";

// Pictures ----------------------------------------------------------------------------------------------------------------------

using Color = std::array<double, 4>;  ///< R', G', B' and alpha from 0 to 255, or samples of any format

int sample(const Picture& picture, std::size_t component, int x, int y) { return picture[component].at<guint16>(y, x); }
Color pixel(const Picture& picture, int x, int y) {
  Color color{0, 0, 0, 255};
  for (std::size_t c = 0; c < std::min<std::size_t>(picture.size(), 4); ++c) color[c] = sample(picture, c, x, y);
  return color;
}
std::vector<int> integers(const Color& color) {
  return {int(std::lround(color[0])), int(std::lround(color[1])), int(std::lround(color[2])), int(std::lround(color[3]))};
}

/// A picture with one value for each component.
Picture plain(const GstVideoInfo& video, const std::vector<int>& values) { return picture(flat(video, values).get(), video); }
/// A picture with the sizes of `like` and color(x, y) at each pixel. Only for formats without subsampling.
template <typename F>
Picture drawn(const Picture& like, F&& color) {
  Picture result;
  for (const cv::Mat& component : like) result.push_back(component.clone());
  for (int y = 0; y < like[0].rows; ++y)
    for (int x = 0; x < like[0].cols; ++x) {
      const std::vector<int> values = integers(color(x, y));
      for (std::size_t c = 0; c < result.size(); ++c) result[c].at<guint16>(y, x) = guint16(values[c]);
    }
  return result;
}

struct ColorSpace {
  double red, green, blue, scale, chroma_scale, black, middle;

  explicit ColorSpace(const GstVideoInfo& video) {
    gst_video_color_matrix_get_Kr_Kb(video.colorimetry.matrix, &red, &blue);
    if (!GST_VIDEO_INFO_IS_YUV(&video) && !GST_VIDEO_INFO_IS_GRAY(&video)) red = blue = 0;
    green = 1 - red - blue;
    const int depth = GST_VIDEO_INFO_COMP_DEPTH(&video, 0);
    const bool limited = video.colorimetry.range == GST_VIDEO_COLOR_RANGE_16_235;
    const double step = double(1 << (depth - 8)), most = (1 << depth) - 1;
    black = limited ? 16 * step : 0;
    scale = limited ? 219 * step : most;
    chroma_scale = limited ? 224 * step : most;
    middle = 128 * step;
  }
};

/// The samples nearest to R'G'B' from 0 to 1.
std::vector<int> samples_of(const GstVideoInfo& video, double r, double g, double b) {
  const ColorSpace space(video);
  const int most = (1 << GST_VIDEO_INFO_COMP_DEPTH(&video, 0)) - 1;
  const auto near = [&](double value) { return int(std::clamp(std::nearbyint(value), 0.0, double(most))); };
  if (GST_VIDEO_INFO_IS_RGB(&video)) {
    const auto one = [&](double value) { return near(space.black + space.scale * value); };
    return {one(r), one(g), one(b), most};
  }
  const double y = space.red * r + space.green * g + space.blue * b;
  return {near(space.black + space.scale * y), near(space.middle + space.chroma_scale * (b - y) / (2 * (1 - space.blue))),
          near(space.middle + space.chroma_scale * (r - y) / (2 * (1 - space.red))), most};
}

/// Converts samples to R'G'B' from 0 to 1.
std::array<double, 3> rgb_of(const GstVideoInfo& video, const std::vector<int>& samples) {
  const ColorSpace space(video);
  const auto scaled = [&](int i) { return (samples[std::size_t(i)] - space.black) / space.scale; };
  std::array<double, 3> rgb;
  if (GST_VIDEO_INFO_IS_RGB(&video)) {
    rgb = {scaled(0), scaled(1), scaled(2)};
  } else {
    const auto chroma = [&](int i) { return (samples[std::size_t(i)] - space.middle) / space.chroma_scale; };
    const bool gray = GST_VIDEO_INFO_IS_GRAY(&video);
    const double y = scaled(0), cb = gray ? 0 : chroma(1), cr = gray ? 0 : chroma(2);
    const double r = y + 2 * (1 - space.red) * cr, b = y + 2 * (1 - space.blue) * cb;
    rgb = {r, (y - space.red * r - space.blue * b) / space.green, b};
  }
  for (double& value : rgb) value = std::clamp(value, 0.0, 1.0);
  return rgb;
}

// Pipelines ---------------------------------------------------------------------------------------------------------------------

/// An output frame of an aggregator.
struct Output {
  Buffer buffer;
  GstVideoInfo video;
  GstClockTime pts = 0, duration = 0;
  Picture shown() const { return picture(buffer.get(), video); }
};

std::string rated(const std::string& format, Size size, int rate, const std::string& more = "") {
  return "video/x-raw,format=" + format + ",width=" + std::to_string(size.width) + ",height=" + std::to_string(size.height) +
         ",framerate=" + std::to_string(rate) + "/1" + more;
}

/// An aggregator in its own pipeline, with an appsrc for each pad and an appsink, without a clock. No call waits forever.
class Mixer {
 public:
  /// `out`: caps of the output. Empty: the element chooses them.
  explicit Mixer(const Run& run, const std::string& settings = "", const std::string& out = "")
      : Mixer(with_shared_context(make_element(run, settings), run), out) {}
  Mixer(GstElement* element, const std::string& out)
      : pipeline_(gst_pipeline_new(nullptr)),
        element_(element),
        sink_(gst_element_factory_make("appsink", nullptr)),
        bus_(gst_element_get_bus(pipeline_)) {
    EXPECT(sink_);
    g_object_set(sink_, "sync", FALSE, "max-buffers", 8, nullptr);
    gst_bin_add_many(GST_BIN(pipeline_), element_, sink_, nullptr);
    const std::string text = "queue ! capsfilter name=out caps=\"" + (out.empty() ? "ANY" : out) + "\"";
    const bool on_device = out.find(cuda_memory) != std::string::npos;
    GstElement* tail = gst_parse_bin_from_description(
        (on_device ? text + " ! cudagaussian kernel-size=1 ! video/x-raw" : text).c_str(), TRUE, nullptr);
    EXPECT(tail);
    gst_bin_add(GST_BIN(pipeline_), tail);
    EXPECT(gst_element_link_many(element_, tail, sink_, nullptr));
  }
  ~Mixer() {
    gst_element_set_state(pipeline_, GST_STATE_NULL);
    for (const Input& input : inputs_) gst_object_unref(input.pad);
    gst_object_unref(bus_);
    gst_object_unref(pipeline_);
  }
  Mixer(const Mixer&) = delete;
  Mixer& operator=(const Mixer&) = delete;

  GstElement* element() const { return element_; }
  GstElement* pipeline() const { return pipeline_; }
  GstElement* source(int input) const { return inputs_[std::size_t(input)].source; }
  GstPad* pad(int input) const { return inputs_[std::size_t(input)].pad; }
  const GstVideoInfo& video(int input) const { return inputs_[std::size_t(input)].video; }

  /// Adds a pad and its source. `on_device`: frames come in CUDA memory. Returns the pad's number.
  int add(const std::string& caps, const std::string& settings = "", bool on_device = false) {
    Input input;
    input.pad = gst_element_request_pad_simple(element_, "sink_%u");
    EXPECT(input.pad);
    set(input.pad, settings);
    input.source = gst_element_factory_make("appsrc", nullptr);
    g_object_set(input.source, "format", GST_FORMAT_TIME, "max-bytes", guint64(0), nullptr);
    const std::string way =
        on_device ? "cudagaussian kernel-size=1 backend=cuda ! capsfilter caps=\"video/x-raw(" + std::string(cuda_memory) + ")\""
                  : std::string("identity drop-buffer-flags=" + as_gap_event_name);
    input.way = gst_parse_bin_from_description(way.c_str(), TRUE, nullptr);
    EXPECT(input.way);
    gst_bin_add_many(GST_BIN(pipeline_), input.source, input.way, nullptr);
    EXPECT(gst_element_link(input.source, input.way));
    GstPad* src = gst_element_get_static_pad(input.way, "src");
    EXPECT_EQ(gst_pad_link(src, input.pad), GST_PAD_LINK_OK);
    gst_object_unref(src);
    inputs_.push_back(input);
    caps_of(int(inputs_.size()) - 1, caps);
    gst_element_sync_state_with_parent(input.way);
    gst_element_sync_state_with_parent(input.source);
    return int(inputs_.size()) - 1;
  }

  /// Sets the caps of a pad's next frames.
  void caps_of(int input, const std::string& text) {
    Input& in = inputs_[std::size_t(input)];
    const Caps caps(gst_caps_from_string(text.c_str()));
    EXPECT(caps && gst_video_info_from_caps(&in.video, caps.get()));
    g_object_set(in.source, "caps", caps.get(), nullptr);
    in.frame_time =
        in.video.fps_n ? gst_util_uint64_scale(GST_SECOND, guint64(in.video.fps_d), guint64(in.video.fps_n)) : frame_time;
  }

  /// Pushes a pad's next frame with its timestamp.
  void push(int input, Buffer frame) {
    Input& in = inputs_[std::size_t(input)];
    GST_BUFFER_PTS(frame.get()) = in.next;
    GST_BUFFER_DURATION(frame.get()) = in.frame_time;
    in.next += in.frame_time;
    push_as_it_is(input, frame);
  }
  /// Pushes a frame and leaves its timestamp as it is, if it has one.
  void push_as_it_is(int input, const Buffer& frame) {
    GstFlowReturn flow;
    g_signal_emit_by_name(inputs_[std::size_t(input)].source, "push-buffer", frame.get(), &flow);
    EXPECT_EQ(flow, GST_FLOW_OK);
  }
  void skip_to(int input, GstClockTime time) { inputs_[std::size_t(input)].next = time; }
  void end(int input) {
    GstFlowReturn flow;
    g_signal_emit_by_name(inputs_[std::size_t(input)].source, "end-of-stream", &flow);
  }

  /// Releases a pad, as an application does while playing.
  void remove(int input) {
    Input& in = inputs_[std::size_t(input)];
    for (GstElement* element : {in.source, in.way})
      gst_element_set_locked_state(element, TRUE);      // the pipeline may be changing to PLAYING
    gst_element_release_request_pad(element_, in.pad);  // first, since the source may wait for the pad to accept a frame
    for (GstElement* element : {in.source, in.way}) gst_element_set_state(element, GST_STATE_NULL);
    gst_bin_remove_many(GST_BIN(pipeline_), in.source, in.way, nullptr);
  }

  /// Changes the caps that downstream accepts.
  void want(const std::string& text) {
    GstElement* filter = gst_bin_get_by_name(GST_BIN(pipeline_), "out");
    const Caps caps(gst_caps_from_string(text.c_str()));
    g_object_set(filter, "caps", caps.get(), nullptr);
    gst_object_unref(filter);
  }
  void play() { gst_element_set_state(pipeline_, GST_STATE_PLAYING); }
  void state(GstState state) {
    EXPECT(gst_element_set_state(pipeline_, state) != GST_STATE_CHANGE_FAILURE);
    if (state == GST_STATE_READY) gst_element_set_state(sink_, GST_STATE_NULL);  // in READY appsink would still be at EOS
  }
  void rewind() {
    for (Input& in : inputs_) in.next = 0;
  }

  /// Pulls the next frame. Returns nothing at EOS.
  std::optional<Output> pull() {
    GstSample* sample = nullptr;
    g_signal_emit_by_name(sink_, "try-pull-sample", guint64(patience), &sample);
    if (!sample) {
      gboolean ended = FALSE;
      g_object_get(sink_, "eos", &ended, nullptr);
      FAIL_UNLESS(ended, "%s: nothing came, and no end (%s)", where().c_str(), error(0).text.c_str());
      return {};
    }
    Output output;
    output.buffer.reset(gst_buffer_ref(gst_sample_get_buffer(sample)));
    EXPECT(gst_video_info_from_caps(&output.video, gst_sample_get_caps(sample)));
    output.pts = GST_BUFFER_PTS(output.buffer.get());
    output.duration = GST_BUFFER_DURATION(output.buffer.get());
    gst_sample_unref(sample);
    return output;
  }
  Output next() {
    std::optional<Output> output = pull();
    FAIL_UNLESS(bool(output), "%s: it ended too early", where().c_str());
    return std::move(*output);
  }
  std::vector<Output> rest() {
    std::vector<Output> all;
    while (std::optional<Output> output = pull()) {
      all.push_back(std::move(*output));
      FAIL_UNLESS(all.size() < 1000, "%s: it does not end", where().c_str());
    }
    return all;
  }

  Message warning(GstClockTime wait) { return pop_message(bus_, GST_MESSAGE_WARNING, wait); }
  void forget_messages() {
    gst_bus_set_flushing(bus_, TRUE);
    gst_bus_set_flushing(bus_, FALSE);
  }
  Message error(GstClockTime wait) { return pop_message(bus_, GST_MESSAGE_ERROR, wait); }

 private:
  struct Input {
    GstElement *source, *way;
    GstPad* pad;
    GstVideoInfo video;
    GstClockTime next = 0, frame_time = 0;
  };

  GstElement *pipeline_, *element_, *sink_;
  GstBus* bus_;
  std::vector<Input> inputs_;
};

/// A pad and its frames.
struct Layer {
  std::string caps, pad;
  std::function<Buffer(const GstVideoInfo&, int)> draw;
  int frames = 1;
  GstClockTime from = 0;

  /// Frames of noise, different from frame to frame.
  Layer(std::string caps_, std::string pad_ = "", int frames_ = 1, GstClockTime from_ = 0)
      : caps(std::move(caps_)), pad(std::move(pad_)), frames(frames_), from(from_) {}
  Layer(std::string caps_, std::string pad_, const std::vector<int>& color)
      : caps(std::move(caps_)),
        pad(std::move(pad_)),
        draw([color](const GstVideoInfo& video, int) { return flat(video, color); }) {}
};

Buffer frame_of(const Layer& layer, const GstVideoInfo& video, unsigned seed, int number) {
  return layer.draw ? layer.draw(video, number) : noise(video, seed * 100 + unsigned(number));
}

void feed(Mixer& mixer, const std::vector<Layer>& layers) {
  for (std::size_t i = 0; i < layers.size(); ++i) {
    mixer.skip_to(int(i), layers[i].from);
    for (int n = 0; n < layers[i].frames; ++n) mixer.push(int(i), frame_of(layers[i], mixer.video(int(i)), unsigned(i + 1), n));
    mixer.end(int(i));
  }
}

std::vector<Output> play(const Run& run, const std::string& settings, const std::string& out, const std::vector<Layer>& layers) {
  Mixer mixer(run, settings, out);
  for (const Layer& layer : layers) mixer.add(layer.caps, layer.pad);
  mixer.play();
  feed(mixer, layers);
  return mixer.rest();
}
/// Plays the layers and returns the first output frame.
Picture composed(const Run& run, const std::string& settings, const std::string& out, const std::vector<Layer>& layers) {
  std::vector<Output> all = play(run, settings, out, layers);
  EXPECT(!all.empty());
  return all[0].shown();
}
Picture source_picture(const Layer& layer, unsigned number, int frame = 0) {
  GstVideoInfo video;
  const Caps caps(gst_caps_from_string(layer.caps.c_str()));
  EXPECT(gst_video_info_from_caps(&video, caps.get()));
  return picture(frame_of(layer, video, number, frame).get(), video);
}

/// The picture without its padding component.
Picture seen(const Output& output) {
  Picture all = output.shown();
  all.resize(GST_VIDEO_INFO_N_COMPONENTS(&output.video));
  return all;
}

void expect_same(const std::vector<Output>& actual, const std::vector<Output>& expected, int tolerance, bool alpha_too = true) {
  EXPECT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    EXPECT_EQ(actual[i].pts, expected[i].pts);
    EXPECT_EQ(actual[i].duration, expected[i].duration);
    EXPECT_EQ(actual[i].video.fps_n, expected[i].video.fps_n);
    EXPECT_EQ(actual[i].video.fps_d, expected[i].video.fps_d);
    Picture shown = seen(actual[i]), other = seen(expected[i]);
    if (!alpha_too) shown.resize(3), other.resize(3);
    EXPECT_WITHIN(shown, other, tolerance);
  }
}
/// Expects the frames of compositor: the same number, timestamps and pictures.
void expect_compositor(const Run& run, const std::string& settings, const std::string& out, const std::vector<Layer>& layers,
                       int tolerance = 1, bool alpha_too = true) {
  const std::vector<Output> expected = play(compositor, settings, out, layers);
  EXPECT(!expected.empty());
  expect_same(play(run, settings, out, layers), expected, tolerance, alpha_too);
}

/// Whether compositor is installed. Prints a line if not.
bool have_compositor() {
  GstPluginFeature* feature = gst_registry_lookup_feature(gst_registry_get(), "compositor");
  if (!feature) std::printf("not compared: there is no compositor\n");
  const bool found = feature != nullptr;
  if (found) gst_object_unref(feature);
  return found;
}

template <typename F>
void each_property(gpointer object, F&& f) {
  guint count = 0;
  GParamSpec** specs = g_object_class_list_properties(G_OBJECT_GET_CLASS(object), &count);
  for (guint i = 0; i < count; ++i) f(specs[i]);
  g_free(specs);
}
std::string value_text(gpointer object, GParamSpec* spec) {
  GValue value = G_VALUE_INIT;
  g_value_init(&value, spec->value_type);
  g_object_get_property(G_OBJECT(object), spec->name, &value);
  gchar* text = G_VALUE_HOLDS_ENUM(&value) ? g_strdup(get_enum(object, spec->name).c_str()) : gst_value_serialize(&value);
  const std::string result = text ? text : "none";
  g_free(text);
  g_value_unset(&value);
  return result;
}

}  // namespace

// Properties --------------------------------------------------------------------------------------------------------------------

TEST(has_the_properties_of_the_specification, Each::element) {
  Mixer mixer(run);
  mixer.add(caps_text("RGB", {8, 8}));
  const auto expect = [&](gpointer object, const std::string& settings) {
    std::istringstream words(settings);
    for (std::string word; words >> word;) {
      const std::size_t equals = word.find('=');
      const std::string name = word.substr(0, equals);
      at(name);
      GParamSpec* spec = g_object_class_find_property(G_OBJECT_GET_CLASS(object), name.c_str());
      EXPECT(spec);
      EXPECT_EQ(value_text(object, spec), word.substr(equals + 1));
    }
  };
  expect(mixer.element(),
         "backend=auto background=checker background-color=4278190080 layout=manual columns=0 rows=0 gap=0 "
         "interpolation=bilinear zero-size-is-unscaled=true ignore-inactive-pads=false");
  expect(mixer.pad(0),
         "xpos=0 ypos=0 width=-1 height=-1 alpha=1 operator=over sizing-policy=none key=none key-tolerance=0 "
         "key-softness=0 repeat-after-eos=false");
}

TEST(has_every_property_of_compositor, Each::element) {
  if (!have_compositor()) return;
  Mixer own(run), theirs(compositor);
  for (int i = 0; i < 3; ++i) own.add(caps_text("RGB", {8, 8})), theirs.add(caps_text("RGB", {8, 8}));
  const auto compare = [&](gpointer actual, gpointer expected) {
    each_property(expected, [&](GParamSpec* spec) {
      const std::string name = spec->name;
      if (name == "name" || name == "parent" || name == "max-threads" || name == "converter-config" || name == "caps" ||
          name == "template" || name == "direction" || name == "offset")
        return;
      at(name);
      GParamSpec* same_spec = g_object_class_find_property(G_OBJECT_GET_CLASS(actual), spec->name);
      EXPECT(same_spec);
      EXPECT_EQ(value_text(actual, same_spec), value_text(expected, spec));
      if (spec->flags & GST_PARAM_CONTROLLABLE) EXPECT(same_spec->flags & GST_PARAM_CONTROLLABLE);
      if (!G_IS_PARAM_SPEC_ENUM(spec)) return;
      const auto* rows = G_PARAM_SPEC_ENUM(spec)->enum_class;
      for (guint i = 0; i < rows->n_values; ++i) {
        GEnumValue* row = g_enum_get_value_by_nick(G_PARAM_SPEC_ENUM(same_spec)->enum_class, rows->values[i].value_nick);
        FAIL_UNLESS(row, "%s: there is no %s", where().c_str(), rows->values[i].value_nick);
        EXPECT_EQ(row->value, rows->values[i].value);  // applications may use the numbers too
      }
    });
  };
  compare(own.element(), theirs.element());
  for (int i = 0; i < 3; ++i) {
    compare(own.pad(i), theirs.pad(i));
    gchar *actual = gst_pad_get_name(own.pad(i)), *expected = gst_pad_get_name(theirs.pad(i));
    EXPECT_EQ(std::string(actual), std::string(expected));
    g_free(actual), g_free(expected);
  }
}

TEST(uses_requested_pad_names, Each::element) {
  Mixer mixer(run);
  for (const char* name : {"sink_7", "sink_3"}) {
    GstPad* pad = gst_element_request_pad_simple(mixer.element(), name);
    EXPECT(pad);
    EXPECT_EQ(std::string(GST_PAD_NAME(pad)), std::string(name));
    GObject* child = gst_child_proxy_get_child_by_name(GST_CHILD_PROXY(mixer.element()), name);
    EXPECT(child == G_OBJECT(pad));
    g_object_unref(child);
    gst_object_unref(pad);
  }
  EXPECT_EQ(gst_child_proxy_get_children_count(GST_CHILD_PROXY(mixer.element())), 2u);
}

// Like compositor ---------------------------------------------------------------------------------------------------------------

TEST(equals_compositor, Each::run) {
  if (!have_compositor()) return;
  for (const char* format : {"RGBA", "BGRA", "ARGB", "ABGR", "RGB", "BGR", "RGBx", "I420", "NV12", "Y444", "GRAY8"})
    for (const char* op : {"source", "over", "add"})
      for (const char* background : {"black", "white", "checker", "transparent"}) {
        const bool has_alpha = std::string(format).find('A') != std::string::npos && format != std::string("GRAY8");
        if (!has_alpha && background == std::string("transparent")) continue;
        at(format + std::string(" ") + op + " on " + background);
        const std::string with = std::string("operator=") + op + " ";
        expect_compositor(run, std::string("background=") + background, caps_text(format, {96, 64}),
                          {{caps_text(format, {64, 48})},
                           {caps_text(format, {40, 32}), with + "xpos=30 ypos=10 alpha=0.65"},
                           {caps_text(format, {40, 32}), with + "xpos=70 ypos=40 alpha=1"},
                           {caps_text(format, {40, 32}), with + "xpos=-12 ypos=-6 alpha=0.3"},
                           {caps_text(format, {16, 16}), with + "xpos=2 ypos=2 alpha=0"}},
                          // compositor converts gray from another format at the end. If the sum of alpha exceeds its maximum,
                          // compositor 1.22 wraps around to 0.
                          format == std::string("GRAY8") ? 2 : 1,
                          background != std::string("transparent") || op != std::string("add"));
      }
}

/// Rounding errors add up with the number of pads, so cudablend rounds after each pad, as compositor does.
TEST(equals_compositor_in_stacks, Each::run) {
  if (!have_compositor()) return;
  for (const char* format : {"RGBA", "BGRA", "RGB", "I420", "NV12"})
    for (const char* background : {"transparent", "black", "checker"})
      for (const std::vector<std::string>& operators :
           std::vector<std::vector<std::string>>{{"over"}, {"source", "over"}, {"over", "source", "add"}}) {
        const bool has_alpha = std::string(format).find('A') != std::string::npos, adds = operators.back() == "add";
        // If the sum of alpha exceeds its maximum, compositor 1.22 wraps around to 0.
        if (background == std::string("transparent") && (!has_alpha || adds)) continue;
        at(format + std::string(" of ") + std::to_string(operators.size()) + " operators on " + background);
        std::vector<Layer> layers;
        for (int i = 0; i < 16; ++i) {
          const std::string place = "xpos=" + std::to_string(i % 5 * 4) + " ypos=" + std::to_string(i % 3 * 6) +
                                    " operator=" + operators[std::size_t(i) % operators.size()] +
                                    " alpha=" + std::to_string(0.15 + 0.05 * i);
          layers.push_back({caps_text(format, {64, 48}), place});
        }
        expect_compositor(run, std::string("background=") + background, caps_text(format, {96, 64}), layers);
      }
}

TEST(equals_compositor_in_order_and_size, Each::run) {
  if (!have_compositor()) return;
  for (const char* format : {"RGBA", "BGRA", "RGB", "I420", "NV12"}) {
    at(format);
    const std::vector<int> a{200, 90, 60, 255}, b{60, 150, 200, 255}, c{120, 30, 140, 255};
    const auto flats = [&](const char* pa, const char* pb, const char* pc) {
      return std::vector<Layer>{
          {caps_text(format, {32, 24}), pa, a}, {caps_text(format, {40, 30}), pb, b}, {caps_text(format, {16, 60}), pc, c}};
    };
    const std::string out = caps_text(format, {96, 64});
    expect_compositor(run, "background=black", out, flats("zorder=9", "xpos=8 ypos=8 zorder=4", "xpos=20 zorder=5"));
    expect_compositor(run, "background=black", out, flats("zorder=3", "xpos=8 ypos=8 zorder=3", "xpos=20 zorder=3"));
    // Original and scaled sizes. The scaling method has no effect on flat pictures, except that compositor changes some 120 to 122.
    const int scaled_tolerance = 3;
    expect_compositor(run, "background=black", out,
                      flats("width=64 height=48", "width=20 xpos=40", "height=20 xpos=60 ypos=10 alpha=0.5"), scaled_tolerance);
    expect_compositor(run, "background=black", out, flats("width=0 height=48", "width=-1 height=0 xpos=40", "xpos=60 width=1000"),
                      scaled_tolerance);
    expect_compositor(run, "background=black zero-size-is-unscaled=false", out,
                      flats("width=0 height=48", "width=-1 xpos=40", "xpos=60 height=0"), scaled_tolerance);
    if (format == std::string("I420") || format == std::string("NV12"))
      continue;  // compositor supports only even positions for these
    for (const char* box : {"width=60 height=60", "width=80 height=20", "width=20 height=64", "width=12", "width=49 height=37",
                            "width=7 height=31"}) {
      at(format + std::string(" ") + box);
      const std::string pad = std::string(box) + " sizing-policy=keep-aspect-ratio";
      expect_compositor(run, "background=black", out, flats(pad.c_str(), "alpha=0", "alpha=0"), scaled_tolerance);
      expect_compositor(run, "background=black", out, flats("alpha=0", "alpha=0", pad.c_str()), scaled_tolerance);
    }
  }
}

namespace {

/// Compares both elements with one picture over another, scaled to `box` with this method.
void expect_compositor_that_scales(const Run& run, const char* interpolation, GstVideoResamplerMethod method, const char* format,
                                   Size box, const std::string& pad, int tolerance) {
  at(interpolation + std::string(" ") + format + " to " + std::to_string(box.width) + "x" + std::to_string(box.height));
  std::vector<Output> made[2];
  const Run runs[2] = {run, compositor};
  for (int r = 0; r < 2; ++r) {
    Mixer mixer(runs[r], "background=black", caps_text(format, {96, 64}));
    const std::vector<Layer> layers{
        {caps_text(format, {96, 64})},
        {caps_text(format, {33, 25}), pad + " width=" + std::to_string(box.width) + " height=" + std::to_string(box.height)}};
    for (const Layer& layer : layers) mixer.add(layer.caps, layer.pad);
    if (r == 0) {
      set(mixer.element(), std::string("interpolation=") + interpolation);
    } else {
      GstStructure* config = gst_structure_new("GstVideoConverter", GST_VIDEO_CONVERTER_OPT_RESAMPLER_METHOD,
                                               GST_TYPE_VIDEO_RESAMPLER_METHOD, method, nullptr);
      g_object_set(mixer.pad(1), "converter-config", config, nullptr);
      gst_structure_free(config);
    }
    mixer.play();
    feed(mixer, layers);
    made[r] = mixer.rest();
  }
  expect_same(made[0], made[1], tolerance);
}

}  // namespace

/// With nearest-pixel scaling the pictures are the same. (By default compositor uses a cubic filter.)
TEST(equals_compositor_with_nearest_scaling, Each::run) {
  if (!have_compositor()) return;
  for (const char* format : {"RGBA", "BGRA", "RGB", "Y444"})
    for (Size box : {Size{64, 48}, {31, 20}, {90, 7}, {12, 60}})
      expect_compositor_that_scales(run, "nearest", GST_VIDEO_RESAMPLER_METHOD_NEAREST, format, box, "xpos=4 ypos=2 alpha=0.7", 1);
}

/// compositor's weights have only 6 or 7 bits. For 4-byte pixels and for planes it maps first pixel to first and last to last when it
/// enlarges the width, so those formats are compared with a changed height only.
TEST(equals_compositor_with_linear_enlarging, Each::run) {
  if (!have_compositor()) return;
  const auto expect = [&](const char* format, Size box, int tolerance) {
    expect_compositor_that_scales(run, "bilinear", GST_VIDEO_RESAMPLER_METHOD_LINEAR, format, box, "xpos=4 ypos=2", tolerance);
  };
  for (const char* format : {"RGBA", "BGRA", "RGB", "Y444", "GRAY8"})
    for (int height : {26, 37, 48, 50, 60}) expect(format, {33, height}, 2);
  for (Size box : {Size{64, 48}, {66, 50}, {66, 25}, {90, 60}, {40, 60}, {92, 62}}) expect("RGB", box, 3);
}

TEST(equals_compositor_in_the_size_of_the_output, Each::run) {
  if (!have_compositor()) return;
  for (const char* pads : {"", "xpos=30 ypos=50", "width=200 height=10", "xpos=-10 ypos=-4", "alpha=0 xpos=100"}) {
    at(pads);
    const std::vector<Layer> layers{{caps_text("RGB", {64, 48}), "", {10, 20, 30}},
                                    {caps_text("RGB", {31, 17}), pads, {90, 80, 70}}};
    expect_compositor(run, "", "", layers);
  }
  at("pixels that are not square");
  const std::string wide = ",pixel-aspect-ratio=2/1";
  for (const char* pad : {"", "width=60 height=40 sizing-policy=keep-aspect-ratio", "width=60 height=40"})
    expect_compositor(run, "background=black", caps_text("RGB", {96, 64}, ",pixel-aspect-ratio=1/1"),
                      {{caps_text("RGB", {20, 20}, wide), pad, {255, 0, 0}}});
}

TEST(equals_compositor_in_timing, Each::run) {
  if (!have_compositor()) return;
  struct Case {
    const char *name, *settings;
    std::vector<Layer> layers;
  };
  const Size size{32, 24};
  const std::string half = "xpos=8 alpha=0.5";
  for (const Case& c : {
           Case{"one rate", "", {{rated("RGBA", size, 25), "", 5}, {rated("RGBA", size, 25), half, 5}}},
           {"slower above", "", {{rated("RGBA", size, 30), "", 12}, {rated("RGBA", size, 10), half, 4}}},
           {"faster above", "", {{rated("RGBA", size, 10), "", 4}, {rated("RGBA", size, 25), half, 10}}},
           {"rates that share nothing", "", {{rated("RGBA", size, 24), "", 8}, {rated("RGBA", size, 25), half, 8}}},
           {"one ends early", "", {{rated("RGBA", size, 25), "", 8}, {rated("RGBA", size, 25), half, 3}}},
           {"one ends early, and stays",
            "",
            {{rated("RGBA", size, 25), "", 8}, {rated("RGBA", size, 25), half + " repeat-after-eos=true", 3}}},
           {"one begins late", "", {{rated("RGBA", size, 25), "", 8}, {rated("RGBA", size, 25), half, 3, 3 * frame_time}}},
           {"all begin late",
            "start-time-selection=first",
            {{rated("RGBA", size, 25), "", 4, 2 * frame_time}, {rated("RGBA", size, 25), half, 3, 3 * frame_time}}},
           {"a time to start", "start-time-selection=set start-time=80000000", {{rated("RGBA", size, 25), "", 6}}},
           {"a last frame that fades from view",
            "",
            {{rated("RGBA", size, 25), "", 10}, {rated("RGBA", size, 5), half + " max-last-buffer-repeat=80000000", 2}}},
           {"of no rate", "", {{rated("RGBA", size, 25), "", 4}, {rated("RGBA", size, 0), half + " repeat-after-eos=true", 1}}},
       }) {
    at(c.name);
    expect_compositor(run, c.settings, "", c.layers);
  }
  at("a rate asked for");
  expect_compositor(run, "", rated("RGBA", size, 50), {{rated("RGBA", size, 25), "", 4}, {rated("RGBA", size, 10), half, 2}});
}

namespace {

/// Feeds a pad with one item for each letter of a script: '.' a frame, 'u' a frame of unknown duration, '-' a gap event, '?' a gap event of
/// unknown duration, '=' an empty buffer with the GAP flag, 'm' an empty buffer with a missing-data meta, ' ' nothing, and a digit a gap
/// event as long as so many frames.
void perform(Mixer& mixer, int input, const std::string& script) {
  const GstClockTime step = frame_time;
  GstClockTime time = 0;
  unsigned number = 0;
  for (const char letter : script) {
    const int frames = letter >= '2' && letter <= '9' ? letter - '0' : 1;
    const GstClockTime duration = letter == 'u' || letter == '?' ? GST_CLOCK_TIME_NONE : step * guint64(frames);
    const bool frame = letter == '.' || letter == 'u';
    Buffer buffer = frame ? noise(mixer.video(input), unsigned(100 * input) + number++) : Buffer(gst_buffer_new());
    GST_BUFFER_PTS(buffer.get()) = time;
    GST_BUFFER_DURATION(buffer.get()) = duration;
    if (letter == '=' || letter == 'm') GST_BUFFER_FLAG_SET(buffer.get(), GST_BUFFER_FLAG_GAP | GST_BUFFER_FLAG_DROPPABLE);
    if (letter == 'm') EXPECT(gst_buffer_add_custom_meta(buffer.get(), "GstAggregatorMissingDataMeta"));
    if (!frame && letter != '=' && letter != 'm') GST_BUFFER_FLAG_SET(buffer.get(), as_gap_event);
    if (letter != ' ') mixer.push_as_it_is(input, buffer);
    time += step * guint64(frames);
  }
  mixer.end(input);
}

/// Expects the frames of compositor for each case. A case has one script for each pad, the lowest first.
void expect_compositor_performing(const Run& run, const std::vector<std::vector<std::string>>& cases,
                                  const std::string& beside = "xpos=8 alpha=0.5") {
  for (const std::vector<std::string>& scripts : cases)
    for (const std::string& above : {std::string(), beside}) {
      if (scripts.size() == 1 && !above.empty()) continue;
      at("'" + scripts[0] + (scripts.size() > 1 ? "' below '" + scripts[1] : "") + "' " + above);
      std::vector<Output> made[2];
      const Run runs[2] = {run, compositor};
      for (int r = 0; r < 2; ++r) {
        Mixer mixer(runs[r], "background=white");
        for (std::size_t i = 0; i < scripts.size(); ++i) mixer.add(caps_text("RGB", {32, 24}), i ? above : "");
        mixer.play();
        for (std::size_t i = 0; i < scripts.size(); ++i) perform(mixer, int(i), scripts[i]);
        made[r] = mixer.rest();
      }
      EXPECT(!made[1].empty());
      expect_same(made[0], made[1], 1);
    }
}

}  // namespace

TEST(equals_compositor_with_gap_events, Each::run) {
  if (!have_compositor()) return;
  expect_compositor_performing(run, {{"--...."},
                                     {"..--.."},
                                     {"....--"},
                                     {"----"},
                                     {".3."},
                                     {"?..."},
                                     {"..?..."},
                                     {"...?"},
                                     {"......", "--...."},
                                     {"......", "..--.."},
                                     {"......", "....--"},
                                     {"......", "------"},
                                     {"--....", "......"},
                                     {"..--..", "......"},
                                     {"....--", "......"},
                                     {"------", "......"},
                                     {"--....", "--...."},
                                     {"..--..", "..--.."},
                                     {"....--", "....--"},
                                     {"----", "----"},
                                     {".-.-.-", "-.-.-."},
                                     {"......", ".4."},
                                     {"......", ".9"},
                                     {"......", "..?..."},
                                     {"......", "?....."},
                                     {"......", ".....?"},
                                     {"......", ".  -.."}});
}

TEST(equals_compositor_with_empty_buffers, Each::run) {
  if (!have_compositor()) return;
  expect_compositor_performing(run, {{"==..=.="},
                                     {"===="},
                                     {"..mm.."},
                                     {"......", "==..=="},
                                     {"..==..", "......"},
                                     {"..==..", "..==.."},
                                     {"......", "..mm.."},
                                     {"......", ".m=-.."}});
}

TEST(equals_compositor_with_unknown_durations, Each::run) {
  if (!have_compositor()) return;
  for (const char* beside : {"xpos=8 alpha=0.5", "xpos=8 alpha=0.5 max-last-buffer-repeat=40000000"})
    expect_compositor_performing(run,
                                 {{"uuuuuu"},
                                  {"..u..."},
                                  {".....u"},
                                  {"u"},
                                  {"u  u"},
                                  {"......", "uuuuuu"},
                                  {"uuuuuu", "......"},
                                  {"uuuuuu", "uuuuuu"},
                                  {"......", "u  u"},
                                  {"......", "u"},
                                  {"u", "......"},
                                  {"......", "uu.-uu"}},
                                 beside);
}

/// (compositor posts no error itself. The source posts one when it sends its next frame, in some versions of GStreamer never.)
TEST(reports_a_frame_without_timestamp, Each::run) {
  for (int good : {0, 2}) {
    at("after " + std::to_string(good) + " frames");
    Mixer mixer(run);
    for (int i = 0; i < 2; ++i) mixer.add(caps_text("RGB", {32, 24}));
    for (int round = 0; round < 2; ++round) {
      mixer.play();
      mixer.rewind();
      for (int i = 0; i < 2; ++i)
        for (int n = 0; n < good; ++n) mixer.push(i, noise(mixer.video(i)));
      for (int n = 0; n < good; ++n) EXPECT_EQ(mixer.next().pts, guint64(n) * frame_time);
      for (int n = 0; n < 3; ++n) mixer.push(0, noise(mixer.video(0)));
      for (int n = 0; n < 2; ++n) {
        const Buffer frame = noise(mixer.video(1));
        GST_BUFFER_PTS(frame.get()) = GST_CLOCK_TIME_NONE;
        mixer.push_as_it_is(1, frame);
      }
      const Message message = mixer.error(patience);
      EXPECT_EQ(message.domain, GST_STREAM_ERROR);
      EXPECT_EQ(message.code, int(GST_STREAM_ERROR_FORMAT));
      EXPECT_CONTAINS(message.text, "sink_1");
      EXPECT_CONTAINS(message.text, "timestamp");
      mixer.state(GST_STATE_NULL);
      mixer.forget_messages();
    }
  }
}

/// (compositor aborts.)
TEST(reports_a_segment_in_another_format_than_time, Each::run) {
  Mixer mixer(run);
  for (int i = 0; i < 2; ++i) mixer.add(caps_text("RGB", {32, 24}));
  g_object_set(mixer.source(1), "format", GST_FORMAT_BYTES, nullptr);
  mixer.play();
  for (int i = 0; i < 2; ++i) mixer.push(i, noise(mixer.video(i)));
  const Message message = mixer.error(patience);
  EXPECT_EQ(message.domain, GST_STREAM_ERROR);
  EXPECT_EQ(message.code, int(GST_STREAM_ERROR_FORMAT));
  EXPECT_CONTAINS(message.text, "sink_1");
  EXPECT_CONTAINS(message.text, "bytes");
}

/// (compositor aborts.)
TEST(reports_a_segment_without_running_time, Each::run) {
  const auto with = [](auto&& change) {
    GstSegment segment;
    gst_segment_init(&segment, GST_FORMAT_TIME);
    change(segment);
    return segment;
  };
  for (const GstSegment& segment : {with([](GstSegment& s) { s.rate = -1; }), with([](GstSegment& s) { s.base = G_MAXUINT64 - 2; }),
                                    with([](GstSegment& s) { s.start = G_MAXUINT64 - 2; })}) {
    Mixer mixer(run);
    mixer.add(caps_text("RGB", {32, 24}));
    mixer.play();
    const Caps caps(gst_caps_from_string(caps_text("RGB", {32, 24}).c_str()));
    for (GstEvent* event : {gst_event_new_stream_start("one"), gst_event_new_caps(caps.get()), gst_event_new_segment(&segment)})
      EXPECT(gst_pad_send_event(mixer.pad(0), event));
    const Message message = mixer.error(patience);
    EXPECT_EQ(message.domain, GST_STREAM_ERROR);
    EXPECT_EQ(message.code, int(GST_STREAM_ERROR_FORMAT));
    EXPECT_CONTAINS(message.text, "sink_0");
    EXPECT_CONTAINS(message.text, "time");
  }
}

/// A pad's offset shifts its frames in time; frames before time 0 are dropped. (compositor aborts at negative offsets.)
TEST(honours_pad_offsets, Each::run) {
  for (int offset : {-3, -1, 0, 2, -20}) {
    at("an offset of " + std::to_string(offset) + " frames");
    Mixer mixer(run, "background=black", caps_text("RGB", {32, 24}));
    for (int i = 0; i < 2; ++i) mixer.add(caps_text("RGB", {32, 24}));
    gst_pad_set_offset(mixer.pad(1), offset * gint64(frame_time));
    mixer.play();
    for (int n = 0; n < 8; ++n) {
      mixer.push(0, flat(mixer.video(0), {10}));
      mixer.push(1, flat(mixer.video(1), {100 + n}));
    }
    for (int i = 0; i < 2; ++i) mixer.end(i);
    const std::vector<Output> all = mixer.rest();
    EXPECT_EQ(all.size(), std::size_t(8 + std::max(offset, 0)));
    for (int n = 0; n < int(all.size()); ++n) {
      EXPECT_EQ(all[std::size_t(n)].pts, guint64(n) * frame_time);
      const int shown = n - offset;
      EXPECT_EQ(sample(all[std::size_t(n)].shown(), 0, 3, 3), shown < 0 || shown >= 8 ? 10 : 100 + shown);
    }
    EXPECT(mixer.error(0).text.empty());
  }
}

/// The offset also applies with other rates and segments.
TEST(honours_pad_offsets_in_segments, Each::run) {
  for (double rate : {1.0, 2.0}) {
    at("rate " + std::to_string(rate));
    Mixer mixer(run, "background=black", caps_text("RGB", {32, 24}));
    mixer.add(caps_text("RGB", {32, 24}));
    GstPad* const pad = mixer.pad(0);
    mixer.play();
    const Caps caps(gst_caps_from_string(caps_text("RGB", {32, 24}).c_str()));
    for (GstEvent* event : {gst_event_new_stream_start("one"), gst_event_new_caps(caps.get())})
      EXPECT(gst_pad_send_event(pad, event));
    GstSegment segment;
    gst_segment_init(&segment, GST_FORMAT_TIME);
    segment.rate = rate;
    segment.start = segment.time = 2 * frame_time;
    segment.stop = 10 * frame_time;
    gst_pad_set_offset(pad, -gint64(frame_time));  // in running time
    EXPECT(gst_pad_send_event(pad, gst_event_new_segment(&segment)));
    std::thread source([&] {  // pushing a frame waits for the one before it
      for (int n = 0; n < 12; ++n) {
        Buffer frame = flat(mixer.video(0), {100 + n});
        GST_BUFFER_PTS(frame.get()) = guint64(n) * frame_time;
        GST_BUFFER_DURATION(frame.get()) = frame_time;
        if (gst_pad_chain(pad, gst_buffer_ref(frame.get())) != GST_FLOW_OK) break;
      }
      gst_pad_send_event(pad, gst_event_new_eos());
    });
    const std::vector<Output> all = mixer.rest();
    source.join();
    // The first output shows the frame at running time 0: one frame after the segment's start, or two at rate 2.
    EXPECT(!all.empty());
    EXPECT_EQ(sample(all[0].shown(), 0, 3, 3), 102 + int(rate));
    EXPECT_EQ(all.size(), rate == 1.0 ? std::size_t(7) : std::size_t(3));
    EXPECT(mixer.error(0).text.empty());
  }
}

namespace {

constexpr guint field_flags = GST_VIDEO_BUFFER_FLAG_INTERLACED | GST_VIDEO_BUFFER_FLAG_TFF,
                all_field_flags = field_flags | GST_VIDEO_BUFFER_FLAG_RFF | GST_VIDEO_BUFFER_FLAG_ONEFIELD;

guint flags_of_fields(int number) {
  constexpr guint flags[] = {GST_VIDEO_BUFFER_FLAG_INTERLACED | GST_VIDEO_BUFFER_FLAG_TFF,
                             GST_VIDEO_BUFFER_FLAG_INTERLACED,
                             GST_VIDEO_BUFFER_FLAG_INTERLACED | GST_VIDEO_BUFFER_FLAG_TFF | GST_VIDEO_BUFFER_FLAG_RFF,
                             0,
                             GST_VIDEO_BUFFER_FLAG_RFF,
                             GST_VIDEO_BUFFER_FLAG_INTERLACED | GST_VIDEO_BUFFER_FLAG_ONEFIELD};
  return flags[number % 6];
}

/// Six frames with different field flags, starting with flags_of_fields(first).
Layer of_fields(const std::string& format, Size size, const std::string& mode, const std::string& pad, int first) {
  Layer layer(caps_text(format, size, ",interlace-mode=" + mode), pad, 6);
  layer.draw = [first](const GstVideoInfo& video, int n) {
    Buffer frame = noise(video, unsigned(10 * first + n));
    GST_BUFFER_FLAG_SET(frame.get(), flags_of_fields(first + n));
    return frame;
  };
  return layer;
}

}  // namespace

TEST(equals_compositor_with_interlaced_pads, Each::run) {
  if (!have_compositor()) return;
  for (const char* format : {"RGB", "I420"})
    for (const char* mode : {"interleaved", "mixed", "fields"})
      for (const std::string& out : {std::string(), std::string("progressive"), std::string(mode)}) {
        at(format + std::string(" ") + mode + " to " + out);
        const std::string caps = out.empty() ? "" : "video/x-raw,interlace-mode=" + out;
        const std::vector<Layer> layers{of_fields(format, {32, 24}, mode, "", 0),
                                        of_fields(format, {16, 12}, mode, "xpos=8 ypos=6", 3)};
        const std::vector<Output> actual = play(run, "background=black", caps, layers),
                                  expected = play(compositor, "background=black", caps, layers);
        EXPECT_EQ(actual.size(), 6u);
        expect_same(actual, expected, 1);
        for (std::size_t n = 0; n < actual.size(); ++n) {
          // compositor always outputs progressive caps if it may choose, and never sets field flags.
          if (!out.empty()) EXPECT(gst_video_info_is_equal(&actual[n].video, &expected[n].video));
          EXPECT_EQ(std::string(gst_video_interlace_mode_to_string(GST_VIDEO_INFO_INTERLACE_MODE(&actual[n].video))),
                    out.empty() ? mode : out);
          const guint flags = out == "progressive" ? 0 : flags_of_fields(int(n)) & field_flags;
          EXPECT_EQ(GST_BUFFER_FLAGS(actual[n].buffer.get()) & all_field_flags, flags);
        }
      }
}

/// Pads with different interlace modes, from the start or after a change of caps. (compositor drops such pads or crashes.)
TEST(mixes_interlaced_and_progressive_pads, Each::run) {
  const auto made = [&](const std::string& format, const std::string& below, const std::string& above, const std::string& out) {
    // With these heights, 4:2:0 planes have other offsets when interlaced.
    const auto caps = [&](Size size, const std::string& mode) { return caps_text(format, size, ",interlace-mode=" + mode); };
    Mixer mixer(run, "background=black", out.empty() ? "" : "video/x-raw,interlace-mode=" + out);
    mixer.add(caps({32, 22}, below));
    mixer.add(caps({16, 10}, above), "alpha=0.5");
    mixer.play();
    for (int round = 0; round < 2; ++round) {
      for (int n = 0; n < 2; ++n)
        for (int i = 0; i < 2; ++i) mixer.push(i, noise(mixer.video(i), unsigned(8 * round + 2 * n + i)));
      if (round == 0) mixer.caps_of(0, caps({32, 18}, above)), mixer.caps_of(1, caps({8, 6}, below));
    }
    for (int i = 0; i < 2; ++i) mixer.end(i);
    return mixer.rest();
  };
  const std::string modes[] = {"progressive", "interleaved", "mixed"};
  for (const char* format : {"RGB", "I420"}) {
    const std::vector<Output> progressive = made(format, modes[0], modes[0], "");
    EXPECT_EQ(progressive.size(), 4u);
    for (const std::string& below : modes)
      for (const std::string& above : modes)
        for (const std::string& out : {std::string(), modes[0], modes[1]}) {
          at(format + std::string(" ") + below + " below " + above + " to " + out);
          const std::vector<Output> all = made(format, below, above, out);
          expect_same(all, progressive, 0);
          for (std::size_t n = 0; n < all.size(); ++n)
            EXPECT_EQ(std::string(gst_video_interlace_mode_to_string(GST_VIDEO_INFO_INTERLACE_MODE(&all[n].video))),
                      !out.empty() ? out
                      : n < 2      ? below
                                   : above);
        }
  }
}

/// New caps have no effect on the output until their first frame is due.
TEST(stays_progressive_while_interlaced_frames_wait, Each::run) {
  Mixer mixer(run, "background=black", "video/x-raw,interlace-mode=progressive");
  mixer.add(caps_text("RGB", {32, 24}, ",interlace-mode=interleaved"));
  mixer.add(caps_text("RGB", {16, 12}));
  mixer.play();
  mixer.push(1, flat(mixer.video(1), {200}));
  mixer.caps_of(1, caps_text("RGB", {8, 6}, ",interlace-mode=interleaved"));
  mixer.skip_to(1, 5 * frame_time);
  mixer.push(1, flat(mixer.video(1), {200}));
  for (int n = 0; n < 6; ++n) {
    Buffer frame = flat(mixer.video(0), {100});
    GST_BUFFER_FLAG_SET(frame.get(), field_flags);
    mixer.push(0, std::move(frame));
  }
  for (int i = 0; i < 2; ++i) mixer.end(i);
  const std::vector<Output> all = mixer.rest();
  EXPECT_EQ(all.size(), 6u);
  for (const Output& output : all) {
    EXPECT_EQ(GST_BUFFER_FLAGS(output.buffer.get()) & all_field_flags, 0u);
    EXPECT(GST_VIDEO_INFO_INTERLACE_MODE(&output.video) == GST_VIDEO_INTERLACE_MODE_PROGRESSIVE);
  }
}

TEST(passes_the_field_order, Each::run) {
  for (const char* order : {"top-field-first", "bottom-field-first"}) {
    at(order);
    const std::vector<Output> all =
        play(run, "", "", {{caps_text("RGB", {32, 24}, ",interlace-mode=interleaved,field-order=" + std::string(order))}});
    EXPECT_EQ(all.size(), 1u);
    EXPECT_EQ(std::string(gst_video_field_order_to_string(GST_VIDEO_INFO_FIELD_ORDER(&all[0].video))), std::string(order));
  }
}

TEST(equals_compositor_with_gaps, Each::run) {
  if (!have_compositor()) return;
  std::vector<Output> made[2];
  const Run runs[2] = {run, compositor};
  for (int r = 0; r < 2; ++r) {
    Mixer mixer(runs[r], "background=black");
    for (int i = 0; i < 2; ++i) mixer.add(caps_text("RGBA", {32, 24}), i ? "xpos=8 max-last-buffer-repeat=0" : "");
    mixer.play();
    for (int n = 0; n < 8; ++n) mixer.push(0, noise(mixer.video(0), unsigned(n)));
    mixer.end(0);
    for (int n : {0, 1, 5, 6}) {  // a gap of three frames
      mixer.skip_to(1, GstClockTime(n) * frame_time);
      mixer.push(1, noise(mixer.video(1), unsigned(50 + n)));
    }
    mixer.end(1);
    made[r] = mixer.rest();
  }
  expect_same(made[0], made[1], 1);
}

TEST(equals_compositor_through_a_change_of_caps, Each::run) {
  if (!have_compositor()) return;
  for (const char* out : {"", "video/x-raw,format=RGBA,width=80,height=60,framerate=25/1"})
    for (const char* pad : {"xpos=10 ypos=10", "xpos=10 width=20 height=20"}) {
      at(out + std::string(" ") + pad);
      std::vector<Output> made[2];
      const Run runs[2] = {run, compositor};
      for (int r = 0; r < 2; ++r) {
        Mixer mixer(runs[r], "background=black", out);
        for (int i = 0; i < 2; ++i) mixer.add(caps_text("RGBA", {32, 24}), i ? pad : "");
        mixer.play();
        for (int n = 0; n < 9; ++n) {
          mixer.push(0, noise(mixer.video(0), unsigned(n)));
          if (n % 3 == 0) {
            mixer.caps_of(1, caps_text("RGBA", n == 0 ? Size{16, 16} : n == 3 ? Size{70, 40} : Size{24, 8}));
          }
          mixer.push(1, flat(mixer.video(1), {20 * n, 250 - 20 * n, 100, 200}));
        }
        for (int i = 0; i < 2; ++i) mixer.end(i);
        made[r] = mixer.rest();
      }
      EXPECT_EQ(made[0].size(), 9u);
      expect_same(made[0], made[1], 1);
    }
}

TEST(equals_compositor_with_controlled_properties, Each::run) {
  if (!have_compositor()) return;
  std::vector<Output> made[2];
  const Run runs[2] = {run, compositor};
  for (int r = 0; r < 2; ++r) {
    Mixer mixer(runs[r], "background=black");
    for (int i = 0; i < 2; ++i) mixer.add(caps_text("RGB", {32, 24}), i ? "zorder=3" : "zorder=2");
    const auto control = [&](const char* property, double from, double to) {
      GstControlSource* source = gst_interpolation_control_source_new();
      g_object_set(source, "mode", GST_INTERPOLATION_MODE_LINEAR, nullptr);
      gst_timed_value_control_source_set(GST_TIMED_VALUE_CONTROL_SOURCE(source), 0, from);
      gst_timed_value_control_source_set(GST_TIMED_VALUE_CONTROL_SOURCE(source), 10 * frame_time, to);
      GstObject* pad = GST_OBJECT(mixer.pad(1));
      // A binding that is not absolute maps 0 to 1 to the range of the property.
      EXPECT(gst_object_add_control_binding(pad, to > 1 ? gst_direct_control_binding_new_absolute(pad, property, source)
                                                        : gst_direct_control_binding_new(pad, property, source)));
      gst_object_unref(source);
    };
    control("alpha", 0, 1);
    control("xpos", 0, 20);
    mixer.play();
    for (int i = 0; i < 2; ++i) {
      for (int n = 0; n < 11; ++n) mixer.push(i, flat(mixer.video(i), {200 * i, 100, 255 - 200 * i}));
      mixer.end(i);
    }
    made[r] = mixer.rest();
  }
  EXPECT_EQ(made[0].size(), 11u);
  expect_same(made[0], made[1], 1);
  // The formula of a cross-fade.
  for (std::size_t n = 0; n < 11; ++n) EXPECT(std::abs(sample(made[0][n].shown(), 0, 25, 12) - 200 * double(n) / 10) <= 2);
}

// Operators and keys ------------------------------------------------------------------------------------------------------------

namespace {

double blended(const std::string& op, double d, double s) {
  return op == "subtract"     ? std::max(d - s, 0.0)
         : op == "multiply"   ? d * s / 255
         : op == "screen"     ? d + s - d * s / 255
         : op == "difference" ? std::abs(d - s)
         : op == "min"        ? std::min(d, s)
         : op == "max"        ? std::max(d, s)
                              : s;
}

/// product / 255, rounded as in compositor: ORC's division rounds to nearest, and from version 0.4.39 on rounds down.
double scaled_back(double product) {
  static const bool rounds_down = [] {
    using Version = const char* (*)();
    const auto version = reinterpret_cast<Version>(dlsym(RTLD_DEFAULT, "orc_version_string"));
    int major = 0, minor = 0, micro = 0;
    return version && std::sscanf(version(), "%d.%d.%d", &major, &minor, &micro) == 3 &&
           std::tuple(major, minor, micro) >= std::tuple(0, 4, 39);
  }();
  return rounds_down ? std::floor(product / 255) : std::nearbyint(product / 255);
}

/// The result of s over d, as R'G'B' and alpha from 0 to 255. k is the weight of the key.
Color laid(const std::string& op, double alpha, double k, const Color& d, const Color& s, bool output_has_alpha) {
  Color r = d;
  if (op == "source" || op == "average") {
    const bool average = op == "average";
    const double weight = average ? alpha * k : k;
    for (std::size_t c = 0; c < 3; ++c) r[c] = d[c] + weight * (s[c] - d[c]);
    r[3] = average ? d[3] + weight * (s[3] - d[3]) : d[3] + weight * (scaled_back(s[3] * std::floor(255 * alpha)) - d[3]);
    return r;
  }
  Color top = s;
  const double backed = output_has_alpha ? d[3] / 255 : 1;
  for (std::size_t c = 0; c < 3; ++c) top[c] = s[c] + (blended(op, d[c], s[c]) - s[c]) * backed;
  const double steps = std::floor(255 * alpha);
  if (!output_has_alpha) {
    const double a = k * s[3] / 255 * (alpha < 1 ? steps / 256 : 1);
    for (std::size_t c = 0; c < 3; ++c) r[c] = d[c] + a * (top[c] - d[c]);
    return r;
  }
  const double above = scaled_back(k * s[3] * steps), below = scaled_back(d[3] * (255 - above));
  for (std::size_t c = 0; c < 3; ++c) r[c] = above + below > 0 ? (top[c] * above + d[c] * below) / (above + below) : 255;
  r[3] = op == "add" ? std::min(d[3] + above, 255.0) : above + below;
  return r;
}

const std::vector<std::string> operators{"source", "over",       "add", "subtract", "multiply",
                                         "screen", "difference", "min", "max",      "average"};

}  // namespace

TEST(computes_every_operator, Each::run) {
  const Size size{37, 29};
  for (const auto& [below, above, out] : {std::tuple{"RGB", "RGB", "RGB"},
                                          {"RGB", "BGRA", "RGB"},
                                          {"BGRx", "RGBA", "BGR"},
                                          {"RGBA", "ARGB", "RGBA"},
                                          {"ABGR", "RGB", "BGRA"}})
    for (const std::string& op : operators)
      for (double alpha : {1.0, 0.65, 0.1}) {
        at(std::string(below) + ", " + above + " to " + out + " " + op + " " + std::to_string(alpha));
        const std::vector<Layer> layers{{caps_text(below, size), "operator=source"},
                                        {caps_text(above, size), "operator=" + op + " alpha=" + std::to_string(alpha)}};
        const auto four = [](Picture p, const std::string& format) {
          if (p.size() == 4 && format.find('x') != std::string::npos) p.pop_back();
          return p;
        };
        const Picture d = four(source_picture(layers[0], 1), below), s = four(source_picture(layers[1], 2), above);
        const bool has_alpha = std::string(out).find('A') != std::string::npos;
        const Picture result = composed(run, "background=transparent", caps_text(out, size), layers);
        EXPECT_WITHIN(
            result, drawn(result, [&](int x, int y) { return laid(op, alpha, 1, pixel(d, x, y), pixel(s, x, y), has_alpha); }), 1);
      }
}

/// The formulas apply to R'G'B' for every output format.
TEST(computes_operators_of_yuv, Each::run) {
  const Size size{4, 4};
  const std::vector<std::array<double, 3>> colors{{0.9, 0.2, 0.1}, {0.1, 0.8, 0.3}, {0.5, 0.5, 0.5},
                                                  {0.2, 0.3, 0.9}, {1, 1, 1},       {0, 0, 0}};
  for (const char* format : {"NV12", "Y444", "I420_10LE", "GRAY8"})
    for (const std::string& op : operators)
      for (std::size_t i = 0; i < colors.size(); ++i) {
        at(format + std::string(" ") + op + " " + std::to_string(i));
        const GstVideoInfo video = video_info(format, size);
        const auto& a = colors[i];
        const auto& b = colors[(i + 1) % colors.size()];
        const std::vector<int> d = samples_of(video, a[0], a[1], a[2]), s = samples_of(video, b[0], b[1], b[2]);
        const Picture result = composed(run, "background=black", caps_text(format, size),
                                        {{caps_text(format, size), "", d}, {caps_text(format, size), "operator=" + op, s}});
        const auto dr = rgb_of(video, d), sr = rgb_of(video, s);
        Color from{0, 0, 0, 255}, to{0, 0, 0, 255};
        for (std::size_t c = 0; c < 3; ++c) from[c] = 255 * dr[c], to[c] = 255 * sr[c];
        const Color r = laid(op, 1, 1, from, to, false);
        EXPECT_WITHIN(result, plain(video, samples_of(video, r[0] / 255, r[1] / 255, r[2] / 255)), 1);
      }
}

TEST(fuses_by_key_and_average, Each::run) {
  const Size size{61, 43};
  const auto keyed = [](const GstVideoInfo& video, int) {  // a third of it equals its first pixel
    const Buffer all = noise(video, 5);
    Buffer frame = flat(video, {10, 200, 30, 255});
    GstVideoFrame from, to;
    EXPECT(gst_video_frame_map(&from, &video, all.get(), GST_MAP_READ) &&
           gst_video_frame_map(&to, &video, frame.get(), GST_MAP_WRITE));
    for (int y = 0; y < GST_VIDEO_INFO_HEIGHT(&video); ++y)
      for (int x = 0; x < GST_VIDEO_INFO_WIDTH(&video); ++x)
        if ((x + y) % 3) {
          const auto at = [&](GstVideoFrame& f) {
            return static_cast<guint8*>(GST_VIDEO_FRAME_PLANE_DATA(&f, 0)) + y * GST_VIDEO_FRAME_PLANE_STRIDE(&f, 0) +
                   x * GST_VIDEO_FRAME_COMP_PSTRIDE(&f, 0);
          };
          std::copy_n(at(from), GST_VIDEO_FRAME_COMP_PSTRIDE(&from, 0), at(to));
        }
    gst_video_frame_unmap(&from), gst_video_frame_unmap(&to);
    return frame;
  };
  for (const char* format : {"RGB", "BGRx"}) {
    at(format);
    std::vector<Layer> layers{{caps_text(format, size)}, {caps_text(format, size), "operator=average alpha=0.65 key=first-pixel"}};
    layers[1].draw = keyed;
    const Picture wall = source_picture(layers[0], 1), above = source_picture(layers[1], 2);
    const Picture result = composed(run, "background=black", caps_text("RGB", size), layers);
    EXPECT_WITHIN(result,
                  drawn(result,
                        [&](int x, int y) {
                          const Color w = pixel(wall, x, y), p = pixel(above, x, y);
                          const bool key = p[0] == 10 && p[1] == 200 && p[2] == 30;
                          Color r = w;
                          for (std::size_t c = 0; c < 3; ++c) r[c] = key ? w[c] : 0.35 * w[c] + 0.65 * p[c];
                          return r;
                        }),
                  1);
  }
}

TEST(keys_by_tolerance_and_softness, Each::run) {
  const Size size{64, 16};
  for (const char* op : {"over", "source", "average", "max"})
    for (const auto& [tolerance, softness] : {std::pair{0.0, 0.0}, {20.0, 0.0}, {20.0, 40.0}, {0.0, 100.0}, {255.0, 0.0}}) {
      at(op + std::string(" ") + std::to_string(tolerance) + " " + std::to_string(softness));
      // Each row moves away from the key colour along one channel.
      const auto ramp = [](const GstVideoInfo& video, int) {
        Buffer frame = flat(video, {0, 255, 0});
        GstVideoFrame map;
        EXPECT(gst_video_frame_map(&map, &video, frame.get(), GST_MAP_WRITE));
        for (int y = 0; y < 16; ++y)
          for (int x = 0; x < 64; ++x) {
            guint8* p =
                static_cast<guint8*>(GST_VIDEO_FRAME_PLANE_DATA(&map, 0)) + y * GST_VIDEO_FRAME_PLANE_STRIDE(&map, 0) + 3 * x;
            p[y % 3] = guint8(y % 3 == 1 ? 255 - 3 * x : 3 * x);
          }
        gst_video_frame_unmap(&map);
        return frame;
      };
      std::vector<Layer> layers{
          {caps_text("RGB", size)},
          {caps_text("RGB", size), std::string("operator=") + op + " key=color key-color=0x00ff00 key-tolerance=" +
                                       std::to_string(tolerance) + " key-softness=" + std::to_string(softness)}};
      layers[1].draw = ramp;
      const Picture wall = source_picture(layers[0], 1), above = source_picture(layers[1], 2);
      const Picture result = composed(run, "background=black", caps_text("RGB", size), layers);
      EXPECT_WITHIN(result,
                    drawn(result,
                          [&](int x, int y) {
                            const Color s = pixel(above, x, y);
                            const double distance = std::max({s[0], 255 - s[1], s[2]}), beyond = distance - tolerance;
                            const double k = beyond <= 0 ? 0 : softness > 0 ? std::min(beyond / softness, 1.0) : 1;
                            return laid(op, 1, k, pixel(wall, x, y), s, false);
                          }),
                    1);
    }
}

TEST(keys_formats_other_than_rgb, Each::run) {
  const Size size{16, 8};
  for (const char* format : {"NV12", "I420", "Y444_16LE", "GBR", "RGBA64_LE", "P010_10LE"})
    for (bool like : {true, false}) {
      at(format);
      const GstVideoInfo video = video_info(format, size);
      const std::vector<int> green = like ? samples_of(video, 0, 1, 0) : samples_of(video, 0.2, 0.8, 0.1);
      const Picture result = composed(run, "background=black", caps_text("RGB", size),
                                      {{caps_text("RGB", size), "", {200, 100, 50}},
                                       {caps_text(format, size), "key=color key-color=0x00ff00 key-tolerance=8", green}});
      EXPECT_WITHIN(result, plain(video_info("RGB", size), like ? std::vector<int>{200, 100, 50} : std::vector<int>{51, 204, 26}),
                    3);
    }
}

// Formats -----------------------------------------------------------------------------------------------------------------------

TEST(copies_every_format_unchanged, Each::run) {
  for (const std::string& format : formats(run))
    for (Size size : {Size{1, 1}, {5, 7}, {37, 29}, {64, 48}}) {
      at(format + " " + std::to_string(size.width) + "x" + std::to_string(size.height));
      const std::vector<Layer> layers{{caps_text(format, size), "operator=source"}};
      Picture expected = source_picture(layers[0], 1), result = composed(run, "", caps_text(format, size), layers);
      if (const GstVideoInfo video = video_info(format, size); expected.size() > GST_VIDEO_INFO_N_COMPONENTS(&video)) {
        expected.pop_back();
        EXPECT_SAME(Picture{result.back()}, Picture{cv::Mat(result.back().size(), CV_16U, cv::Scalar(255))});  // padding
        result.pop_back();
      }
      EXPECT_SAME(result, expected);
    }
}

TEST(converts_every_format, Each::run) {
  const Size size{9, 7};
  const GstVideoInfo rgb = video_info("RGB", size);
  for (const std::string& format : formats(run))
    for (const auto& color : {std::array<double, 3>{0.8, 0.3, 0.1}, {0.1, 0.6, 0.9}, {1, 1, 1}, {0, 0, 0}}) {
      const GstVideoInfo video = video_info(format, size);
      const std::vector<int> samples = samples_of(video, color[0], color[1], color[2]);
      at(format + " to RGB");
      const auto back = rgb_of(video, samples);
      EXPECT_WITHIN(composed(run, "background=black", caps_text("RGB", size), {{caps_text(format, size), "", samples}}),
                    plain(rgb, samples_of(rgb, back[0], back[1], back[2])), 1);
      at("RGB to " + format);
      const std::vector<int> input = samples_of(rgb, color[0], color[1], color[2]);
      const auto read = rgb_of(rgb, input);
      std::vector<int> expected = samples_of(video, read[0], read[1], read[2]);
      EXPECT_WITHIN(composed(run, "background=black", caps_text(format, size), {{caps_text("RGB", size), "", input}}),
                    plain(video, expected), 1);
    }
}

TEST(mixes_all_formats, Each::run) {
  const Size cell{10, 8};
  const std::vector<std::string> names = formats(run);
  const int columns = 6, rows = int(names.size() + 5) / 6;
  const Size whole{columns * cell.width, rows * cell.height};
  for (const char* out : {"RGB", "NV12", "P010_10LE"}) {
    at(out);
    std::vector<Layer> layers;
    for (std::size_t i = 0; i < names.size(); ++i) {
      const GstVideoInfo video = video_info(names[i], cell);
      const double level = double(i + 1) / double(names.size() + 1);
      layers.push_back(
          {caps_text(names[i], cell),
           "xpos=" + std::to_string(int(i) % columns * cell.width) + " ypos=" + std::to_string(int(i) / columns * cell.height),
           samples_of(video, level, level, level)});
    }
    const GstVideoInfo video = video_info(out, whole);
    const Picture result = composed(run, "background=black", caps_text(out, whole), layers);
    const int steps = 1 << (GST_VIDEO_INFO_COMP_DEPTH(&video, 0) - 8);
    for (std::size_t i = 0; i < names.size(); ++i) {
      const double level = double(i + 1) / double(names.size() + 1);
      const int expected = samples_of(video, level, level, level)[0];
      const int found = sample(result, 0, int(i) % columns * cell.width + 5, int(i) / columns * cell.height + 4);
      FAIL_UNLESS(std::abs(found - expected) <= 1 * steps, "%s: %s became %d, and not %d", where().c_str(), names[i].c_str(), found,
                  expected);
    }
  }
}

TEST(honours_colorimetry, Each::run) {
  const Size size{8, 8};
  for (const char* colorimetry : {"bt601", "bt709", "bt2020", "1:4:0:0", "1:3:0:0"}) {
    at(colorimetry);
    const std::string caps = caps_text("Y444", size, ",colorimetry=(string)" + std::string(colorimetry));
    GstVideoInfo video;
    const Caps parsed(gst_caps_from_string(caps.c_str()));
    EXPECT(gst_video_info_from_caps(&video, parsed.get()));
    const std::vector<int> samples = samples_of(video, 0.8, 0.2, 0.4);
    const auto back = rgb_of(video, samples);
    const GstVideoInfo rgb = video_info("RGB", size);
    EXPECT_WITHIN(composed(run, "", caps_text("RGB", size), {{caps, "", samples}}),
                  plain(rgb, samples_of(rgb, back[0], back[1], back[2])), 1);
    const std::vector<int> input = samples_of(rgb, 0.8, 0.2, 0.4);
    EXPECT_WITHIN(composed(run, "", caps, {{caps_text("RGB", size), "", input}}),
                  plain(video, samples_of(video, 204 / 255.0, 51 / 255.0, 102 / 255.0)), 1);
  }
}

TEST(accepts_any_stride_and_offset, Each::run) {
  const Size size{37, 30};
  for (const char* format : {"RGB", "NV12", "I420_10LE", "RGBA64_LE"}) {
    at(format);
    Layer layer(caps_text(format, size), "operator=source");
    const Picture expected = source_picture(layer, 1);
    layer.draw = [](const GstVideoInfo& video, int) {
      const Buffer frame = noise(video, 100);
      return spread(video, frame.get(), 0xee);
    };
    EXPECT_SAME(composed(run, "", caps_text(format, size), {layer}), expected);
  }
}

TEST(honours_crop, Each::run) {
  for (const char* format : {"RGB", "NV12", "GRAY16_LE"}) {
    at(format);
    const Size small{32, 20};
    const GstVideoInfo whole = video_info(format, {64, 48});
    const Buffer frame = noise(whole, 3);
    Layer layer(caps_text(format, small), "operator=source");
    layer.draw = [&](const GstVideoInfo&, int) {
      Buffer copy(gst_buffer_copy_deep(frame.get()));
      gst_buffer_add_video_meta(copy.get(), GST_VIDEO_FRAME_FLAG_NONE, GST_VIDEO_INFO_FORMAT(&whole), 64, 48);
      GstVideoCropMeta* crop = gst_buffer_add_video_crop_meta(copy.get());
      crop->x = 6, crop->y = 4, crop->width = 32, crop->height = 20;
      gst_buffer_add_video_region_of_interest_meta(copy.get(), "inside", 16, 10, 8, 6);
      return copy;
    };
    const std::vector<Output> all = play(run, "", caps_text(format, small), {layer});
    EXPECT_EQ(all.size(), 1u);
    const Buffer cropped = cut(whole, frame.get(), {6, 4, 32, 20});
    EXPECT_SAME(all[0].shown(), picture(cropped.get(), video_info(format, small)));
    // The metas of a pad's frame do not apply to the composed frame.
    EXPECT(!gst_buffer_get_video_crop_meta(all[0].buffer.get()));
    EXPECT(!gst_buffer_get_video_region_of_interest_meta_id(all[0].buffer.get(), 0));
    gpointer cursor = nullptr;
    EXPECT(!gst_buffer_iterate_meta_filtered(all[0].buffer.get(), &cursor, GST_VIDEO_REGION_OF_INTEREST_META_API_TYPE));
  }
}

TEST(scales_the_cropped_part, Each::run) {
  for (const char* format : {"RGB", "NV12"})
    for (const char* pad : {"width=50 height=31", "width=50 height=50 sizing-policy=keep-aspect-ratio",
                            "width=20 height=40 sizing-policy=fill", "xpos=-10 ypos=30"}) {
      at(format + std::string(" ") + pad);
      const Size small{32, 20};
      const GstVideoInfo whole = video_info(format, {64, 48});
      // A different part of the frame each time.
      const auto part = [](int n) { return GstVideoRectangle{4 * n, 2 * n, 32, 20}; };
      Layer cropped(caps_text(format, small), pad, 5), cut_out = cropped;
      cropped.draw = [&](const GstVideoInfo&, int n) {
        Buffer frame = noise(whole, 3);
        gst_buffer_add_video_meta(frame.get(), GST_VIDEO_FRAME_FLAG_NONE, GST_VIDEO_INFO_FORMAT(&whole), 64, 48);
        GstVideoCropMeta* crop = gst_buffer_add_video_crop_meta(frame.get());
        crop->x = guint(part(n).x), crop->y = guint(part(n).y), crop->width = 32, crop->height = 20;
        return frame;
      };
      cut_out.draw = [&](const GstVideoInfo&, int n) {
        const Buffer frame = noise(whole, 3);
        return cut(whole, frame.get(), part(n));
      };
      const std::string out = caps_text(format, {64, 60});
      const std::vector<Output> all = play(run, "background=white", out, {cropped});
      EXPECT_EQ(all.size(), 5u);
      expect_same(all, play(run, "background=white", out, {cut_out}), 0);
    }
}

/// Drops these frames as compositor does, with one warning for consecutive ones.
TEST(drops_frames_that_do_not_fit_their_caps, Each::run) {
  const Size size{32, 20};
  const GstVideoInfo whole = video_info("RGB", {64, 48});
  const auto crop_that_leaves_its_frame = [&] {
    Buffer frame = noise(whole);
    gst_buffer_add_video_meta(frame.get(), GST_VIDEO_FRAME_FLAG_NONE, GST_VIDEO_INFO_FORMAT(&whole), 64, 48);
    GstVideoCropMeta* crop = gst_buffer_add_video_crop_meta(frame.get());
    crop->x = 40, crop->y = 4, crop->width = 32, crop->height = 20;
    return frame;
  };
  const auto too_small = [] { return Buffer(gst_buffer_new_allocate(nullptr, 100, nullptr)); };
  const std::string shown = "+cs++s+ss+c";  // '+' a good frame, 'c' a crop beyond the frame, 's' a frame that is too small
  Mixer mixer(run, "background=black", caps_text("RGB", size));
  mixer.add(caps_text("RGB", size));
  mixer.add(caps_text("RGB", size));
  mixer.play();
  for (std::size_t n = 0; n < shown.size(); ++n) {
    at("frame " + std::to_string(n));
    const bool good = shown[n] == '+';
    mixer.push(0, flat(mixer.video(0), {100}));
    mixer.push(1, good ? flat(mixer.video(1), {200}) : shown[n] == 'c' ? crop_that_leaves_its_frame() : too_small());
    EXPECT_SAME(mixer.next().shown(), plain(video_info("RGB", size), {good ? 200 : 100}));
    const bool first = !good && shown[n - 1] == '+';
    const Message message = mixer.warning(0);
    if (first) EXPECT_CONTAINS(message.text, "sink_1");
    EXPECT_EQ(message.text.empty(), !first);
  }
  for (int i = 0; i < 2; ++i) mixer.end(i);
  EXPECT(!mixer.pull());
  EXPECT(mixer.error(0).text.empty());
}

// Backgrounds, scaling, layouts -------------------------------------------------------------------------------------------------

TEST(draws_its_background, Each::run) {
  const Size size{33, 19};
  for (const std::string& format : formats(run)) {
    const GstVideoInfo video = video_info(format, size);
    for (const auto& [settings, color] : {std::pair{"background=black", std::array<double, 3>{0, 0, 0}},
                                          {"background=white", {1, 1, 1}},
                                          {"background=color background-color=0xffcc6633", {0.8, 0.4, 0.2}}}) {
      at(format + " " + settings);
      Picture result = composed(run, settings, caps_text(format, size), {{caps_text("RGB", {4, 4}), "alpha=0"}});
      EXPECT_WITHIN(result, plain(video, samples_of(video, color[0], color[1], color[2])), 1);
    }
  }
  for (const char* format : {"RGBA", "ARGB64_LE"}) {
    at(format);
    const Size small{5, 3};
    const GstVideoInfo video = video_info(format, small);
    const int most = format == std::string("RGBA") ? 255 : 65535;
    const Layer none{caps_text("RGB", {4, 4}), "alpha=0"};
    EXPECT_SAME(Picture{composed(run, "background=transparent", caps_text(format, small), {none})[3]},
                Picture{plain(video, {0})[3]});
    EXPECT_SAME(composed(run, "background=color background-color=0x80ff0000", caps_text(format, small), {none}),
                plain(video, {most, 0, 0, most / 255 * 128}));
  }
  at("checker");
  const Picture result = composed(run, "", caps_text("GRAY8", size), {{caps_text("RGB", {4, 4}), "alpha=0"}});
  EXPECT_SAME(result, drawn(result, [](int x, int y) { return Color{(x / 8 + y / 8) % 2 ? 160.0 : 80.0, 0, 0, 0}; }));
}

TEST(scales_with_each_interpolation, Each::run) {
  const Size from{24, 16};
  for (const auto& [width, height] : {std::pair{48, 40}, {12, 8}, {31, 9}, {24, 33}, {7, 16}})
    for (const char* how : {"nearest", "bilinear", "area"}) {
      at(how + std::string(" to ") + std::to_string(width) + "x" + std::to_string(height));
      const Size size{width, height};
      const std::vector<Layer> layers{
          {caps_text("RGB", from), "operator=source width=" + std::to_string(width) + " height=" + std::to_string(height)}};
      const Picture source = source_picture(layers[0], 1);
      const Picture result = composed(run, std::string("interpolation=") + how, caps_text("RGB", size), layers);
      const auto read = [&](std::size_t c, int x, int y) {
        return double(sample(source, c, std::clamp(x, 0, from.width - 1), std::clamp(y, 0, from.height - 1)));
      };
      // The source samples and their weights along one axis, for one pixel of the output.
      const auto weights = [&](int i, int out, int in) {
        std::vector<std::pair<int, double>> taps;
        const double ratio = double(in) / out, centre = (i + 0.5) * ratio;
        if (how == std::string("nearest")) {
          taps.push_back({int(std::floor(centre + 1e-9)), 1});
        } else if (how == std::string("area") && in > out) {
          for (int k = int(i * ratio); k < in && k < (i + 1) * ratio; ++k)
            taps.push_back({k, (std::min<double>(k + 1, (i + 1) * ratio) - std::max<double>(k, i * ratio)) / ratio});
        } else {
          const double left = std::floor(centre - 0.5), part = centre - 0.5 - left;
          taps = {{int(left), 1 - part}, {int(left) + 1, part}};
        }
        return taps;
      };
      EXPECT_WITHIN(result,
                    drawn(result,
                          [&](int x, int y) {
                            Color sum{};
                            for (const auto& [sx, wx] : weights(x, width, from.width))
                              for (const auto& [sy, wy] : weights(y, height, from.height))
                                for (std::size_t c = 0; c < 3; ++c) sum[c] += wx * wy * read(c, sx, sy);
                            return sum;
                          }),
                    how == std::string("nearest") ? 0 : 1);
    }
}

TEST(follows_each_sizing_policy, Each::run) {
  // A frame of 40×20. Its left and right quarters have other colours than its middle.
  const auto draw = [](const GstVideoInfo& video, int) {
    Buffer frame = flat(video, {0, 0, 0});
    GstVideoFrame map;
    EXPECT(gst_video_frame_map(&map, &video, frame.get(), GST_MAP_WRITE));
    for (int y = 0; y < 20; ++y)
      for (int x = 0; x < 40; ++x)
        static_cast<guint8*>(GST_VIDEO_FRAME_PLANE_DATA(&map, 0))[y * GST_VIDEO_FRAME_PLANE_STRIDE(&map, 0) + 3 * x +
                                                                  (x < 10   ? 0
                                                                   : x < 30 ? 1
                                                                            : 2)] = 255;
    gst_video_frame_unmap(&map);
    return frame;
  };
  const auto shown = [&](const char* pad) {
    Layer layer(caps_text("RGB", {40, 20}), std::string("operator=source ") + pad);
    layer.draw = draw;
    return composed(run, "background=white interpolation=nearest", caps_text("RGB", {60, 60}), {layer});
  };
  const auto expect = [&](const char* pad, const cv::Rect& place, const std::function<std::size_t(int)>& channel) {
    at(pad);
    const Picture result = shown(pad);
    EXPECT_SAME(result, drawn(result, [&](int x, int y) {
                  if (!place.contains({x, y})) return Color{255, 255, 255, 0};
                  Color color{};
                  color[channel(x - place.x)] = 255;
                  return color;
                }));
  };
  const auto thirds = [](int left, int right) { return [=](int x) { return std::size_t(x < left ? 0 : x < right ? 1 : 2); }; };
  expect("width=20 height=20 xpos=5 ypos=7", {5, 7, 20, 20}, thirds(5, 15));
  expect("width=20 height=20 xpos=5 ypos=7 sizing-policy=none", {5, 7, 20, 20}, thirds(5, 15));
  expect("width=20 height=20 xpos=5 ypos=7 sizing-policy=keep-aspect-ratio", {5, 12, 20, 10}, thirds(5, 15));
  expect("width=20 height=20 xpos=5 ypos=7 sizing-policy=fill", {5, 7, 20, 20}, thirds(0, 20));
  expect("width=40 height=40 sizing-policy=keep-aspect-ratio", {0, 10, 40, 20}, thirds(10, 30));
  expect("width=40 height=40 sizing-policy=fill", {0, 0, 40, 40}, thirds(0, 40));
  expect("width=60 height=20 sizing-policy=keep-aspect-ratio", {10, 0, 40, 20}, thirds(10, 30));
  expect("sizing-policy=fill", {0, 0, 40, 20}, thirds(10, 30));
}

TEST(lays_out_a_grid, Each::run) {
  struct Case {
    int pads, columns, rows, gap;
    int expected_columns, expected_rows;
  };
  for (const Case& c : {Case{36, 6, 6, 0, 6, 6},
                        {36, 0, 0, 0, 6, 6},
                        {5, 0, 0, 3, 3, 2},
                        {4, 4, 0, 2, 4, 1},
                        {4, 0, 4, 2, 1, 4},
                        {1, 0, 0, 0, 1, 1},
                        {7, 3, 2, 1, 3, 2},
                        {2, 3, 3, 5, 3, 3}}) {
    at(std::to_string(c.pads) + " pads in " + std::to_string(c.columns) + "x" + std::to_string(c.rows));
    const Size size{211, 173};
    std::vector<Layer> layers;
    const auto color = [](int i) { return Color{double(7 * i % 256), double(255 - 7 * i), double(i), 255}; };
    for (int i = 0; i < c.pads; ++i) layers.push_back({caps_text("RGB", {31 + i, 17 + 3 * i}), "", integers(color(i))});
    const Picture result = composed(run,
                                    "layout=grid background=white columns=" + std::to_string(c.columns) +
                                        " rows=" + std::to_string(c.rows) + " gap=" + std::to_string(c.gap),
                                    caps_text("RGB", size), layers);
    const int cells = c.expected_columns * c.expected_rows;
    const double step_x = double(size.width + c.gap) / c.expected_columns, step_y = double(size.height + c.gap) / c.expected_rows;
    std::vector<cv::Rect> found(std::size_t(c.pads), cv::Rect());
    for (int y = 0; y < size.height; ++y)
      for (int x = 0; x < size.width; ++x)
        if (const int i = sample(result, 2, x, y); i < c.pads && integers(pixel(result, x, y)) == integers(color(i)))
          found[std::size_t(i)] |= cv::Rect(x, y, 1, 1);
    for (int i = 0; i < c.pads; ++i) {
      const cv::Rect& rect = found[std::size_t(i)];
      at(std::to_string(i) + " of " + std::to_string(c.pads) + " pads in " + std::to_string(c.columns) + "x" +
         std::to_string(c.rows));
      if (i >= cells) {
        EXPECT(rect.empty());
        continue;
      }
      EXPECT_EQ(rect.size(), found[0].size());
      const int column = i % c.expected_columns, row = i / c.expected_columns;
      // Cells have whole pixels, so less than one pixel for each cell is left over.
      EXPECT(std::abs(rect.width - (step_x - c.gap)) <= 1 && std::abs(rect.height - (step_y - c.gap)) <= 1);
      EXPECT(std::abs(rect.x - column * step_x) <= c.expected_columns && std::abs(rect.y - row * step_y) <= c.expected_rows);
      if (column > 0 && i > 0) EXPECT(rect.x - found[std::size_t(i - 1)].br().x >= c.gap);
      if (row > 0) EXPECT(rect.y - found[std::size_t(i - c.expected_columns)].br().y >= c.gap);
    }
  }
}

TEST(honours_sizing_in_a_grid, Each::run) {
  const Picture result = composed(run, "layout=grid background=black", caps_text("RGB", {80, 40}),
                                  {{caps_text("RGB", {10, 5}), "sizing-policy=keep-aspect-ratio", {255, 0, 0}},
                                   {caps_text("RGB", {10, 5}), "xpos=3 ypos=2 width=5 height=5", {0, 255, 0}}});
  EXPECT_SAME(result, drawn(result, [](int x, int y) {
                return x >= 40 ? Color{0, 255, 0, 0} : y >= 10 && y < 30 ? Color{255, 0, 0, 0} : Color{0, 0, 0, 0};
              }));
}

// Changes -----------------------------------------------------------------------------------------------------------------------

TEST(changes_properties_while_playing, Each::run) {
  const Size size{40, 30};
  const char* const settings[][2] = {{"background=black", ""},
                                     {"background=white", "alpha=0.5"},
                                     {"background=white", "xpos=12"},
                                     {"interpolation=nearest", "width=30"},
                                     {"layout=grid gap=2", ""},
                                     {"layout=manual", "operator=difference"},
                                     {"layout=manual", "key=color key-color=0x0a141e"}};
  Mixer mixer(run, "", caps_text("RGB", size));
  for (int i = 0; i < 2; ++i) mixer.add(caps_text("RGB", {20, 20}));
  mixer.play();
  std::string element, pad;
  for (const auto& one : settings) {
    at(one[0] + std::string(" ") + one[1]);
    set(mixer.element(), one[0]), set(mixer.pad(1), one[1]);
    element += std::string(" ") + one[0], pad += std::string(" ") + one[1];
    std::vector<Layer> layers{{caps_text("RGB", {20, 20})}, {caps_text("RGB", {20, 20}), pad}};
    for (int i = 0; i < 2; ++i) mixer.push(i, frame_of(layers[std::size_t(i)], mixer.video(i), unsigned(i + 1), 0));
    EXPECT_SAME(mixer.next().shown(), composed(run, element, caps_text("RGB", size), layers));
  }
}

TEST(survives_adding_and_removing_pads, Each::run) {
  Mixer mixer(run, "background=black", caps_text("RGBA", {64, 48}));
  mixer.add(caps_text("RGBA", {64, 48}));
  mixer.play();
  GstClockTime expected = 0;
  for (int round = 0; round < 30; ++round) {
    at("round " + std::to_string(round));
    mixer.push(0, flat(mixer.video(0), {10, 20, 30, 255}));
    int added = -1;
    if (round % 3 == 0) {
      added = mixer.add(caps_text(round % 2 ? "NV12" : "RGB", {16, 16}), "xpos=5 ypos=5");
      mixer.skip_to(added, expected);
      mixer.push(added, flat(mixer.video(added), round % 2 ? std::vector<int>{235, 128, 128} : std::vector<int>{255, 255, 255}));
    }
    const Output output = mixer.next();
    EXPECT_EQ(output.pts, expected);
    EXPECT_EQ(output.duration, frame_time);
    EXPECT_EQ(sample(output.shown(), 0, 40, 40), 10);
    expected += frame_time;
    if (added >= 0) mixer.remove(added);
  }
  mixer.end(0);
  EXPECT(!mixer.pull());
}

/// Some threads request and release pads while another thread negotiates and composes.
TEST(survives_pads_released_by_other_threads, Each::run) {
  for (bool ignore : {false, true}) {
    at(ignore ? "ignore-inactive-pads=true" : "");
    GstElement* const pipeline = gst_pipeline_new(nullptr);
    GstElement* const element = with_shared_context(make_element(run, ignore ? "ignore-inactive-pads=true" : ""), run);
    GstElement* const sink = gst_element_factory_make("fakesink", nullptr);
    g_object_set(sink, "sync", FALSE, "signal-handoffs", TRUE, nullptr);
    static std::atomic<int> frames;
    frames = 0;
    g_signal_connect(sink, "handoff", G_CALLBACK(+[](GstElement*, GstBuffer*, GstPad*, gpointer) { ++frames; }), nullptr);
    gst_bin_add_many(GST_BIN(pipeline), element, sink, nullptr);
    EXPECT(gst_element_link(element, sink));
    struct Source {
      GstElement* bin;
      GstPad* pad;
    };
    const auto add = [&](int number) {
      const std::string text = "videotestsrc is-live=true pattern=" + std::to_string(number % 20) +
                               " ! video/x-raw,format=" + (number % 2 ? "NV12" : "RGBA") + ",width=32,height=24,framerate=200/1";
      Source source{gst_parse_bin_from_description(text.c_str(), TRUE, nullptr),
                    gst_element_request_pad_simple(element, "sink_%u")};
      EXPECT(source.bin && source.pad);
      gst_bin_add(GST_BIN(pipeline), source.bin);
      GstPad* const src = gst_element_get_static_pad(source.bin, "src");
      EXPECT_EQ(gst_pad_link(src, source.pad), GST_PAD_LINK_OK);
      gst_object_unref(src);
      gst_element_sync_state_with_parent(source.bin);
      return source;
    };
    const auto remove = [&](const Source& source) {
      gst_element_set_locked_state(source.bin, TRUE);
      gst_element_release_request_pad(element, source.pad);
      gst_element_set_state(source.bin, GST_STATE_NULL);
      gst_bin_remove(GST_BIN(pipeline), source.bin);
      gst_object_unref(source.pad);
    };
    const Source stays = add(0);
    gst_element_set_state(pipeline, GST_STATE_PLAYING);
    const auto wait_for_frames = [&](int count) {
      const gint64 late = g_get_monotonic_time() + gint64(patience / 1000);
      for (const int before = frames; frames < before + count; g_usleep(1000)) EXPECT(g_get_monotonic_time() < late);
    };
    wait_for_frames(1);
    std::vector<GstPad*> idle;  // makes the list of pads longer
    for (int i = 0; i < 30; ++i) idle.push_back(gst_element_request_pad_simple(element, "sink_%u"));
    std::vector<std::thread> changers;
    for (int thread = 0; thread < 4; ++thread)
      changers.emplace_back([&, thread] {
        for (int i = 0; i < 100; ++i) {
          const Source one = add(4 * i + thread);
          g_usleep(gulong(i % 3) * 1000);
          remove(one);
        }
      });
    for (std::thread& changer : changers) changer.join();
    for (GstPad* pad : idle) gst_element_release_request_pad(element, pad), gst_object_unref(pad);
    EXPECT_EQ(GST_ELEMENT(element)->numsinkpads, guint16(1));
    wait_for_frames(10);
    gst_element_send_event(pipeline, gst_event_new_eos());
    GstBus* const bus = gst_element_get_bus(pipeline);
    bool ended = false;
    while (!ended) {
      GstMessage* const message = gst_bus_timed_pop_filtered(bus, patience, GstMessageType(GST_MESSAGE_ERROR | GST_MESSAGE_EOS));
      EXPECT(message);
      EXPECT(GST_MESSAGE_SRC(message) != GST_OBJECT(element));  // (a source posts that it is not linked any more)
      ended = GST_MESSAGE_TYPE(message) == GST_MESSAGE_EOS;
      gst_message_unref(message);
    }
    gst_object_unref(bus);
    gst_element_set_state(pipeline, GST_STATE_NULL);
    gst_object_unref(stays.pad);
    gst_object_unref(pipeline);
  }
}

/// The element waits for a pad without frames until the pad is released. Pads with frames can be released too.
TEST(continues_when_a_pad_is_released, Each::run) {
  Mixer mixer(run, "background=black", caps_text("RGBA", {64, 48}));
  mixer.add(caps_text("RGBA", {64, 48}));
  mixer.play();
  for (int n = 0; n < 100; ++n) mixer.push(0, flat(mixer.video(0), {10, 20, 30, 255}));
  mixer.end(0);
  GstClockTime expected = 0;
  for (int round = 0; round < 30; ++round) {
    at("round " + std::to_string(round));
    const int added = mixer.add(caps_text(round % 2 ? "NV12" : "RGB", {16, 16}), "xpos=5 ypos=5");
    mixer.skip_to(added, expected);
    for (int n = 0; n < round % 4; ++n) mixer.push(added, noise(mixer.video(added), unsigned(n)));
    if (round % 5 == 0) g_usleep(2000);
    mixer.remove(added);
    const Output output = mixer.next();
    EXPECT_EQ(output.pts, expected);
    EXPECT_EQ(sample(output.shown(), 0, 40, 40), 10);
    expected += frame_time;
  }
  EXPECT_EQ(mixer.rest().size(), 70u);
}

TEST(follows_format_changes, Each::run) {
  const Size size{20, 14};
  Mixer mixer(run, "background=black", caps_text("RGB", {40, 30}));
  for (int i = 0; i < 2; ++i) mixer.add(caps_text("RGB", size), i ? "xpos=10 ypos=6" : "");
  mixer.play();
  const std::vector<std::string> names = formats(run);
  const auto layers = [&](std::size_t n) {
    return std::vector<Layer>{{caps_text(names[n], size)}, {caps_text(names[(n + 7) % names.size()], size), "xpos=10 ypos=6"}};
  };
  for (std::size_t n = 0; n < names.size(); ++n)
    for (int i = 0; i < 2; ++i) {
      const Layer layer = layers(n)[std::size_t(i)];
      mixer.caps_of(i, layer.caps);
      mixer.push(i, frame_of(layer, mixer.video(i), unsigned(i + 1), 0));
    }
  for (int i = 0; i < 2; ++i) mixer.end(i);
  const std::vector<Output> all = mixer.rest();
  EXPECT_EQ(all.size(), names.size());
  for (std::size_t n = 0; n < names.size(); ++n) {
    at(names[n]);
    EXPECT_EQ(all[n].pts, n * frame_time);
    EXPECT_SAME(all[n].shown(), composed(run, "background=black", caps_text("RGB", {40, 30}), layers(n)));
  }
}

/// The pads offer all formats for any downstream caps, and device memory only on the CUDA backend.
TEST(offers_all_formats_on_its_pads, Each::run) {
  const std::vector<std::string> names = formats(run);
  EXPECT(names.size() >= 30);
  Mixer mixer(run, "", caps_text("NV12", {40, 30}));
  mixer.add(caps_text("RGB", {20, 14}));
  mixer.add(caps_text("I420", {20, 14}));
  for (GstState state : {GST_STATE_NULL, GST_STATE_READY, GST_STATE_PLAYING}) {
    at(gst_element_state_get_name(state));
    mixer.state(state);
    if (state == GST_STATE_PLAYING) {
      for (int i = 0; i < 2; ++i) mixer.push(i, noise(mixer.video(i)));
      mixer.next();
    }
    for (int i = 0; i < 2; ++i) {
      const Caps offered(gst_pad_query_caps(mixer.pad(i), nullptr));
      for (const std::string& name : names) {
        const Caps one(gst_caps_from_string(caps_text(name, {333, 7}, ",interlace-mode=progressive").c_str()));
        FAIL_UNLESS(gst_caps_can_intersect(one.get(), offered.get()), "%s: no %s", where().c_str(), name.c_str());
      }
      const Caps device(gst_caps_from_string(caps_text("NV12", {64, 48}, ",interlace-mode=progressive", cuda_memory).c_str()));
      EXPECT_EQ(gst_caps_can_intersect(device.get(), offered.get()), run.backend == "cuda");
    }
  }
}

/// The output format if downstream leaves a choice.
TEST(chooses_its_output_format, Each::run) {
  struct Case {
    std::vector<std::string> pads;
    const char *settings, *out, *expected;
  };
  for (const Case& c :
       {Case{{rated("NV12", {64, 48}, 25)}, "", "", "NV12 64x48 25"},
        {{rated("NV12", {64, 48}, 25), rated("RGBA", {32, 24}, 30)}, "", "", "RGBA 64x48 30"},
        {{rated("I420", {64, 48}, 10), rated("P010_10LE", {96, 24}, 15)}, "", "", "I420 96x48 15"},
        {{rated("NV12", {64, 48}, 25), rated("RGBA", {32, 24}, 30)}, "", "video/x-raw,format=I420", "I420 64x48 30"},
        {{rated("GRAY8", {63, 47}, 25)}, "", "video/x-raw,width=100", "GRAY8 100x47 25"},
        {{rated("RGB", {64, 48}, 25), rated("RGB", {30, 50}, 25), rated("RGB", {10, 10}, 25)},
         "layout=grid gap=4",
         "",
         "RGB 132x104 25"}}) {
    at(c.expected);
    std::vector<Layer> layers;
    for (const std::string& pad : c.pads) layers.push_back({pad});
    const std::vector<Output> all = play(run, c.settings, c.out, layers);
    EXPECT(!all.empty());
    const GstVideoInfo& video = all[0].video;
    EXPECT_EQ(std::string(GST_VIDEO_INFO_NAME(&video)) + " " + std::to_string(video.width) + "x" + std::to_string(video.height) +
                  " " + std::to_string(video.fps_n / video.fps_d),
              std::string(c.expected));
  }
}

TEST(follows_caps_changes_of_downstream, Each::run) {
  Mixer mixer(run, "background=white", caps_text("RGB", {40, 30}));
  mixer.add(caps_text("RGB", {20, 14}));
  mixer.play();
  const auto shown = [&] {
    mixer.push(0, flat(mixer.video(0), {100, 50, 20}));
    return mixer.next();
  };
  EXPECT_EQ(shown().video.width, 40);
  for (const auto& [format, size] : {std::pair{"NV12", Size{50, 40}}, {"RGBA", {16, 10}}, {"GRAY16_LE", {31, 33}}}) {
    at(format);
    mixer.want(caps_text(format, size));
    Output output = shown();
    for (int i = 0; i < 3 && output.video.width != size.width; ++i) output = shown();  // one frame may have had the old caps
    EXPECT_EQ(std::string(GST_VIDEO_INFO_NAME(&output.video)), std::string(format));
    EXPECT_WITHIN(output.shown(),
                  composed(run, "background=white", caps_text(format, size), {{caps_text("RGB", {20, 14}), "", {100, 50, 20}}}), 0);
  }
}

TEST(seeks_like_compositor, Each::run) {
  if (!have_compositor()) return;
  const auto times = [](const Run& of, double rate, GstClockTime from, GstClockTime to) {
    GError* error = nullptr;
    GstElement* pipeline = gst_parse_launch(
        (of.element + " name=mix background=black sink_1::xpos=16 ! video/x-raw,format=RGB ! appsink name=out sync=false "
                      "videotestsrc ! video/x-raw,format=RGB,width=32,height=24,framerate=25/1 ! mix. "
                      "videotestsrc pattern=ball ! video/x-raw,format=RGB,width=32,height=24,framerate=10/1 ! mix.")
            .c_str(),
        &error);
    FAIL_UNLESS(!error, "%s", error ? error->message : "");
    GstElement *mix = gst_bin_get_by_name(GST_BIN(pipeline), "mix"), *sink = gst_bin_get_by_name(GST_BIN(pipeline), "out");
    if (!of.backend.empty()) set(mix, "backend=" + of.backend);
    with_shared_context(mix, of);
    gst_element_set_state(pipeline, GST_STATE_PAUSED);
    EXPECT_EQ(gst_element_get_state(pipeline, nullptr, nullptr, patience), GST_STATE_CHANGE_SUCCESS);
    EXPECT(gst_element_seek(pipeline, rate, GST_FORMAT_TIME, GstSeekFlags(GST_SEEK_FLAG_FLUSH | GST_SEEK_FLAG_ACCURATE),
                            GST_SEEK_TYPE_SET, gint64(from), GST_SEEK_TYPE_SET, gint64(to)));
    gst_element_set_state(pipeline, GST_STATE_PLAYING);
    std::vector<GstClockTime> found;
    while (found.size() < 100) {
      GstSample* one = nullptr;
      g_signal_emit_by_name(sink, "try-pull-sample", guint64(patience), &one);
      if (!one) break;
      const GstSegment* segment = gst_sample_get_segment(one);
      const GstClockTime pts = GST_BUFFER_PTS(gst_sample_get_buffer(one));
      found.push_back(gst_segment_to_stream_time(segment, GST_FORMAT_TIME, pts));
      found.push_back(gst_segment_to_running_time(segment, GST_FORMAT_TIME, pts));
      gst_sample_unref(one);
    }
    gboolean ended = FALSE;
    g_object_get(sink, "eos", &ended, nullptr);
    EXPECT(ended);
    gst_element_set_state(pipeline, GST_STATE_NULL);
    gst_object_unref(sink);
    gst_object_unref(mix);
    gst_object_unref(pipeline);
    return found;
  };
  for (const auto& [rate, from, to] : {std::tuple{1.0, 2 * GST_SECOND, 2 * GST_SECOND + 400 * GST_MSECOND},
                                       {2.0, 1 * GST_SECOND, 1 * GST_SECOND + 800 * GST_MSECOND}}) {
    at("rate " + std::to_string(rate));
    const auto actual = times(run, rate, from, to), expected = times(compositor, rate, from, to);
    EXPECT(expected.size() >= 10);
    EXPECT(actual == expected);
  }
}

/// A pad gets the navigation events over its picture, in coordinates of that picture.
TEST(passes_navigation_to_the_pad_below_the_pointer, Each::run) {
  Mixer mixer(run, "", caps_text("RGB", {100, 80}));
  mixer.add(caps_text("RGB", {30, 20}), "xpos=0 ypos=0");
  mixer.add(caps_text("RGB", {40, 20}), "xpos=40 ypos=30 width=20 height=10");
  using Heard = std::vector<std::pair<double, double>>;
  Heard heard[2];
  for (int i = 0; i < 2; ++i)
    gst_pad_add_probe(
        mixer.pad(i), GST_PAD_PROBE_TYPE_EVENT_UPSTREAM,
        [](GstPad*, GstPadProbeInfo* info, gpointer data) {
          const GstStructure* structure = gst_event_get_structure(GST_PAD_PROBE_INFO_EVENT(info));
          double x, y;
          if (GST_EVENT_TYPE(GST_PAD_PROBE_INFO_EVENT(info)) == GST_EVENT_NAVIGATION &&
              gst_structure_get(structure, "pointer_x", G_TYPE_DOUBLE, &x, "pointer_y", G_TYPE_DOUBLE, &y, nullptr))
            static_cast<Heard*>(data)->emplace_back(x, y);
          return GST_PAD_PROBE_OK;
        },
        &heard[i], nullptr);
  mixer.play();
  for (int i = 0; i < 2; ++i) mixer.push(i, noise(mixer.video(i)));
  for (int i = 0; i < 2; ++i) mixer.end(i);
  EXPECT_EQ(mixer.rest().size(), 1u);
  for (const auto& [x, y] : {std::pair{45.0, 32.0}, {10.0, 5.0}, {90.0, 70.0}}) {
    GstStructure* structure =
        gst_structure_new("application/x-gst-navigation", "event", G_TYPE_STRING, "mouse-move", "button", G_TYPE_INT, 0,
                          "pointer_x", G_TYPE_DOUBLE, x, "pointer_y", G_TYPE_DOUBLE, y, nullptr);
    gst_element_send_event(mixer.element(), gst_event_new_navigation(structure));
  }
  EXPECT((heard[1] == Heard{{10.0, 4.0}}));
  EXPECT((heard[0] == Heard{{10.0, 5.0}}));
}

TEST(survives_settings_from_other_threads, Each::run) {
  Mixer mixer(run, "", caps_text("NV12", {64, 48}));
  for (int i = 0; i < 2; ++i) mixer.add(caps_text("NV12", {32, 24}));
  mixer.play();
  std::atomic<bool> done{false};
  std::thread setter([&] {
    for (int i = 0; !done; ++i) {
      g_object_set(mixer.pad(1), "xpos", i % 40 - 10, "width", i % 50, "alpha", i % 11 / 10.0, "zorder", guint(i % 3), "operator",
                   i % 10, nullptr);
      g_object_set(mixer.element(), "background", i % 5, "layout", i % 2, "interpolation", i % 3, nullptr);
    }
  });
  for (int i = 0; i < 2; ++i) {
    for (int n = 0; n < 50; ++n) mixer.push(i, noise(mixer.video(i), unsigned(n)));
    mixer.end(i);
  }
  const std::size_t count = mixer.rest().size();
  done = true;
  setter.join();
  EXPECT_EQ(count, 50u);
}

TEST(plays_several_times, Each::run) {
  const std::vector<Layer> layers{{caps_text("RGB", {32, 24}), "", 3}, {caps_text("NV12", {16, 16}), "alpha=0.5", 3}};
  Mixer mixer(run, "background=black");
  for (const Layer& layer : layers) mixer.add(layer.caps, layer.pad);
  std::vector<Output> first;
  for (int round = 0; round < 3; ++round) {
    at("round " + std::to_string(round));
    mixer.play();
    mixer.rewind();
    feed(mixer, layers);
    std::vector<Output> all = mixer.rest();
    EXPECT_EQ(all.size(), 3u);
    if (round == 0)
      first = std::move(all);
    else
      expect_same(all, first, 0);
    mixer.state(round == 0 ? GST_STATE_NULL : GST_STATE_READY);
  }
  first.clear();
  mixer.state(GST_STATE_NULL);
}

TEST(continues_after_a_flush, Each::run) {
  Mixer mixer(run, "background=black", caps_text("RGB", {32, 24}));
  mixer.add(caps_text("RGB", {32, 24}));
  mixer.play();
  mixer.push(0, flat(mixer.video(0), {100}));
  EXPECT_EQ(mixer.next().pts, GstClockTime(0));
  GstElement* source = GST_ELEMENT(gst_object_get_parent(GST_OBJECT(mixer.pad(0))));  // the element itself
  EXPECT(source == mixer.element());
  gst_object_unref(source);
  EXPECT(gst_element_send_event(mixer.pipeline(), gst_event_new_flush_start()));
  EXPECT(gst_element_send_event(mixer.pipeline(), gst_event_new_flush_stop(TRUE)));
  mixer.skip_to(0, 0);
  mixer.push(0, flat(mixer.video(0), {200}));
  const Output output = mixer.next();
  EXPECT_EQ(sample(output.shown(), 0, 3, 3), 200);
  mixer.end(0);
}

// Limits ------------------------------------------------------------------------------------------------------------------------

namespace {

/// Calls f for each property of the plugin's classes that may change while playing.
template <typename F>
void each_own_property(gpointer object, F&& f) {
  each_property(object, [&](GParamSpec* spec) {
    if (g_str_has_prefix(g_type_name(spec->owner_type), "CudaVision") && (spec->flags & GST_PARAM_MUTABLE_PLAYING)) f(spec);
  });
}

/// Both ends of a property's range.
std::pair<double, double> range_of(GParamSpec* spec) {
  if (G_IS_PARAM_SPEC_INT(spec)) return {G_PARAM_SPEC_INT(spec)->minimum, G_PARAM_SPEC_INT(spec)->maximum};
  if (G_IS_PARAM_SPEC_UINT(spec)) return {G_PARAM_SPEC_UINT(spec)->minimum, G_PARAM_SPEC_UINT(spec)->maximum};
  if (G_IS_PARAM_SPEC_DOUBLE(spec)) return {G_PARAM_SPEC_DOUBLE(spec)->minimum, G_PARAM_SPEC_DOUBLE(spec)->maximum};
  if (G_IS_PARAM_SPEC_ENUM(spec))
    return {G_PARAM_SPEC_ENUM(spec)->enum_class->minimum, G_PARAM_SPEC_ENUM(spec)->enum_class->maximum};
  return {0, 1};
}
void set_number(gpointer object, GParamSpec* spec, double number) {
  GValue value = G_VALUE_INIT;
  g_value_init(&value, spec->value_type);
  if (G_IS_PARAM_SPEC_INT(spec)) g_value_set_int(&value, int(number));
  if (G_IS_PARAM_SPEC_UINT(spec)) g_value_set_uint(&value, guint(number));
  if (G_IS_PARAM_SPEC_DOUBLE(spec)) g_value_set_double(&value, number);
  if (G_IS_PARAM_SPEC_ENUM(spec)) g_value_set_enum(&value, int(number));
  if (G_IS_PARAM_SPEC_BOOLEAN(spec)) g_value_set_boolean(&value, number > 0);
  g_object_set_property(G_OBJECT(object), spec->name, &value);
  GValue now = G_VALUE_INIT;
  g_value_init(&now, spec->value_type);
  g_object_get_property(G_OBJECT(object), spec->name, &now);
  EXPECT_EQ(gst_value_compare(&value, &now), GST_VALUE_EQUAL);
  g_value_unset(&value), g_value_unset(&now);
}

}  // namespace

/// Tools set values up to the ends of a property's range, or map 0 to 1 to the range.
TEST(accepts_the_ends_of_each_range, Each::run) {
  for (const char* settings : {"", "sizing-policy=keep-aspect-ratio", "sizing-policy=fill"}) {
    Mixer mixer(run, "background=black", caps_text("RGB", {40, 30}));
    for (int i = 0; i < 2; ++i) mixer.add(caps_text("RGB", {20, 10}), settings);
    mixer.play();
    const auto show = [&] {
      for (int i = 0; i < 2; ++i) mixer.push(i, flat(mixer.video(i), {100 + i}));
      mixer.next();
      GstBus* const bus = gst_element_get_bus(mixer.pipeline());
      GstMessage* const said = gst_bus_pop_filtered(bus, GstMessageType(GST_MESSAGE_ERROR | GST_MESSAGE_WARNING));
      gst_object_unref(bus);
      FAIL_UNLESS(!said, "%s: there was a message", where().c_str());
    };
    for (gpointer object : {gpointer(mixer.element()), gpointer(mixer.pad(1))})
      each_own_property(object, [&](GParamSpec* spec) {
        at(spec->name);
        const auto [least, most] = range_of(spec);
        for (double value : {least, (least + most) / 2, most}) set_number(object, spec, value), show();
        const std::string initial = value_text(object, spec);
        GstControlSource* source = gst_interpolation_control_source_new();
        gst_timed_value_control_source_set(GST_TIMED_VALUE_CONTROL_SOURCE(source), 0, 0.5);
        GstControlBinding* binding = gst_direct_control_binding_new(GST_OBJECT(object), spec->name, source);
        EXPECT(gst_object_add_control_binding(GST_OBJECT(object), binding));
        show();
        gst_object_remove_control_binding(GST_OBJECT(object), binding);
        gst_object_unref(source);
        g_object_set_property(G_OBJECT(object), spec->name, g_param_spec_get_default_value(spec));
      });
    // All properties at once.
    for (bool greatest : {false, true}) {
      at(greatest ? "the greatest of all" : "the least of all");
      for (gpointer object : {gpointer(mixer.pad(1)), gpointer(mixer.element())})
        each_own_property(object, [&](GParamSpec* spec) {
          if (spec->name != std::string("sizing-policy") && spec->name != std::string("layout"))
            set_number(object, spec, greatest ? range_of(spec).second : range_of(spec).first);
        });
      show();
    }
  }
}

/// A value that GObject refuses changes nothing, and later settings still work.
TEST(refuses_values_beyond_their_range, Each::run) {
  Mixer mixer(run, "background=black", caps_text("RGB", {16, 16}));
  mixer.add(caps_text("RGB", {16, 16}), "alpha=0.5");
  mixer.play();
  const auto show = [&] {
    mixer.push(0, flat(mixer.video(0), {200}));
    return mixer.next().shown();
  };
  const Picture good = show();
  for (const auto& [of_pad, bad] : {std::pair{true, "key-softness=700"},
                                    {true, "key-softness=-2"},
                                    {true, "key-tolerance=-3"},
                                    {true, "key-tolerance=256"},
                                    {true, "key-color=0x1000000"},
                                    {true, "width=99999"},
                                    {true, "height=-2"},
                                    {true, "xpos=20000000"},
                                    {true, "ypos=-20000000"},
                                    {true, "alpha=1.5"},
                                    {false, "columns=20000"},
                                    {false, "rows=16385"},
                                    {false, "gap=99999"}}) {
    at(bad);
    gpointer const object = of_pad ? gpointer(mixer.pad(0)) : gpointer(mixer.element());
    const std::string name = std::string(bad).substr(0, std::string(bad).find('='));
    GParamSpec* const spec = g_object_class_find_property(G_OBJECT_GET_CLASS(object), name.c_str());
    const std::string old = value_text(object, spec);
    // GLib warns. Since 2.84 at the latest, the message is critical.
    _gst_check_expecting_log = TRUE;
    _gst_check_raised_warning = _gst_check_raised_critical = FALSE;
    gst_util_set_object_arg(G_OBJECT(object), name.c_str(), bad + name.size() + 1);
    _gst_check_expecting_log = FALSE;
    EXPECT(_gst_check_raised_warning || _gst_check_raised_critical);
    EXPECT_EQ(value_text(object, spec), old);
    EXPECT_SAME(show(), good);
    EXPECT_EQ(value_text(object, spec), old);
    set(mixer.pad(0), "alpha=1");
    EXPECT_SAME(show(), plain(video_info("RGB", {16, 16}), {200}));
    set(mixer.pad(0), "alpha=0.5");
    EXPECT_SAME(show(), good);
  }
  EXPECT(mixer.error(0).text.empty());
  EXPECT(mixer.warning(0).text.empty());
}

TEST(accepts_64_pads, Each::run) {
  Mixer mixer(run, "layout=grid background=black", caps_text("RGB", {64, 64}));
  for (int i = 0; i < max_pads; ++i) mixer.add(caps_text("RGB", {8, 8}));
  mixer.play();
  for (int i = 0; i < max_pads; ++i) {
    mixer.push(i, flat(mixer.video(i), {i * 4, 255 - i, 50}));
    mixer.end(i);
  }
  const std::vector<Output> all = mixer.rest();
  EXPECT_EQ(all.size(), 1u);
  const Picture result = all[0].shown();
  EXPECT_SAME(result, drawn(result, [](int x, int y) {
                const int i = y / 8 * 8 + x / 8;
                return Color{i * 4.0, 255.0 - i, 50, 0};
              }));
}

/// The element refuses the 65th pad with a warning, or posts an error about it.
TEST(reports_that_65_pads_are_too_many, Each::run) {
  Mixer mixer(run, "layout=grid background=black", caps_text("RGB", {64, 64}));
  for (int i = 0; i < max_pads; ++i) mixer.add(caps_text("RGB", {8, 8}));
  GstPad* pad = gst_element_request_pad_simple(mixer.element(), "sink_%u");
  if (!pad) {
    EXPECT_CONTAINS(mixer.warning(patience).text, "64");
    return;
  }
  gst_element_release_request_pad(mixer.element(), pad);
  gst_object_unref(pad);
  mixer.add(caps_text("RGB", {8, 8}));
  mixer.play();
  for (int i = 0; i <= max_pads; ++i) mixer.push(i, flat(mixer.video(i), {100}));
  EXPECT_CONTAINS(mixer.error(patience).text, "64");
}

TEST(accepts_live_and_other_sources, Each::run) {
  at("live and not live");
  GError* error = nullptr;
  GstElement* pipeline = gst_parse_launch(
      "cudablend name=mix background=black sink_1::xpos=20 latency=200000000 ! "
      "video/x-raw,format=RGBA,width=64,height=48,framerate=25/1 ! "
      "appsink name=out sync=false "
      "videotestsrc is-live=true num-buffers=20 ! video/x-raw,format=NV12,width=64,height=48,framerate=25/1 ! mix.sink_0 "
      "videotestsrc num-buffers=15 ! video/x-raw,format=RGBA,width=32,height=24,framerate=30/1 ! mix.sink_1",
      &error);
  FAIL_UNLESS(!error, "%s", error ? error->message : "");
  GstElement* mix = gst_bin_get_by_name(GST_BIN(pipeline), "mix");
  set(mix, "backend=" + run.backend);
  with_shared_context(mix, run);
  gst_object_unref(mix);
  GstElement* sink = gst_bin_get_by_name(GST_BIN(pipeline), "out");
  gst_element_set_state(pipeline, GST_STATE_PLAYING);
  GstClockTime last = GST_CLOCK_TIME_NONE;
  int count = 0;
  for (;; ++count) {
    GstSample* sample = nullptr;
    g_signal_emit_by_name(sink, "try-pull-sample", guint64(patience), &sample);
    if (!sample) break;
    GstBuffer* buffer = gst_sample_get_buffer(sample);
    if (last != GST_CLOCK_TIME_NONE) EXPECT_EQ(GST_BUFFER_PTS(buffer), last + frame_time);
    EXPECT_EQ(GST_BUFFER_DURATION(buffer), frame_time);
    last = GST_BUFFER_PTS(buffer);
    gst_sample_unref(sample);
  }
  gboolean ended = FALSE;
  g_object_get(sink, "eos", &ended, nullptr);
  EXPECT(ended);
  EXPECT(count >= 10 && count <= 40);
  gst_element_set_state(pipeline, GST_STATE_NULL);
  gst_object_unref(sink);
  gst_object_unref(pipeline);
}

TEST(continues_when_a_live_source_sends_nothing, Each::run) {
  for (bool ignore : {false, true}) {
    at(ignore ? "ignore-inactive-pads=true" : "");
    GstElement* element =
        gst_element_factory_make_full(run.element.c_str(), "force-live", TRUE, "ignore-inactive-pads", ignore, nullptr);
    EXPECT(element);
    set(element, "backend=" + run.backend);
    Mixer mixer(with_shared_context(element, run), caps_text("RGB", {16, 16}));
    mixer.add(caps_text("RGB", {16, 16}));
    mixer.add(caps_text("RGB", {16, 16}), "xpos=8");  // gets no frames
    mixer.play();
    mixer.push(0, flat(mixer.video(0), {100}));
    // GstVideoAggregator restarts if caps come after the first frame was due. Then the second frame has the timestamp of the first, in
    // compositor too.
    mixer.next(), mixer.next();
    GstClockTime last = mixer.next().pts;
    for (int i = 0; i < 5; ++i) {
      const Output output = mixer.next();
      EXPECT_EQ(output.pts, last + frame_time);
      last = output.pts;
    }
  }
}

// Memories ----------------------------------------------------------------------------------------------------------------------

TEST(accepts_system_and_cuda_memory, Each::run) {
  if (run.backend != "cuda") return;
  const Size size{64, 48};
  const std::vector<Layer> layers{{caps_text("NV12", size)},
                                  {caps_text("RGBA", {32, 24}), "xpos=10 ypos=6 alpha=0.5"},
                                  {caps_text("I420", {20, 20}), "xpos=40 operator=average alpha=0.65 key=first-pixel"}};
  for (const char* out : {"NV12", "RGBA"})
    for (int on_device = 0; on_device < 16; ++on_device) {
      at(out + std::string(" ") + std::to_string(on_device));
      Mixer mixer(run, "background=black", caps_text(out, size, "", on_device & 8 ? cuda_memory : nullptr));
      for (int i = 0; i < 3; ++i) mixer.add(layers[std::size_t(i)].caps, layers[std::size_t(i)].pad, on_device >> i & 1);
      mixer.play();
      feed(mixer, layers);
      const std::vector<Output> all = mixer.rest();
      EXPECT_EQ(all.size(), 1u);
      EXPECT_WITHIN(all[0].shown(), composed({run.element, "cpu"}, "background=black", caps_text(out, size), layers), 1);
    }
}

TEST(equals_the_other_backend, Each::run) {
  if (run.backend != "cuda") return;
  for (const std::string& format : formats(run)) {
    at(format);
    const std::vector<Layer> layers{{caps_text("RGB", {61, 43})},
                                    {caps_text(format, {37, 29}), "xpos=-5 ypos=9 width=55 height=31 alpha=0.8"},
                                    {caps_text("RGBA", {20, 20}), "xpos=40 operator=screen"}};
    const std::string out = caps_text(format, {61, 43});
    EXPECT_WITHIN(composed(run, "", out, layers), composed({run.element, "cpu"}, "", out, layers), 1);
  }
}

int main() { return run_tests("blend", "cudablend"); }
