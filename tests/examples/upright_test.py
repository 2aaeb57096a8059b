#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests that a zone, a line and a mask are at the same place of a clip in all programs, however players rotate the
clip. MOTION_ALARM is the C++ program. Exit status 77 without the bindings, NumPy or an encoder."""
import struct
import sys
import unittest

import programs
import numpy
import common
from common import Gst
import upright

programs.use("motion-scan")
if not programs.has("openh264enc"):
    print("skipped: no openh264enc")
    sys.exit(77)

WIDTH, HEIGHT, FRAMES = 320, 192, 110  # of the picture that players show
# The values are a, b, c, d of the matrix in tkhd: a stored pixel (x, y) is shown at (a x + c y, b x + d y), moved into
# the picture. GStreamer 1.22 has no tag for the other diagonal, (0, -1, -1, 0), which no phone writes.
TURNS = {"upright": (1, 0, 0, 1), "90": (0, 1, -1, 0), "180": (-1, 0, 0, -1), "270": (0, -1, 1, 0),
         "mirrored": (-1, 0, 0, 1), "on its head": (1, 0, 0, -1), "transposed": (0, 1, 1, 0)}
TAGS = {"rotate-0": (1, 0, 0, 1), "rotate-90": (0, 1, -1, 0), "rotate-180": (-1, 0, 0, -1),
        "rotate-270": (0, -1, 1, 0), "flip-rotate-0": (-1, 0, 0, 1), "flip-rotate-90": (0, -1, -1, 0),
        "flip-rotate-180": (1, 0, 0, -1), "flip-rotate-270": (0, 1, 1, 0)}
ZONES = ("left: 0.0,0.0 0.5,0.0 0.5,0.5 0.0,0.5; low: 0.0,0.7 1.0,0.7 1.0,1.0 0.0,1.0;"
         "right: 0.5,0.0 1.0,0.0 1.0,0.5 0.5,0.5")
PIXELS = "left: 0,0 160,0 160,96 0,96; low: 0,134 319,134 319,191 0,191; right: 160,0 319,0 319,96 160,96"
LINES = "gate: 0.5,0.5 0.5,0.0"
MASKS = "160,0,160,96", "0.5,0.0 1.0,0.0 1.0,0.5 0.5,0.5"


def shown(index):
    """A frame as players show it: a box moves from left to right in the upper half."""
    picture = numpy.full((HEIGHT, WIDTH), 90, numpy.uint8)
    picture[::16] += 20
    picture[:, ::24] += 12
    if 50 <= index < 100:
        x = 20 + 5 * (index - 50)
        picture[30:70, x:x + 24] = 220
    return picture


def stored(picture, turn):
    a, b, c, d = turn
    return picture[::d, ::a] if a else picture[::b, ::c].T


def make(path, turn, muxer="mp4mux"):
    """Writes a clip with the orientation in its header."""
    frames = [stored(shown(index), turn) for index in range(FRAMES)]
    programs.write_frames(path, frames, frames[0].shape[::-1], "openh264enc bitrate=2000000 ! h264parse", muxer)
    data = bytearray(path.read_bytes())
    place = data.index(b"tkhd") + 4 + 40  # the matrix in version 0
    one = 1 << 16
    move = WIDTH if -1 in (turn[0], turn[2]) else 0, HEIGHT if -1 in (turn[1], turn[3]) else 0
    assert struct.unpack_from(">9i", data, place) == (one, 0, 0, 0, one, 0, 0, 0, one << 14)
    a, b, c, d = (each * one for each in turn)
    struct.pack_into(">9i", data, place, a, b, 0, c, d, 0, move[0] * one, move[1] * one, one << 14)
    path.write_bytes(data)


class Tags(unittest.TestCase):
    def test_all_tags_of_any_container(self):
        """Only the pad may send them, after the caps."""
        for tag, turn in TAGS.items():
            picture = numpy.ascontiguousarray(stored(shown(60), turn))
            pipeline = common.parse(
                f"appsrc name=source format=time caps=video/x-raw,format=GRAY8,width={picture.shape[1]},"
                f"height={picture.shape[0]},framerate=25/1 ! taginject tags=image-orientation={tag} ! "
                "videoconvert name=shown ! video/x-raw,format=GRAY8 ! appsink name=sink sync=false")
            upright.keep(pipeline.get_by_name("shown").get_static_pad("sink"))
            source = pipeline.get_by_name("source")
            source.emit("push-buffer", Gst.Buffer.new_wrapped(picture.tobytes()))
            source.emit("end-of-stream")
            samples = list(common.samples(pipeline))
            self.assertEqual([common.size_of(sample) for sample in samples], [(WIDTH, HEIGHT)], tag)
            buffer = samples[0].get_buffer()
            found = numpy.frombuffer(buffer.extract_dup(0, buffer.get_size()), numpy.uint8).reshape(HEIGHT, -1)
            self.assertTrue(numpy.array_equal(found, shown(60)), tag)


class Upright(programs.InFolder):
    def in_report(self, zones, mask=None):
        self.report("clip.mp4", f"--zones={zones}", f"--lines={LINES}",
                    *([f"--set=mask-regions={mask}"] if mask else []))
        return self.events()

    def in_scan(self, zones, mask=None):
        result = programs.scan(self.folder / "clip.mp4", settings={"preset": "outdoor", "zones": zones, "lines": LINES,
                                                                   **({"mask-regions": mask} if mask else {})})
        self.assertEqual(result["error"], None)
        return ([{"event": "leave", **visit} for visit in result["objects"]]
                + [{**event, "time": event["begin"]} for event in result["events"]])

    def in_alarms(self, zones, mask=None):
        return self.alarms("clip.mp4", settings=["preset=outdoor", f"zones={zones}", f"lines={LINES}",
                                                 *([f"mask-regions={mask}"] if mask else [])])

    def programs(self):
        return {"report": self.in_report, "scan": self.in_scan, "alarms": self.in_alarms}.items()

    def found(self, rows):
        """The zones that were entered, and the direction in which the line was crossed, with their times."""
        visits = [(row["zone"], round(row["entered"], 2)) for row in rows if row["event"] == "leave"]
        return sorted(visits), [(row["direction"], round(row["time"], 2)) for row in rows if row["event"] == "cross"]

    def test_one_zone_is_one_place(self):
        expected = {}
        for turn, matrix in TURNS.items():
            make(self.folder / "clip.mp4", matrix, "qtmux" if turn == "180" else "mp4mux")
            for name, program in self.programs():
                for zones in ((ZONES, PIXELS) if turn in ("90", "mirrored") else (ZONES,)):
                    with self.subTest(turn=turn, program=name, zones=zones):
                        visits, crossings = self.found(program(zones))
                        self.assertEqual([zone for zone, _ in visits], ["left", "right"])
                        # The decoder's noise is also rotated.
                        first = expected.setdefault(name, (visits, crossings))
                        for mine, others in zip(visits + crossings, first[0] + first[1]):
                            self.assertEqual(mine[0], others[0])
                            self.assertAlmostEqual(mine[1], others[1], delta=0.13)
                        self.assertEqual(len(crossings), 1)

    def test_masks(self):
        for turn in "90", "mirrored":
            make(self.folder / "clip.mp4", TURNS[turn])
            for name, program in self.programs():
                for mask in MASKS:
                    with self.subTest(turn=turn, program=name, mask=mask):
                        visits, crossings = self.found(program(ZONES, mask))
                        self.assertEqual(([zone for zone, _ in visits], crossings), (["left"], []))

    def test_a_part_of_a_turned_clip(self):
        make(self.folder / "clip.mp4", TURNS["270"])
        self.report("clip.mp4", f"--zones={ZONES}", "--start=3.0")
        rows = (self.folder / "out/frames.csv").read_text().splitlines()
        self.assertEqual((rows[1].split(",")[0], len(rows)), ("3.000", 1 + FRAMES - 75))


if __name__ == "__main__":
    unittest.main()
