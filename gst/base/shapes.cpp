// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gst/base/shapes.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>

#include "gst/base/frame.hpp"

namespace cudavision {
namespace {

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

/// Removes and returns the text before `separator`. The separator is also removed.
std::string_view cut(std::string_view& text, char separator) {
  const auto end = text.find(separator);
  const std::string_view head = text.substr(0, end);
  text.remove_prefix(end == text.npos ? text.size() : end + 1);
  return head;
}

/// The error about text that cannot be read.
Status wrong_syntax(const char* property, ShapeKind kind, const std::string& text) {
  const char* const forms[] = {"rectangles x,y,w,h of 1 pixel or more a side, or polygons x,y x,y x,y,",
                               "polygons with names, NAME: x,y x,y x,y,", "lines with names, NAME: x,y x,y,"};
  return Status::settings(std::string(property) + " is \"" + text + "\": it must be " + forms[int(kind)] +
                          " with ; between them, in whole pixels or in shares of the frame from 0.0 to 1.0");
}

/// Reads a whole number, or a share with a decimal point.
std::optional<double> read_number(std::string_view& text, bool& share) {
  const auto length = std::min(text.find_first_not_of("-.0123456789"), text.size());
  const char *const begin = text.data(), *const end = begin + length;
  share = text.substr(0, length).find('.') != text.npos;
  double value = 0;
  int whole = 0;
  const auto [next, error] =
      share ? std::from_chars(begin, end, value, std::chars_format::fixed) : std::from_chars(begin, end, whole);
  if (error != std::errc() || next != end) return {};
  text.remove_prefix(length);
  return share ? value : whole;
}

/// Reads the numbers of a shape. Points are two numbers separated by a comma; rectangles are four.
bool read_numbers(std::string_view text, Shape& shape) {
  std::vector<int> groups;  // number of comma-separated numbers in each group
  for (text = trimmed(text); !text.empty(); text = trimmed(text)) {
    if (!groups.empty() && !is_space(text.data()[-1])) return false;
    groups.push_back(0);
    for (bool follows = true; follows; ++groups.back()) {
      bool share;
      const auto number = read_number(text, share);
      if (!number) return false;
      shape.shares |= share;
      shape.numbers.push_back(*number);
      const std::string_view rest = trimmed(text);
      follows = !rest.empty() && rest.front() == ',';
      if (follows) text = trimmed(rest.substr(1));
    }
  }
  const auto is_share = [](double number) { return number >= 0 && number <= 1; };
  if (shape.shares && !std::all_of(shape.numbers.begin(), shape.numbers.end(), is_share)) return false;
  shape.rectangle = groups == std::vector<int>{4};
  return shape.rectangle ||
         (!groups.empty() && std::all_of(groups.begin(), groups.end(), [](int count) { return count == 2; }));
}

/// The points of a shape, on a grid that is fine enough for their numbers.
Polygon fine_points(const Shape& shape) {
  const double scale = shape.shares ? 1 << 24 : 1;
  Polygon points;
  for (std::size_t i = 0; i + 1 < shape.numbers.size(); i += 2)
    points.push_back({int(std::lround(shape.numbers[i] * scale)), int(std::lround(shape.numbers[i + 1] * scale))});
  return points;
}

/// Removes corners that repeat the previous corner, as in a polygon that is closed by its first corner.
void drop_repeated_corners(Shape& shape) {
  auto& numbers = shape.numbers;
  const auto equal = [&](std::size_t a, std::size_t b) {
    return numbers[a] == numbers[b] && numbers[a + 1] == numbers[b + 1];
  };
  for (std::size_t i = 2; i < numbers.size();)
    if (equal(i, i - 2))
      numbers.erase(numbers.begin() + std::ptrdiff_t(i), numbers.begin() + std::ptrdiff_t(i) + 2);
    else
      i += 2;
  while (numbers.size() > 2 && equal(0, numbers.size() - 2)) numbers.resize(numbers.size() - 2);
}

/// The beginning of a sentence about a shape: "zones has door (100,80 300,80)".
std::string named(const char* property, const Shape& shape) {
  return std::string(property) + " has " + (shape.name.empty() ? shape.text : shape.name + " (" + shape.text + ")");
}

/// Makes the checks that do not depend on the frame.
Status check_shape(const char* property, ShapeKind kind, const Shape& shape) {
  if (shape.rectangle) return {};
  const std::size_t count = shape.numbers.size() / 2;
  if (kind == ShapeKind::lines) {
    if (count != 2)
      return Status::settings(named(property, shape) + ", which is not a line: a line has two different points");
  } else if (count < 3 || count > max_corners) {
    return Status::settings(named(property, shape) +
                            ", which is not a polygon: a polygon has three different corners or more, and at most " +
                            std::to_string(max_corners));
  }
  for (double number : shape.numbers)
    if (number < 0 || number > max_frame_side)
      return Status::settings(named(property, shape) + ", which leaves every frame: pixels are 0 to " +
                              std::to_string(max_frame_side));
  if (kind != ShapeKind::lines && crosses_itself(fine_points(shape)))
    return Status::settings(named(property, shape) +
                            ", which crosses or touches itself: list the corners in their order around the polygon");
  return {};
}

}  // namespace

Result<std::vector<Shape>> parse_shapes(const char* property, ShapeKind kind, const std::string& text) {
  std::vector<Shape> shapes;
  std::string_view rest = text;
  if (trimmed(rest).empty()) return shapes;
  while (true) {
    const bool last = rest.find(';') == rest.npos;
    std::string_view item = cut(rest, ';');
    Shape shape;
    if (kind != ShapeKind::areas) {
      if (item.find(':') == item.npos) return wrong_syntax(property, kind, text);
      shape.name = trimmed(cut(item, ':'));
      if (shape.name.empty()) return wrong_syntax(property, kind, text);
      if (!g_utf8_validate(shape.name.data(), gssize(shape.name.size()), nullptr))
        return Status::settings(std::string(property) + " has a name that is not UTF-8");
    }
    shape.text = trimmed(item);
    if (!read_numbers(shape.text, shape)) return wrong_syntax(property, kind, text);
    if (shape.rectangle && (kind != ShapeKind::areas || shape.numbers[2] <= 0 || shape.numbers[3] <= 0))
      return wrong_syntax(property, kind, text);
    if (!shape.rectangle) drop_repeated_corners(shape);
    if (Status status = check_shape(property, kind, shape); !status.ok()) return status;
    for (const Shape& other : shapes)
      if (!shape.name.empty() && other.name == shape.name)
        return Status::settings(std::string(property) + " has the name " + shape.name +
                                " twice: each name must be different");
    shapes.push_back(std::move(shape));
    if (last) return shapes;
  }
}

Result<std::vector<Shape>> ShapeFitting::accept(const char* property, ShapeKind kind, const std::string& text) {
  const auto written = parse_shapes(property, kind, text);
  if (!written.ok()) return written.error();
  std::vector<Shape> accepted;
  for (const Shape& shape : written.value()) {
    const std::string key = std::string(property) + " " + shape.text;
    bool fits;
    if (shape.rectangle) {
      fits = !intersection(rect_in(shape, width_, height_), {0, 0, width_, height_}).empty();
    } else {
      const auto points = points_in(property, shape, width_, height_);
      fits = points.ok();
      if (!fits && fitted_.count(key) == 0) return points.error();
    }
    if (fits && !shape.shares) fitted_.insert(key);
    if (!fits && fitted_.count(key) > 0)
      names_.push_back(named(property, shape));
    else
      accepted.push_back(shape);
  }
  return accepted;
}

std::string ShapeFitting::left_out(const char* consequence) const {
  std::string text;
  for (const std::string& name : names_) text += (text.empty() ? "" : ", ") + name;
  if (text.empty()) return text;
  return text + ", outside the frame of " + size_text(width_, height_) + ": " + consequence +
         "; coordinates as shares of the frame, such as 0.5, fit every size";
}

Result<Polygon> points_in(const char* property, const Shape& shape, int frame_width, int frame_height) {
  Polygon points;
  for (std::size_t i = 0; i + 1 < shape.numbers.size(); i += 2) {
    double x = shape.numbers[i], y = shape.numbers[i + 1];
    if (shape.shares) x = std::floor(x * frame_width + 0.5), y = std::floor(y * frame_height + 0.5);
    if (x < 0 || y < 0 || x > frame_width || y > frame_height)
      return Status::settings(named(property, shape) + ", which leaves the frame of " +
                              size_text(frame_width, frame_height) + " at " + number_text(x) + "," + number_text(y));
    points.push_back({int(x), int(y)});
  }
  return points;
}

Rect rect_in(const Shape& shape, int frame_width, int frame_height) {
  const auto& n = shape.numbers;
  if (!shape.shares) return {int(n[0]), int(n[1]), int(n[2]), int(n[3])};
  const auto scaled = [](double share, int length) { return int(std::floor(share * length + 0.5)); };
  const int left = scaled(n[0], frame_width), top = scaled(n[1], frame_height);
  return {left, top, scaled(n[0] + n[2], frame_width) - left, scaled(n[1] + n[3], frame_height) - top};
}

Result<std::vector<Rect>> pixels_in(const char* property, const std::vector<Shape>& areas, int frame_width,
                                    int frame_height) {
  std::vector<Rect> rects;
  for (const Shape& shape : areas) {
    if (shape.rectangle) {
      const Rect rect = intersection(rect_in(shape, frame_width, frame_height), {0, 0, frame_width, frame_height});
      if (!rect.empty()) rects.push_back(rect);
      continue;
    }
    const auto polygon = points_in(property, shape, frame_width, frame_height);
    if (!polygon.ok()) return polygon.error();
    append_pixels(polygon.value(), frame_width, frame_height, rects);
  }
  return rects;
}

}  // namespace cudavision
