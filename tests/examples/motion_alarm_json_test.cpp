// SPDX-License-Identifier: LGPL-2.1-or-later
// Tests the lines that motion-alarm makes from messages. The messages are made here, so no plugin is needed.
#include <cmath>
#include <cstdio>

#include "examples/motion-alarm/json.hpp"

namespace {

int failures = 0;

void expect(const std::string& found, const std::string& expected) {
  if (found == expected) return;
  ++failures;
  std::fprintf(stderr, "expected %s\nfound    %s\n", expected.c_str(), found.c_str());
}

std::string line_of(const char* input, const char* message) {
  g_autoptr(GstStructure) structure = gst_structure_from_string(message, nullptr);
  return structure ? json_line(input, structure) : "no structure";
}

void add_regions(GstStructure* structure, int count) {
  GValue regions = G_VALUE_INIT;
  g_value_init(&regions, GST_TYPE_ARRAY);
  for (int i = 0; i < count; ++i) {
    GValue region = G_VALUE_INIT;
    g_value_init(&region, GST_TYPE_STRUCTURE);
    g_value_take_boxed(&region, gst_structure_new("region", "x", G_TYPE_INT, 16 * i, "y", G_TYPE_INT, -1, "width",
                                                  G_TYPE_INT, 48, "height", G_TYPE_INT, 32, "area", G_TYPE_UINT,
                                                  4000000000u, "score", G_TYPE_DOUBLE, 0.1, nullptr));
    gst_value_array_append_and_take_value(&regions, &region);
  }
  gst_structure_take_value(structure, "regions", &regions);
}

}  // namespace

int main(int argc, char** argv) {
  gst_init(&argc, &argv);

  expect(json_string("a \"b\" \\ /\n\t\x01"), R"("a \"b\" \\ /\u000a\u0009\u0001")");
  expect(json_string("Straße \xff"), "\"Straße \xef\xbf\xbd\"");
  expect(json_string(""), "\"\"");
  expect(json_number(0.1), "0.1");
  expect(json_number(0), "0");
  expect(json_number(100000), "100000");
  expect(json_number(1. / 3), "0.3333333333333333");
  expect(json_number(1e-9), "1e-09");
  expect(json_number(NAN), "null");
  expect(json_number(-INFINITY), "null");

  g_autoptr(GstStructure) begin = gst_structure_new(
      "cudadiff", "stream-time", G_TYPE_UINT64, 1500 * GST_MSECOND, "running-time", G_TYPE_UINT64, 7 * GST_SECOND,
      "event", G_TYPE_STRING, "begin", "changed-ratio", G_TYPE_DOUBLE, 0.25, "mean-difference", G_TYPE_DOUBLE, 3.5,
      "at", G_TYPE_STRING, "noon", "snapshot", G_TYPE_STRING, "a\\b.jpg", nullptr);
  add_regions(begin, 2);
  const std::string region = R"("y": -1, "width": 48, "height": 32, "area": 4000000000, "score": 0.1})";
  expect(
      json_line("cam \"1\"", begin),
      R"({"input": "cam \"1\"", "event": "begin", "time": 1.5, "changed_ratio": 0.25, "mean_difference": 3.5, "regions": [{"x": 0, )" +
          region + R"(, {"x": 16, )" + region + R"(], "at": "noon", "snapshot": "a\\b.jpg"})" + '\n');

  // Frames without timestamps and without motion.
  expect(
      line_of(
          "x",
          "cudadiff, event=(string)none, stream-time=(guint64)18446744073709551615, running-time=(guint64)2000000000"),
      R"({"input": "x", "event": "none", "time": 2, "regions": []})"
      "\n");
  expect(line_of("x", "cudadiff, event=(string)none, stream-time=(guint64)18446744073709551615"),
         R"({"input": "x", "event": "none", "time": null, "regions": []})"
         "\n");

  // Objects.
  expect(
      line_of(
          "x",
          "cudadiff, stream-time=(guint64)2500000000, event=(string)leave, id=(uint)7, x=(int)1, y=(int)2, "
          "width=(int)3, "
          "height=(int)4, zone=(string)door, entered=(guint64)500000000, left=(guint64)1500000000, seconds=(double)1, "
          "path-length=(double)12.5, best-time=(guint64)1000000000, best-x=(int)5, best-y=(int)6, best-width=(int)7, "
          "best-height=(int)8"),
      R"({"input": "x", "event": "leave", "time": 2.5, "id": 7, "x": 1, "y": 2, "width": 3, "height": 4, "zone": "door", "seconds": 1, "path_length": 12.5, "best_x": 5, "best_y": 6, "best_width": 7, "best_height": 8, "entered": 0.5, "left": 1.5, "best_time": 1})"
      "\n");
  expect(
      line_of("x",
              "cudadiff, stream-time=(guint64)2500000000, event=(string)cross, id=(uint)7, x=(int)1, y=(int)2, "
              "width=(int)3, "
              "height=(int)4, line=(string)gate, direction=(string)left, crossed-left=(uint)2, crossed-right=(uint)0"),
      R"({"input": "x", "event": "cross", "time": 2.5, "id": 7, "x": 1, "y": 2, "width": 3, "height": 4, "line": "gate", "direction": "left", "crossed_left": 2, "crossed_right": 0})"
      "\n");

  expect(
      line_of("x",
              "cudadiff, stream-time=(guint64)2500000000, event=(string)stopped, id=(uint)7, x=(int)1, y=(int)2, "
              "width=(int)3, "
              "height=(int)4, zones=(string)<door, \"the \\\"yard\\\"\">, since=(guint64)18446744073709551615"),
      R"({"input": "x", "event": "stopped", "time": 2.5, "id": 7, "x": 1, "y": 2, "width": 3, "height": 4, "since": null, "zones": ["door", "the \"yard\""]})"
      "\n");
  expect(line_of("x",
                 "cudadiff, stream-time=(guint64)2500000000, event=(string)end, began=(guint64)500000000, "
                 "last-motion=(guint64)0"),
         R"({"input": "x", "event": "end", "time": 2.5, "began": 0.5, "last_motion": 0, "regions": []})"
         "\n");

  gst_deinit();
  return failures > 0;
}
