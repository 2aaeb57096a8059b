// SPDX-License-Identifier: LGPL-2.1-or-later
// Tests how texts of properties become rectangles, polygons and lines (gst/base/shapes.hpp), and each error.
#include "gst/base/shapes.hpp"

#include <string>

#include "tests/elements/expect.hpp"

namespace {

using namespace cudavision;

using test::expect;

std::string show(const Polygon& points) {
  std::string text;
  for (const Point& point : points)
    text += (text.empty() ? "" : " ") + std::to_string(point.x) + "," + std::to_string(point.y);
  return text;
}

/// The shapes in a frame of 640×480: "name: x,y x,y; [x,y,w,h]", or the error.
std::string read(ShapeKind kind, const std::string& text) {
  const auto shapes = parse_shapes("zones", kind, text);
  if (!shapes.ok()) return shapes.error().message();
  std::string result;
  for (const Shape& shape : shapes.value()) {
    result += (result.empty() ? "" : "; ") + shape.name + (shape.name.empty() ? "" : ": ");
    if (shape.rectangle) {
      const Rect r = rect_in(shape, 640, 480);
      result += "[" + show({{r.x, r.y}, {r.width, r.height}}) + "]";
      continue;
    }
    const auto points = points_in("zones", shape, 640, 480);
    if (!points.ok()) return points.error().message();
    result += show(points.value());
  }
  return result;
}

void expect_read(ShapeKind kind, const std::string& text, const std::string& result) {
  const std::string got = read(kind, text);
  expect(got == result, "\"" + text + "\" gives \"" + got + "\", and not \"" + result + "\"");
}
void expect_error(ShapeKind kind, const std::string& text, const std::string& part) {
  const std::string got = read(kind, text);
  expect(got.rfind("zones ", 0) == 0 && got.find(part) != std::string::npos, "\"" + text + "\" gives \"" + got + "\"");
}

void reads_areas() {
  const ShapeKind areas = ShapeKind::areas;
  expect_read(areas, "", "");
  expect_read(areas, " \n", "");
  expect_read(areas, "1,2,3,4", "[1,2 3,4]");
  expect_read(areas, " 1 , 2,3 ,4 ;-5,-6,7,8", "[1,2 3,4]; [-5,-6 7,8]");
  expect_read(areas, "0,-2147483648,96,2147483647", "[0,-2147483648 96,2147483647]");
  expect_read(areas, "0.25,0.5,0.5,0.5", "[160,240 320,240]");
  expect_read(areas, "1,2 3,4 5,8", "1,2 3,4 5,8");
  expect_read(areas, " 1,2\t3,4  5,8 ;7,8,9,10", "1,2 3,4 5,8; [7,8 9,10]");
  expect_read(areas, "1, 2 3 ,4 5 , 8", "1,2 3,4 5,8");
  expect_read(areas, "0.0,0.0 1.0,0.0 0.5,1.0", "0,0 640,0 320,480");
  expect_read(areas, "0,0 1,0 0.5,1", "0,0 640,0 320,480");
  expect_read(areas, "0.5,0,0.5,1", "[320,0 320,480]");
  expect_read(areas, "0.,.0 1.,.0 .5,1.", "0,0 640,0 320,480");
  expect_read(areas, "0,0 640,0 640,480 0,480 0,0", "0,0 640,0 640,480 0,480");  // closed by its first corner
  expect_read(areas, "0,0 0,0 640,0 640,480 640,480", "0,0 640,0 640,480");
  const auto expect_unreadable = [&](std::initializer_list<const char*> texts) {
    for (const char* text : texts)
      expect_error(areas, text, std::string("zones is \"") + text + "\": it must be rectangles x,y,w,h");
  };
  expect_unreadable({"a,b", "1", "1,2,3", "1,2,3,0", "1,2,3,-4", "1,2,3,4,5", "1,2,3,4;", ";", "1,2 3", "1,2 3,4,5,6",
                     "1,2 3,4 5,", "+1,2,3,4", "1e1,2,3,4", "0x1,2,3,4", "nan,0,1,1", "1,2,3,4a", "1 2 3 4 5 6",
                     "-,1,2,3"});
  expect_unreadable({"1,2,3,4;;5,6,7,8", "1,,2 3,4 5,6", "99999999999,0,1,1", "1.5,0.0 1.0,0.0 0.5,0.5",
                     "0.5,0 2,0 1,1", "100,0.5 1,0 1,1", "0.5,-0.5 1.0,0.0 1.0,1.0", "0.0,0.0,0.0,0.5", "1,2 3,4 5-6,7",
                     "1.0.0,0.5,0.5,0.5"});
  expect_error(areas, "1,2", "three different corners");
  expect_error(areas, "1,2 3,4",
               "zones has 1,2 3,4, which is not a polygon: a polygon has three different corners or more");
  expect_error(areas, "1,2 3,4 1,2", "three different corners");
  expect_error(areas, "0,0 10,10 10,0 0,10", "which crosses or touches itself");
  expect_error(areas, "0.1,0.1 0.2,0.2 0.2,0.1 0.1,0.2", "which crosses or touches itself");
  expect_error(areas, "0,0 10,0 5,0", "which crosses or touches itself");
  expect_error(areas, "-1,0 10,0 5,5", "which leaves every frame: pixels are 0 to 16384");
  expect_error(areas, "0,0 10,0 5,16385", "which leaves every frame");
  expect_error(areas, "0,0 641,0 5,5", "zones has 0,0 641,0 5,5, which leaves the frame of 640×480 at 641,0");
  expect_error(areas, "0,0 640,0 5,481", "leaves the frame of 640×480 at 5,481");
  std::string many = "0,0";
  for (int i = 0; i < 1000; ++i) many += " " + std::to_string(i) + ",9" + (i % 2 ? "9" : "");
  expect_error(areas, many, "at most 256");
}

void reads_names() {
  const ShapeKind zones = ShapeKind::zones, lines = ShapeKind::lines;
  expect_read(zones, "", "");
  expect_read(zones, "door: 100,80 300,80 300,400 100,400; the back yard :0.5,0.5 1.0,0.5 1.0,1.0",
              "door: 100,80 300,80 300,400 100,400; the back yard: 320,240 640,240 640,480");
  expect_read(lines, "gate: 10,200 630,220;exit:0.0,0.5 1.0,0.5", "gate: 10,200 630,220; exit: 0,240 640,240");
  for (const char* text : {"100,80 300,80 300,400", ": 100,80 300,80 300,400", "door: 1,1 2,2 3,1; 4,4 5,5 6,4",
                           "door:", "door: 1,2,3,4", "a: b: 1,1 2,2 3,1", "door: 1,1 2,2 3,1;"})
    expect_error(zones, text,
                 std::string("zones is \"") + text + "\": it must be polygons with names, NAME: x,y x,y x,y,");
  expect_error(zones, "\xff: 1,1 2,2 3,1", "zones has a name that is not UTF-8");
  expect_read(zones, "\xc3\xa9: 1,1 2,2 3,1", "\xc3\xa9: 1,1 2,2 3,1");
  expect_error(zones, "door: 1,1 3,3", "zones has door (1,1 3,3), which is not a polygon");
  expect_error(zones, "door: 1,1 3,3 3,1 1,3", "zones has door (1,1 3,3 3,1 1,3), which crosses or touches itself");
  expect_error(zones, "door: 1,1 700,3 3,9",
               "zones has door (1,1 700,3 3,9), which leaves the frame of 640×480 at 700,3");
  expect_error(zones, "a: 1,1 2,2 3,1; b: 1,1 2,2 3,1; a: 1,1 2,2 3,1", "zones has the name a twice");
  for (const char* text : {"10,200 630,220", "gate: 1,2,3,4", "gate: x"})
    expect_error(lines, text, "it must be lines with names, NAME: x,y x,y,");
  expect_error(lines, "gate: 10,200", "which is not a line: a line has two different points");
  expect_error(lines, "gate: 10,200 10,200", "two different points");
  expect_error(lines, "gate: 10,200 20,200 30,300", "two different points");
  expect_error(lines, "gate: 10,200 20,481", "leaves the frame of 640×480 at 20,481");
}

void gives_pixels() {
  const auto areas = parse_shapes("zones", ShapeKind::areas, "-5,-5,10,10; 700,0,10,10; 10,0 14,0 10,4");
  expect(areas.ok(), "areas are read");
  if (!areas.ok()) return;
  const auto pixels = pixels_in("zones", areas.value(), 640, 480);
  expect(pixels.ok() && pixels.value().size() == 4, "a rectangle and three rows");
  if (!pixels.ok() || pixels.value().size() != 4) return;
  const Rect &first = pixels.value()[0], &second = pixels.value()[1], &last = pixels.value()[3];
  expect(first.x == 0 && first.y == 0 && first.width == 5 && first.height == 5, "the rectangle is clipped");
  expect(second.x == 10 && second.y == 0 && second.width == 3 && second.height == 1, "the first row of the triangle");
  expect(last.y == 2 && last.width == 1, "the last row of the triangle");
  expect(!pixels_in("zones", areas.value(), 12, 480).ok(), "a polygon that leaves the frame");
}

}  // namespace

int main() {
  for (const auto test : {reads_areas, reads_names, gives_pixels}) test();
  return cudavision::test::exit_status();
}
