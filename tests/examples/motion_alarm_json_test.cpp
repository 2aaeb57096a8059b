// SPDX-License-Identifier: LGPL-2.1-or-later
// Tests the lines that motion-alarm makes from messages. The test makes the messages itself, so it needs no plugin.
#include <cmath>

#include "examples/motion-alarm/json.hpp"
#include "tests/elements/expect.hpp"

namespace {

void expect_same(const std::string& found, const std::string& expected) {
  cudavision::test::expect(found == expected, "expected " + expected + "\nfound    " + found);
}

/// Compares the line for a cudadiff message with these fields with `expected`.
void expect_line(const char* fields, const std::string& expected, const char* input = "x") {
  g_autoptr(GstStructure) structure = gst_structure_from_string((std::string("cudadiff, ") + fields).c_str(), nullptr);
  expect_same(structure ? json_line(input, structure) : "no structure", expected + "\n");
}

}  // namespace

int main(int argc, char** argv) {
  gst_init(&argc, &argv);

  expect_same(json_string("a \"b\" \\ /\n\t\x01"), R"("a \"b\" \\ /\u000a\u0009\u0001")");
  expect_same(json_string("Straße \xff"), "\"Straße \xef\xbf\xbd\"");
  expect_same(json_string(""), "\"\"");
  expect_same(json_number(0.1), "0.1");
  expect_same(json_number(0), "0");
  expect_same(json_number(100000), "100000");
  expect_same(json_number(1. / 3), "0.3333333333333333");
  expect_same(json_number(1e-9), "1e-09");
  expect_same(json_number(NAN), "null");
  expect_same(json_number(-INFINITY), "null");

  expect_line(
      R"(stream-time=(guint64)1500000000, running-time=(guint64)7000000000, event=begin, changed-ratio=0.25,
         mean-difference=3.5, at=noon, snapshot="a\\b.jpg", regions=(structure)<
           [region, x=0, y=-1, width=48, height=32, area=(uint)4000000000, score=0.1],
           [region, x=16, y=-1, width=48, height=32, area=(uint)4000000000, score=0.1]>)",
      R"({"input": "cam \"1\"", "event": "begin", "time": 1.5, "changed_ratio": 0.25, "mean_difference": 3.5, )"
      R"("regions": [{"x": 0, "y": -1, "width": 48, "height": 32, "area": 4000000000, "score": 0.1}, )"
      R"({"x": 16, "y": -1, "width": 48, "height": 32, "area": 4000000000, "score": 0.1}], )"
      R"("at": "noon", "snapshot": "a\\b.jpg"})",
      "cam \"1\"");

  // frames without timestamps and without motion
  expect_line("event=none, stream-time=(guint64)18446744073709551615, running-time=(guint64)2000000000",
              R"({"input": "x", "event": "none", "time": 2, "regions": []})");
  expect_line("event=none, stream-time=(guint64)18446744073709551615",
              R"({"input": "x", "event": "none", "time": null, "regions": []})");

  // objects
  expect_line(
      R"(stream-time=(guint64)2500000000, event=leave, id=(uint)7, x=1, y=2, width=3, height=4, zone=door,
         entered=(guint64)500000000, left=(guint64)1500000000, seconds=(double)1, path-length=12.5,
         best-time=(guint64)1000000000, best-x=5, best-y=6, best-width=7, best-height=8)",
      R"({"input": "x", "event": "leave", "time": 2.5, "id": 7, "x": 1, "y": 2, "width": 3, "height": 4, )"
      R"("zone": "door", "seconds": 1, "path_length": 12.5, "best_x": 5, "best_y": 6, "best_width": 7, )"
      R"("best_height": 8, "entered": 0.5, "left": 1.5, "best_time": 1})");
  expect_line(
      R"(stream-time=(guint64)2500000000, event=cross, id=(uint)7, x=1, y=2, width=3, height=4, line=gate,
         direction=left, crossed-left=(uint)2, crossed-right=(uint)0)",
      R"({"input": "x", "event": "cross", "time": 2.5, "id": 7, "x": 1, "y": 2, "width": 3, "height": 4, )"
      R"("line": "gate", "direction": "left", "crossed_left": 2, "crossed_right": 0})");
  expect_line(
      R"(stream-time=(guint64)2500000000, event=stopped, id=(uint)7, x=1, y=2, width=3, height=4,
         zones=(string)<door, "the \"yard\"">, since=(guint64)18446744073709551615)",
      R"({"input": "x", "event": "stopped", "time": 2.5, "id": 7, "x": 1, "y": 2, "width": 3, "height": 4, )"
      R"("since": null, "zones": ["door", "the \"yard\""]})");
  expect_line("stream-time=(guint64)2500000000, event=end, began=(guint64)500000000, last-motion=(guint64)0",
              R"({"input": "x", "event": "end", "time": 2.5, "began": 0.5, "last_motion": 0, "regions": []})");

  gst_deinit();
  return cudavision::test::exit_status();
}
