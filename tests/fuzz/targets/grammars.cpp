// SPDX-License-Identifier: LGPL-2.1-or-later
// Target: texts from users. Areas, zones and lines go to the parser itself, and their shapes are placed in a frame.
// Every property of every element is set from text, as gst-launch-1.0 does, followed by the checks at start.
#include <gst/video/video.h>

#include <string>
#include <vector>

#include "gst/base/settings/properties.hpp"
#include "gst/base/shapes.hpp"
#include "tests/fuzz/targets/target.hpp"
#include "tests/streams/complaints.hpp"
#include "tests/streams/plugin.hpp"
#include "tests/streams/settings.hpp"

namespace cudavision::fuzz {
namespace {

using namespace streams;

/// Complains about an error that does not tell a user what is wrong.
void check_sentence(const std::string& property, const Status& error) {
  if (error.message().rfind(property + " ", 0) != 0)
    complain("an error does not begin with the property: " + error.message());
}

void check_in_frame(const Polygon& points, int width, int height) {
  for (const Point& point : points)
    if (point.x < 0 || point.y < 0 || point.x > width || point.y > height) complain("a point lies outside the frame");
}

/// Parses shapes, and parses their texts again. The results must be equal.
void read_shapes(Random& random, ShapeKind kind) {
  const int width = 1 + random.below(400), height = 1 + random.below(300);
  const std::string text = random.bytes().rest();
  const auto shapes = parse_shapes("zones", kind, text);
  if (!shapes.ok()) return check_sentence("zones", shapes.error());
  std::string written;
  for (const Shape& shape : shapes.value()) {
    written += (written.empty() ? "" : ";") + (kind == ShapeKind::areas ? "" : shape.name + ":") + shape.text;
    if (shape.rectangle) {
      rect_in(shape, width, height);
    } else if (const auto points = points_in("zones", shape, width, height); points.ok()) {
      check_in_frame(points.value(), width, height);
    } else {
      check_sentence("zones", points.error());
    }
  }
  const auto again = parse_shapes("zones", kind, written);
  if (!again.ok() || again.value().size() != shapes.value().size())
    return complain("shapes are others if written and read again");
  for (std::size_t i = 0; i < shapes.value().size(); ++i)
    if (shapes.value()[i].name != again.value()[i].name || shapes.value()[i].numbers != again.value()[i].numbers)
      complain("a shape is another if written and read again");
  if (kind == ShapeKind::lines) return;
  if (const auto pixels = pixels_in("zones", shapes.value(), width, height); pixels.ok()) {
    for (const Rect& rect : pixels.value())
      if (rect.x < 0 || rect.y < 0 || rect.width > width - rect.x || rect.height > height - rect.y)
        complain("pixels of an area lie outside the frame");
  } else {
    check_sentence("zones", pixels.error());
  }
}

void read_one_rect(Random& random) {
  const std::string text = random.bytes().rest();
  const char *at = text.data(), *const end = at + text.size();
  read_rect(at, end);
  if (at < text.data() || at > end) complain("a rectangle was read beyond its text");
}

/// A property of an element, or of a pad of a mixer.
struct Target {
  std::string element, property;
  bool of_pad;
};

const std::vector<Target>& targets() {
  static const std::vector<Target> all = [] {
    std::vector<Target> found;
    for (const std::string& name : element_names()) {
      g_autoptr(GstElement) element = make_element(name, "cpu");
      for (const GParamSpec* spec : drawn_properties(G_OBJECT(element)))
        if (is_our_property(spec)) found.push_back({name, spec->name, false});
      if (GstPad* pad = is_mixer(name) ? gst_element_request_pad_simple(element, "sink_%u") : nullptr) {
        for (const GParamSpec* spec : drawn_properties(G_OBJECT(pad)))
          if (is_our_property(spec)) found.push_back({name, spec->name, true});
        gst_element_release_request_pad(element, pad);
        gst_object_unref(pad);
      }
    }
    return found;
  }();
  return all;
}

/// Sets a property as gst_util_set_object_arg() does. For numbers outside the range of some properties, GLib warns and
/// uses the nearest one. This function uses the nearest one directly.
void set_from_text(GObject* object, const std::string& property, const std::string& text) {
  GParamSpec* spec = g_object_class_find_property(G_OBJECT_GET_CLASS(object), property.c_str());
  Value value(spec->value_type);
  if (!gst_value_deserialize_with_pspec(value.get(), text.c_str(), spec)) return;
  g_param_value_validate(spec, value.get());
  g_object_set_property(object, property.c_str(), value.get());
}

/// Sets properties of one element from texts, and starts it. Its messages must be valid UTF-8.
void set_texts(Random& random) {
  const Target& first = targets()[std::size_t(random.below(int(targets().size())))];
  g_autoptr(GstElement) element = make_element(first.element, "cpu");
  g_autoptr(GstBus) bus = gst_bus_new();
  gst_element_set_bus(element, bus);
  GstPad* pad = first.of_pad ? gst_element_request_pad_simple(element, "sink_%u") : nullptr;
  const auto set = [&](const Target& target) {
    if (GObject* object = target.of_pad ? G_OBJECT(pad) : G_OBJECT(element))
      set_from_text(object, target.property, random.bytes().text());
  };
  set(first);
  for (int more = 0; more < 4 && random.bytes().left() > 0; ++more)
    if (const Target& other = targets()[std::size_t(random.below(int(targets().size())))];
        other.element == first.element)
      set(other);
  const bool started = gst_element_set_state(element, GST_STATE_PAUSED) != GST_STATE_CHANGE_FAILURE;
  bool has_error = false;
  while (g_autoptr(GstMessage) message =
             gst_bus_pop_filtered(bus, GstMessageType(GST_MESSAGE_ERROR | GST_MESSAGE_WARNING))) {
    g_autoptr(GError) error = nullptr;
    if (GST_MESSAGE_TYPE(message) == GST_MESSAGE_ERROR) {
      gst_message_parse_error(message, &error, nullptr);
      has_error = true;
    } else {
      gst_message_parse_warning(message, &error, nullptr);
    }
    if (!g_utf8_validate(error->message, -1, nullptr)) complain("a message is not valid UTF-8");
  }
  if (!started && !has_error) complain("a state change failed, but no error message was posted");
  read_all(G_OBJECT(element));
  gst_element_set_state(element, GST_STATE_NULL);
  gst_element_set_bus(element, nullptr);
  if (pad) {
    gst_element_release_request_pad(element, pad);
    gst_object_unref(pad);
  }
}

}  // namespace

void run_target(Random random) {
  switch (random.below(8)) {
    case 0:
      return read_shapes(random, ShapeKind::areas);
    case 1:
      return read_shapes(random, ShapeKind::zones);
    case 2:
      return read_shapes(random, ShapeKind::lines);
    case 3:
      return read_one_rect(random);
    default:
      return set_texts(random);
  }
}

}  // namespace cudavision::fuzz
