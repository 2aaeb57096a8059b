// SPDX-License-Identifier: LGPL-2.1-or-later
// The framework of the tests of cudablend: pictures, colours, and an aggregator (cudablend or compositor) in a
// pipeline.
#pragma once

#include <array>
#include <cstdio>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/elements/harness.hpp"

namespace cudavision::test {

inline constexpr GstClockTime frame_time = GST_SECOND / 25, patience = 10 * GST_SECOND;
inline constexpr int max_pads = 64;
inline const Run compositor{"compositor", ""};
/// A Mixer turns buffers with this flag into gap events.
inline constexpr GstBufferFlags as_gap_event = GST_BUFFER_FLAG_CORRUPTED;
inline const std::string as_gap_event_name = "corrupted";

// Pictures ------------------------------------------------------------------------------------------------------------

using Color = std::array<int, 4>;  ///< the samples of a pixel

inline int sample(const Picture& picture, std::size_t component, int x, int y) {
  return picture[component].at<guint16>(y, x);
}

/// A picture with one value for each component.
inline Picture plain(const GstVideoInfo& video, const std::vector<int>& values) {
  return picture(flat(video, values).get(), video);
}
/// A picture with the sizes of `like` and color(x, y) at each pixel, for formats without subsampling only.
template <typename F>
Picture drawn(const Picture& like, F&& color) {
  Picture result;
  for (const cv::Mat& component : like) result.push_back(component.clone());
  for (int y = 0; y < like[0].rows; ++y)
    for (int x = 0; x < like[0].cols; ++x) {
      const Color samples = color(x, y);
      for (std::size_t c = 0; c < result.size(); ++c) result[c].at<guint16>(y, x) = guint16(samples[c]);
    }
  return result;
}

// Pipelines -----------------------------------------------------------------------------------------------------------

struct Output {
  Buffer buffer;
  GstVideoInfo video;
  GstClockTime pts = 0, duration = 0;
  Picture shown() const { return picture(buffer.get(), video); }
};

inline std::string rated(const std::string& format, Size size, int rate, const std::string& more = "") {
  return "video/x-raw,format=" + format + ",width=" + std::to_string(size.width) +
         ",height=" + std::to_string(size.height) + ",framerate=" + std::to_string(rate) + "/1" + more;
}

/// An aggregator in its own pipeline without a clock, with an appsrc for each pad and an appsink. No call waits
/// forever.
class Mixer {
 public:
  /// `out`: caps of the output. Empty: the element chooses them.
  explicit Mixer(const Run& run, const std::string& settings = "", const std::string& out = "")
      : Mixer(with_shared_context(make_element(run, settings), run), out) {}
  /// With a pad for each of these caps, like add(caps).
  Mixer(const Run& run, const std::string& settings, const std::string& out, std::initializer_list<std::string> inputs)
      : Mixer(run, settings, out) {
    for (const std::string& caps : inputs) add(caps);
  }
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

  /// Adds a pad and its source. With `on_device`, frames come in CUDA memory. Returns the number of the pad.
  int add(const std::string& caps, const std::string& settings = "", bool on_device = false) {
    Input input;
    input.pad = gst_element_request_pad_simple(element_, "sink_%u");
    EXPECT(input.pad);
    set(input.pad, settings);
    input.source = gst_element_factory_make("appsrc", nullptr);
    g_object_set(input.source, "format", GST_FORMAT_TIME, "max-bytes", guint64(0), nullptr);
    const std::string way = on_device ? "cudagaussian kernel-size=1 backend=cuda ! capsfilter caps=\"video/x-raw(" +
                                            std::string(cuda_memory) + ")\""
                                      : std::string("identity drop-buffer-flags=" + as_gap_event_name);
    input.way = gst_parse_bin_from_description(way.c_str(), TRUE, nullptr);
    EXPECT(input.way);
    gst_bin_add_many(GST_BIN(pipeline_), input.source, input.way, nullptr);
    EXPECT(gst_element_link(input.source, input.way));
    g_autoptr(GstPad) src = gst_element_get_static_pad(input.way, "src");
    EXPECT_EQ(gst_pad_link(src, input.pad), GST_PAD_LINK_OK);
    inputs_.push_back(input);
    caps_of(int(inputs_.size()) - 1, caps);
    gst_element_sync_state_with_parent(input.way);
    gst_element_sync_state_with_parent(input.source);
    return int(inputs_.size()) - 1;
  }

  /// Sets the caps of the next frames of a pad.
  void caps_of(int input, const std::string& text) {
    Input& in = inputs_[std::size_t(input)];
    const Caps caps(gst_caps_from_string(text.c_str()));
    EXPECT(caps && gst_video_info_from_caps(&in.video, caps.get()));
    g_object_set(in.source, "caps", caps.get(), nullptr);
    in.frame_time = in.video.fps_n ? gst_util_uint64_scale(GST_SECOND, guint64(in.video.fps_d), guint64(in.video.fps_n))
                                   : frame_time;
  }

  /// Pushes the next frame of a pad with its timestamp.
  void push(int input, Buffer frame) {
    Input& in = inputs_[std::size_t(input)];
    GST_BUFFER_PTS(frame.get()) = in.next;
    GST_BUFFER_DURATION(frame.get()) = in.frame_time;
    in.next += in.frame_time;
    push_as_it_is(input, frame);
  }
  /// Pushes a frame without changing its timestamp.
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
    lock(input);
    // first, because the source may wait for the pad to accept a frame
    gst_element_release_request_pad(element_, pad(input));
    remove_source(input);
  }
  /// Removes the source of a pad before the pipeline plays. The test then sends the events and frames of the pad
  /// itself. Returns the pad.
  GstPad* without_source(int input) {
    lock(input);
    remove_source(input);
    return pad(input);
  }

  void want(const std::string& text) {
    g_autoptr(GstElement) filter = gst_bin_get_by_name(GST_BIN(pipeline_), "out");
    const Caps caps(gst_caps_from_string(text.c_str()));
    g_object_set(filter, "caps", caps.get(), nullptr);
  }
  void play() { gst_element_set_state(pipeline_, GST_STATE_PLAYING); }
  void state(GstState state) {
    EXPECT(gst_element_set_state(pipeline_, state) != GST_STATE_CHANGE_FAILURE);
    // in READY, appsink would still be at EOS
    if (state == GST_STATE_READY) gst_element_set_state(sink_, GST_STATE_NULL);
  }
  void rewind() {
    for (Input& in : inputs_) in.next = 0;
  }
  /// Plays with a pad whose events the test sends itself. Returns the pad, after its stream-start and caps.
  GstPad* play_without_source(int input) {
    GstPad* const pad = without_source(input);
    play();
    EXPECT(gst_pad_send_event(pad, gst_event_new_stream_start("test")));
    EXPECT(gst_pad_send_event(pad, gst_event_new_caps(Caps(gst_video_info_to_caps(&video(input))).get())));
    return pad;
  }

  /// Pulls the next frame. Returns nothing at EOS.
  std::optional<Output> pull() {
    GstSample* sample = nullptr;
    g_signal_emit_by_name(sink_, "try-pull-sample", guint64(patience), &sample);
    if (!sample) {
      FAIL_UNLESS(get<gboolean>(sink_, "eos"), "%s: nothing came, and no end (%s)", where().c_str(),
                  error(0).text.c_str());
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

  /// Ends the streams of all pads, and returns the rest.
  std::vector<Output> finish() {
    for (std::size_t i = 0; i < inputs_.size(); ++i) end(int(i));
    return rest();
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

  /// Keeps the state of the pad's source while the pipeline may be changing to PLAYING.
  void lock(int input) {
    const Input& in = inputs_[std::size_t(input)];
    for (GstElement* element : {in.source, in.way}) gst_element_set_locked_state(element, TRUE);
  }
  void remove_source(int input) {
    const Input& in = inputs_[std::size_t(input)];
    for (GstElement* element : {in.source, in.way}) gst_element_set_state(element, GST_STATE_NULL);
    gst_bin_remove_many(GST_BIN(pipeline_), in.source, in.way, nullptr);
  }

  GstElement *pipeline_, *element_, *sink_;
  GstBus* bus_;
  std::vector<Input> inputs_;
};

struct Layer {
  std::string caps, pad;
  std::function<Buffer(const GstVideoInfo&, int)> draw;
  int frames = 1;
  GstClockTime from = 0;

  /// Frames of noise, each one different.
  Layer(std::string caps_, std::string pad_ = "", int frames_ = 1, GstClockTime from_ = 0)
      : caps(std::move(caps_)), pad(std::move(pad_)), frames(frames_), from(from_) {}
  Layer(std::string caps_, std::string pad_, const std::vector<int>& color)
      : caps(std::move(caps_)),
        pad(std::move(pad_)),
        draw([color](const GstVideoInfo& video, int) { return flat(video, color); }) {}
};

inline Buffer frame_of(const Layer& layer, const GstVideoInfo& video, unsigned seed, int number) {
  return layer.draw ? layer.draw(video, number) : noise(video, seed * 100 + unsigned(number));
}

inline void feed(Mixer& mixer, const std::vector<Layer>& layers) {
  for (std::size_t i = 0; i < layers.size(); ++i) {
    mixer.skip_to(int(i), layers[i].from);
    for (int n = 0; n < layers[i].frames; ++n)
      mixer.push(int(i), frame_of(layers[i], mixer.video(int(i)), unsigned(i + 1), n));
    mixer.end(int(i));
  }
}

inline std::vector<Output> play(const Run& run, const std::string& settings, const std::string& out,
                                const std::vector<Layer>& layers) {
  Mixer mixer(run, settings, out);
  for (const Layer& layer : layers) mixer.add(layer.caps, layer.pad);
  mixer.play();
  feed(mixer, layers);
  return mixer.rest();
}
/// Plays the layers and returns the first output frame.
inline Picture composed(const Run& run, const std::string& settings, const std::string& out,
                        const std::vector<Layer>& layers) {
  std::vector<Output> all = play(run, settings, out, layers);
  EXPECT(!all.empty());
  return all[0].shown();
}
inline Picture seen(const Output& output) {
  Picture all = output.shown();
  all.resize(GST_VIDEO_INFO_N_COMPONENTS(&output.video));
  return all;
}

inline void expect_same(const std::vector<Output>& actual, const std::vector<Output>& expected, int tolerance,
                        bool alpha_too = true) {
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
/// Expects the frames of compositor: the same number, timestamps and pictures. `played` plays an element.
template <typename F>
void expect_compositor(const Run& run, F&& played, int tolerance = 1, bool alpha_too = true) {
  const std::vector<Output> expected = played(compositor);
  EXPECT(!expected.empty());
  expect_same(played(run), expected, tolerance, alpha_too);
}
inline void expect_compositor(const Run& run, const std::string& settings, const std::string& out,
                              const std::vector<Layer>& layers, int tolerance = 1, bool alpha_too = true) {
  expect_compositor(
      run, [&](const Run& of) { return play(of, settings, out, layers); }, tolerance, alpha_too);
}

/// Whether compositor is installed. If not, prints a line.
inline bool have_compositor() {
  g_autoptr(GstPluginFeature) feature = gst_registry_lookup_feature(gst_registry_get(), "compositor");
  if (!feature) std::printf("not compared: there is no compositor\n");
  return feature != nullptr;
}

}  // namespace cudavision::test
