// SPDX-License-Identifier: LGPL-2.1-or-later
// Target: streams through elements. Bytes decide which element, its properties, the peers around it, caps, frames and
// events. FUZZ_MIXERS=1 takes the elements with several inputs, each of which is fed by a thread of its own,
// FUZZ_MIXERS=0 the others.
#include <gst/video/video.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/fuzz/cases.hpp"
#include "tests/fuzz/complaints.hpp"
#include "tests/fuzz/events.hpp"
#include "tests/fuzz/settings.hpp"
#include "tests/fuzz/targets/raw_frame.hpp"
#include "tests/fuzz/targets/target.hpp"

namespace cudavision::fuzz {
namespace {

constexpr int most_pixels = 1 << 11, most_actions = 12;

/// Elements with several inputs, or the others.
const std::vector<std::string>& elements() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> chosen;
    for (const std::string& name : element_names())
      if (is_mixer(name) == bool(FUZZ_MIXERS)) chosen.push_back(name);
    return chosen;
  }();
  return names;
}

const std::vector<std::string>& formats(const std::string& element) {
  static std::vector<std::pair<std::string, std::vector<std::string>>> known;
  for (const auto& [name, formats] : known)
    if (name == element) return formats;
  known.reserve(16);
  return known.emplace_back(element, formats_of(element, nullptr)).second;
}

/// Sets a property to a value that bytes decide. Properties of this plugin also get values out of their
/// ranges where GLib allows them.
void set_property(Bytes& bytes, GObject* object) {
  const auto specs = drawn_properties(object);
  GParamSpec* spec = specs[std::size_t(bytes.below(int(specs.size())))];
  const bool open = g_str_has_prefix(g_type_name(G_PARAM_SPEC_TYPE(spec)), "GstCudaVisionParam");
  Value value(spec->value_type);
  if (G_IS_PARAM_SPEC_BOOLEAN(spec)) {
    g_value_set_boolean(value.get(), bytes.below(2));
  } else if (G_IS_PARAM_SPEC_ENUM(spec)) {
    const GEnumClass* values = G_PARAM_SPEC_ENUM(spec)->enum_class;
    g_value_set_enum(value.get(), values->values[bytes.below(int(values->n_values))].value);
  } else if (G_IS_PARAM_SPEC_STRING(spec)) {
    g_value_set_string(value.get(), bytes.text().c_str());
  } else if (const auto* of_int = G_IS_PARAM_SPEC_INT(spec) ? G_PARAM_SPEC_INT(spec) : nullptr) {
    const int number = bytes.around(of_int->default_value);
    g_value_set_int(value.get(), open ? number : std::clamp(number, of_int->minimum, of_int->maximum));
  } else if (const auto* of_uint = G_IS_PARAM_SPEC_UINT(spec) ? G_PARAM_SPEC_UINT(spec) : nullptr) {
    const guint number = bytes.around(of_uint->default_value);
    g_value_set_uint(value.get(), open ? number : std::clamp(number, of_uint->minimum, of_uint->maximum));
  } else if (const auto* of_uint64 = G_IS_PARAM_SPEC_UINT64(spec) ? G_PARAM_SPEC_UINT64(spec) : nullptr) {
    g_value_set_uint64(value.get(),
                       std::clamp(bytes.around(of_uint64->default_value), of_uint64->minimum, of_uint64->maximum));
  } else if (const auto* of_int64 = G_IS_PARAM_SPEC_INT64(spec) ? G_PARAM_SPEC_INT64(spec) : nullptr) {
    g_value_set_int64(value.get(),
                      std::clamp(bytes.around(of_int64->default_value), of_int64->minimum, of_int64->maximum));
  } else if (const auto* of_double = G_IS_PARAM_SPEC_DOUBLE(spec) ? G_PARAM_SPEC_DOUBLE(spec) : nullptr) {
    const auto bits = bytes.around(std::int64_t(of_double->default_value * 256));
    double number = double(bits) / 256;
    if (bytes.byte() % 16 == 15) std::memcpy(&number, &bits, sizeof number);
    if (!open)
      number = std::isnan(number) ? of_double->minimum : std::clamp(number, of_double->minimum, of_double->maximum);
    g_value_set_double(value.get(), number);
  } else if (G_VALUE_HOLDS(value.get(), GST_TYPE_ARRAY)) {
    for (int left = bytes.below(82); left > 0; --left) {
      Value item(G_TYPE_DOUBLE);
      const auto number = std::int64_t(std::int8_t(bytes.byte()));
      g_value_set_double(item.get(), number == 127 ? double(std::int64_t(bytes.number(8))) : double(number) / 4);
      gst_value_array_append_value(value.get(), item.get());
    }
  } else {
    return;
  }
  // GStreamer's own mixer waits for its latency in real time.
  if (!is_our_property(spec) && g_str_has_prefix(spec->name, "min-")) return;
  if (!is_our_property(spec) && std::string(spec->name) == "latency") return;
  g_object_set_property(object, spec->name, value.get());
}

void set_properties(Bytes& bytes, GObject* object, int most) {
  for (int left = bytes.below(most + 1); left > 0; --left) set_property(bytes, object);
}

/// The caps of a video, with other fields that may be wrong.
std::string caps_of(Bytes& bytes, Random& random, const GstVideoInfo& video) {
  std::string text = std::string("video/x-raw,format=") + GST_VIDEO_INFO_NAME(&video) +
                     ",width=" + std::to_string(GST_VIDEO_INFO_WIDTH(&video)) +
                     ",height=" + std::to_string(GST_VIDEO_INFO_HEIGHT(&video));
  const int kind = bytes.byte() % 8;
  return text + (kind < 4 ? ",framerate=25/1" : draw_caps_fields(random, kind == 7));
}

/// Sends one stream: caps, then frames, events, queries, other caps and other settings.
void feed(Rig& rig, Input& input, const Bytes& part, const std::string& element) {
  Random random(part);
  Bytes& bytes = random.bytes();
  GstVideoInfo video = raw_video(bytes, formats(element), most_pixels);
  if (!input.begin(caps_of(bytes, random, video))) return;
  GstClockTime time = 0;
  for (int i = 0; i < most_actions && bytes.left() > 0 && rig.errors() == 0; ++i) {
    switch (bytes.byte() % 16) {
      case 0:
        video = raw_video(bytes, formats(element), most_pixels);
        if (!input.begin(caps_of(bytes, random, video))) return;
        break;
      case 1:
        set_property(bytes, G_OBJECT(bytes.below(2) ? gpointer(input.target()) : gpointer(rig.element())));
        break;
      case 2:
        input.send(draw_downstream_event(random));
        break;
      case 3:
        rig.send_upstream(draw_upstream_event(random));
        break;
      case 4:
        input.query(draw_sink_query(random, video));
        break;
      case 5:
        rig.query_upstream(draw_src_query(random));
        break;
      case 6:
        input.send(draw_segment(random));
        break;
      case 7: {
        GstSegment segment;
        gst_segment_init(&segment, GST_FORMAT_TIME);
        input.send(gst_event_new_flush_start());
        input.send(gst_event_new_flush_stop(bytes.below(2)));
        input.send(gst_event_new_segment(&segment));
        break;
      }
      default: {
        GstBuffer* buffer = raw_frame(bytes, video);
        if (!GST_BUFFER_PTS_IS_VALID(buffer)) GST_BUFFER_PTS(buffer) = time;
        time += 40 * GST_MSECOND;
        const GstFlowReturn flow = input.push(buffer);
        if (flow != GST_FLOW_OK && flow != GST_FLOW_NOT_NEGOTIATED) return;
      }
    }
  }
  if (rig.errors() == 0) input.send(gst_event_new_eos());
}

using Inputs = std::vector<std::unique_ptr<Input>>;

Inputs make_inputs(Bytes& bytes, Rig& rig) {
  Inputs inputs;
  if (!FUZZ_MIXERS) {
    inputs.push_back(std::make_unique<Input>(rig, gst_element_get_static_pad(rig.element(), "sink"), false));
    return inputs;
  }
  for (int left = 1 + bytes.below(3); left > 0; --left) {
    GstPad* pad = gst_element_request_pad_simple(rig.element(), "sink_%u");
    set_properties(bytes, G_OBJECT(pad), 4);
    inputs.push_back(std::make_unique<Input>(rig, pad, false));
  }
  return inputs;
}

/// Feeds each input in a thread of its own. Stops those that wait for each other for ever.
void feed_all(Bytes& bytes, Rig& rig, Inputs& inputs, const std::string& element) {
  if (!FUZZ_MIXERS) return feed(rig, *inputs[0], bytes, element);
  formats(element);  // looked up once, before there are threads
  std::vector<std::thread> feeders;
  std::atomic<int> left{int(inputs.size())};
  for (std::size_t i = 0; i < inputs.size(); ++i)
    feeders.emplace_back([&, i, part = i + 1 < inputs.size() ? bytes.cut_part() : bytes] {
      feed(rig, *inputs[i], part, element);
      --left;
    });
  for (int i = 0; i < 50 && left > 0 && rig.errors() == 0; ++i) g_usleep(1000);
  rig.wait_for_eos(left > 0 ? 0 : 20);
  rig.set_state(GST_STATE_READY);  // releases the feeders that wait
  for (std::thread& feeder : feeders) feeder.join();
}

}  // namespace

void run_target(Bytes all) {
  if (elements().empty()) return complain("the plugin was not found");
  Random random(all);
  Bytes& bytes = random.bytes();
  const std::string& element = elements()[std::size_t(bytes.below(int(elements().size())))];
  Rig rig(element, "cpu", draw_downstream(random, FUZZ_MIXERS));
  set_properties(bytes, G_OBJECT(rig.element()), 7);
  Inputs inputs = make_inputs(bytes, rig);
  if (rig.set_state(GST_STATE_PLAYING)) feed_all(bytes, rig, inputs, element);
  read_all(G_OBJECT(rig.element()));
  rig.set_state(GST_STATE_NULL);
}

}  // namespace cudavision::fuzz
