#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests the data that examples/motion-report computes for its pages, without a clip."""
import argparse
import base64
import csv
import datetime
import io
import os
import struct
import tempfile
import tracemalloc
import unittest
import unittest.mock
import zlib

import programs
programs.use("motion-report")
import numpy  # noqa: E402
import common  # noqa: E402
import analysis  # noqa: E402
import findings as findings_module  # noqa: E402
import motion_report  # noqa: E402
import page  # noqa: E402
import page_video  # noqa: E402
import part  # noqa: E402
import pictures  # noqa: E402
import recording  # noqa: E402
import tables  # noqa: E402
from findings import Findings, Frame  # noqa: E402


def leave(number, entered, left, **more):
    return {"id": number, "entered": entered, "left": left, "seconds": left - entered, "path_length": 10.5, **more}


def cross(number, time):
    return {"id": number, "time": time, "line": "gate", "direction": "left"}


class PageTest(programs.InFolder):
    def test_times(self):
        self.assertEqual([page.clock(seconds) for seconds in (0, 9.96, 59.96, 3599.99, 3661.2)],
                         ["0:00.0", "0:10.0", "1:00.0", "1:00:00.0", "1:01:01.2"])
        self.assertEqual([page.duration(seconds) for seconds in (1.25, 99.9, 99.96, 3725)],
                         ["1.2 s", "99.9 s", "1 min 40 s", "1 h 2 min"])

    def test_columns_of_a_long_clip_keep_the_extremes(self):
        columns, moving = (findings_module.Columns(),
                           findings_module.Frame(123.4, brightness=50, dark=1, bright=99, changed=77))
        for i in range(5001):
            columns.add(moving if i == 1234 else findings_module.Frame(0.1 * i, brightness=50, dark=10, bright=90))
        lists = columns.lists()
        self.assertLessEqual(len(lists["time"]), findings_module.COLUMNS)
        self.assertGreater(len(lists["time"]), findings_module.COLUMNS / 2)
        self.assertEqual({len(values) for values in lists.values()}, {len(lists["time"])})
        self.assertEqual((max(lists["changed"]), min(lists["dark"]), max(lists["bright"]), set(lists["mean"])),
                         (77, 1, 99, {50}))
        self.assertEqual((lists["time"][0], sum(row[5] for row in columns.rows)), (0, 5001))

    def test_shapes_in_pixels_and_in_shares(self):
        self.assertEqual(page.shapes_of("a b: 0.5,0.0 1.0,0.25 1.,1.0;c:10,20 30 , 40 0,0", (640, 480)),
                         [{"name": "a b", "points": [[320, 0], [640, 120], [640, 480]]},
                          {"name": "c", "points": [[10, 20], [30, 40], [0, 0]]}])
        self.assertEqual(page.shapes_of(None, (640, 480)), [])

    def test_runs_of_motion(self):
        found = Findings()
        for i, moving in enumerate([0, 1, 1, 0, 0, 1]):
            found.add(Frame(float(i), moving=bool(moving)))
        self.assertEqual((found.runs, found.moving, found.count, found.length), ([[1, 2], [5, 5]], 3, 6, 5))

    def test_objects_gather_their_visits(self):
        found = Findings(visits=[leave(3, 1, 2, zone="a", best_time=1.5, best_box=[1, 2, 9, 9]),
                                 leave(1, 1.5, 9, zone="a"),
                                 leave(3, 4, 7, zone="b", best_time=5.0, best_box=[1, 2, 10, 10])],
                         crossings=[cross(3, 5.5)], notes=[{"event": "stopped", "time": 6, "id": 1}],
                         clips={(4, 3): "clips/b.mp4"})
        first, second = page.objects_of(found)
        self.assertEqual((first["id"], first["entered"], first["left"], first["seconds"], first["path"]),
                         (3, 1, 7, 4, 21))
        self.assertEqual((first["best"], first["box"], first["visits"]),
                         (5, [1, 2, 10, 10], [["a", 1, 2], ["b", 4, 7]]))
        self.assertEqual((first["crossed"], first["clip"], first["still"]),
                         ([["gate", "left", 5.5]], "clips/b.mp4", False))
        self.assertEqual((second["id"], second["notes"], second["clip"]), (1, [["stopped", 6]], None))
        self.assertTrue(page.is_still([leave(1, 0, 1, best_box=[0, 0, 30, 40])]))

    def test_csv(self):
        findings = Findings(crossings=[cross(3, 5.5), cross(4, 5)],
                                     visits=[leave(3, 1, 2, zone='a, "b"'), leave(3, 4, 7, zone="c")])
        self.assertEqual(tables.objects_csv(findings).decode().splitlines()[1:],
                         ['3,"a, ""b""",1.000,2.000,1,10.5,,,,', "3,c,4.000,7.000,3,10.5,gate:left,,,"])
        began = datetime.datetime(2024, 1, 31, 13, 5, tzinfo=datetime.timezone.utc)
        findings.clocks = [(0, began), (3, began + datetime.timedelta(hours=1))]  # the clock was set forward
        rows = list(csv.DictReader(io.StringIO(tables.objects_csv(findings).decode())))
        self.assertEqual([(row["entered_clock"], row["left_clock"]) for row in rows], [
            ("2024-01-31T13:05:01.000+00:00", "2024-01-31T13:05:02.000+00:00"),
            ("2024-01-31T14:05:01.000+00:00", "2024-01-31T14:05:04.000+00:00")])
        findings.incomplete = "it was stopped"
        self.assertTrue(all(line.endswith(",it was stopped")
                            for line in tables.objects_csv(findings).decode().splitlines()[1:]))
        self.assertEqual(tables.frame_line(Frame(0.5, 50, 1, 99, 12.5, 2, True)),
                         b"0.500,12.5000,1,2,50.00,1.00,99.00\r\n")

    def test_spreadsheets_run_no_cell(self):
        for name in ("=1+1", "+a", "-a", "@a", "\ta", "\ra", "\na", "\uff1da", "=", "-1+1", "+1e", "-", "-1;=2"):
            visits = [leave(1, 0, 1, zone=name)]
            findings = Findings(visits=visits, crossings=[dict(cross(1, 0.5), line=name)])
            row = list(csv.reader(io.StringIO(tables.objects_csv(findings).decode(), newline="")))[1]
            self.assertEqual((row[1], row[6]), (f"'{name}", f"'{name}:left"))
        for name in ("a=1", "1", "-1", "+1.5", "way in", "", "'=1"):
            self.assertEqual(tables.harmless(name), name)
        for number in (-1, -1.5, 0, 1e30):
            self.assertIs(tables.harmless(number), number)
        self.assertEqual(tables.frame_line(Frame(-0.25, -1, -2, -3, -4, -5)),
                         b"-0.250,-4.0000,0,-5,-1.00,-2.00,-3.00\r\n")

    def test_titles_hide_passwords(self):
        for clip, title in (("rtsp://me:secret@host/x?user=me&password=secret", "rtsp://host/x?user=***&password=***"),
                            (None, "a synthetic scene"), ("folder/a.mp4", "a.mp4"),
                            ("file://localhost/folder/a%20b.mp4", "a b.mp4")):
            self.assertEqual(motion_report.name_of(clip), title)

    def test_texts_and_data_are_escaped(self):
        zone = '</script><b> {{video}} " &lt'
        bad = f"{zone} \udcff"  # an invalid UTF-8 byte in a file name
        args = argparse.Namespace(zones=f"{zone}: 0,0 1,0 1,1", lines=None, part=part.Part(), min_event=None,
                                  recording=[])
        found = Findings(visits=[leave(1, 0, 1, zone=zone)], crossings=[dict(cross(1, 0.5), line=zone)],
                         size=(64, 48), backend="cpu", poster=b"JPEG", pictures=pictures.Pictures(self.folder),
                         recording=recording.Recorder(self.folder), incomplete=bad, settings=bad)
        found.add(Frame(0))
        found.add(Frame(1))
        old = self.folder / "pictures/object-9.jpg"
        old.parent.mkdir()
        old.touch()
        page.write(found, args, bad, self.folder, page_video.Video("x", "webm", 0, bad), b"WEBM", None)
        page.write_index([page.Entry(bad, failure=bad), page.entry_of(bad, found)], bad, self.folder, 2)
        text, index = (self.folder.joinpath(name).read_text(encoding="utf-8") for name in ("report.html", "index.html"))
        self.assertFalse(old.parent.exists())  # it was from an earlier run
        for one in text, index:
            self.assertNotIn("<b>", one)
            self.assertIn("&lt;/script&gt;&lt;b&gt; {{video}} &quot; &amp;lt \ufffd", one)
            self.assertIn("ncomplete:", one)
        data = self.data(".")
        self.assertEqual(data["zones"][0]["name"], zone)
        self.assertEqual(data["keep"], 1)
        self.assertEqual(data["objects"][0]["visits"], [[zone, 0, 1]])
        self.assertIn('id="clip">V0VCTQ==</script>', text)

    def test_many_pictures_lie_beside_the_page(self):
        folder = self.folder
        kept = pictures.Pictures(folder)
        for number in 1, 2:
            kept.put(number, b"x" * 30 * number)
        objects = [{"id": 1}, {"id": 2}, {"id": 3}]
        text = page.pictures_of(objects, kept, folder)
        self.assertEqual([one.get("picture") for one in objects], [[0, 40], [40, 80], None])
        self.assertEqual((base64.b64decode(text[40:]), os.listdir(folder)), (b"x" * 60, []))
        with unittest.mock.patch.object(page, "INLINE", 89):
            self.assertEqual(page.pictures_of(objects, kept, folder), "")
        self.assertEqual([one.get("picture") for one in objects],
                         ["pictures/object-1.jpg", "pictures/object-2.jpg", None])
        self.assertEqual((folder / "pictures/object-2.jpg").read_bytes(), b"x" * 60)
        (folder / "pictures/3.jpg").touch()  # a file of the user
        page.pictures_of([{"id": 1}], kept, folder)
        self.assertEqual(len(os.listdir(folder / "pictures")), 3)  # the old page needs them
        page.forget_pictures(objects[1:], folder)
        self.assertEqual(sorted(os.listdir(folder / "pictures")), ["3.jpg", "object-2.jpg"])
        (folder / "pictures/3.jpg").unlink()
        page.forget_pictures([{"id": 2, "picture": [0, 80]}], folder)
        self.assertEqual(os.listdir(folder), [])


class RecordingTest(programs.InFolder):
    def setUp(self):
        super().setUp()
        self.recorder = recording.Recorder(self.folder)

    def parts(self, data):
        """The counts and the rest of a chunk."""
        data = zlib.decompress(data)
        return struct.unpack("<5I", data[:20]), data[20:]

    def test_a_chunk_for_each_minute(self):
        self.recorder.place(1.5, 7, (1, 2, 3, 4))
        self.recorder.place(61.25, 300, (-5, 2, 70000, 4))
        self.recorder.histogram(61.5, [0] * 128 + [4] * 64 + [2] * 64)
        self.recorder.finish()
        (first, one), (second, two) = [(minute, self.parts(data)) for minute, data in self.recorder.chunks()]
        self.assertEqual((first, second), (0, 1))
        self.assertEqual(one, ((1, 0, 0, 0, 0), struct.pack("<I5H", 7, 1500, 1, 2, 3, 4)))
        self.assertEqual(two[0], (1, 0, 1, 0, 0))
        self.assertEqual(two[1][:16], struct.pack("<I6H", 300, 1250, 0, 2, 65535, 4, 1500))
        self.assertEqual(list(two[1][16:]), [0] * 32 + [255] * 16 + [128] * 16)

    def test_a_kind_that_comes_late_is_in_its_minute(self):
        self.recorder.place(59.8, 1, (1, 2, 3, 4))
        self.recorder.place(60.1, 1, (1, 2, 3, 4))
        self.recorder.histogram(59.9, [1] * 64)
        self.recorder.place(130, 1, (1, 2, 3, 4))
        self.recorder.place(30, 1, (1, 2, 3, 4))  # much too late
        self.recorder.finish()
        self.assertEqual([(minute, self.parts(data)[0][:3]) for minute, data in self.recorder.chunks()],
                         [(0, (1, 0, 1)), (1, (2, 0, 0)), (2, (1, 0, 0))])
        self.assertEqual(struct.unpack("<H", self.parts(next(self.recorder.chunks())[1])[1][14:16]), (59900,))

    def test_masks_and_heat(self):
        moving = numpy.zeros((3, 5), bool)
        self.recorder.mask(0, moving)  # nothing moves yet
        moving[1, 4] = True
        for time in 0.1, 0.2:
            self.recorder.mask(time, moving)
        for time in 0.3, 0.4:  # only the first one without motion counts
            self.recorder.mask(time, moving & False)
        self.recorder.mask(0.5, numpy.ones((2, 2), bool))  # another size
        self.recorder.finish()
        (_, data), = self.recorder.chunks()
        self.assertEqual(self.parts(data), ((0, 3, 0, 5, 3), struct.pack("<3H", 100, 200, 300) + b"\0\x40\0\x40\0\0"))
        self.assertEqual((self.recorder.heat[1, 4], self.recorder.heat.sum()), (2, 2))

    def test_too_much_is_thinned(self):
        for i in range(10):
            self.recorder.place(i / 10, i, (i, i, i, i))
            self.recorder.mask(i / 10, numpy.arange(16).reshape(4, 4) <= i)
            self.recorder.histogram(i / 10, [1] * 64)
        self.recorder.finish()
        with unittest.mock.patch.object(recording, "MOST", self.recorder.size - 1):
            (_, data), = self.recorder.chunks()
        counts, rest = self.parts(data)
        self.assertEqual(counts, (10, 5, 10, 4, 4))
        self.assertEqual(struct.unpack("<5H", rest[140:150]), (0, 200, 400, 600, 800))
        self.assertEqual(rest[170:180], b"\x80\0\xe0\0\xf8\0\xfe\0\xff\x80")
        self.assertEqual(len(rest), 180 + 10 * 64)

    def test_only_masks_shrink(self):
        """Masks are thinned out until the data fits, but places are not. The last mask, without motion, stays."""
        noise = numpy.random.default_rng(1)
        for i in range(400):
            for number in range(8):
                self.recorder.place(i / 10, number, noise.integers(0, 60000, 4))
            self.recorder.mask(i / 10, noise.random((20, 40)) < 0.5 if i < 399 else numpy.zeros((20, 40), bool))
        self.recorder.finish()
        size = self.recorder.size
        self.assertTrue(0.35 * size < self.recorder.masks < 0.65 * size, (self.recorder.masks, size))
        most = size - 0.8 * self.recorder.masks
        with unittest.mock.patch.object(recording, "MOST", most):
            (_, data), = self.recorder.chunks()
            self.assertEqual(self.recorder.keep, 8)
        self.assertLess(len(data), most)
        self.assertEqual(self.parts(data)[0][:2], (3200, 51))
        self.assertEqual(self.recorder.keep, 1)

    def test_hours_need_no_more_memory_than_a_minute(self):
        def hours(count):
            tracemalloc.start()
            recorder = recording.Recorder(tempfile.gettempdir())
            mask = numpy.zeros((54, 96), bool)
            mask[20:30, 20:30] = True
            for i in range(count * 3600):
                recorder.place(float(i), i, (1, 2, 3, 4))
                recorder.mask(float(i), mask)
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            return peak

        self.assertLess(hours(3), 1.5 * hours(1))


class CollectorTest(programs.InFolder):
    """Messages of the two elements may come in any order."""

    def setUp(self):
        super().setUp()
        self.frames = io.BytesIO()
        self.found = Findings(recording=recording.Recorder(self.folder))
        self.collector = analysis.Collector(io.BytesIO(), self.frames, self.found)

    def motion(self, time, event, ratio=0.5, duration=100000000):
        self.collector.on_message(
            structure(f"cudadiff, event=(string){event}, stream-time=(guint64){int(time * 1e9)}, "
                      f"duration=(guint64){duration}, changed-ratio=(double){ratio}, mean-difference=(double)1, "
                      "regions=(structure)< >"))

    def light(self, time, mean, duration=100000000):
        counts = ", ".join(["(guint64)1"] * 64)
        self.collector.on_message(structure(
            f"cudahistogram, stream-time=(guint64){int(time * 1e9)}, duration=(guint64){duration}, depth=(uint)8, "
            "channels=(structure)"
            f"< [luma, mean=(double){mean}, p01=(double)0, p99=(double)255, counts=(guint64)< {counts} >] >"))

    def rows(self):
        return [line.split(",") for line in self.frames.getvalue().decode().splitlines()[1:]]

    def test_frames_wait_for_their_brightness(self):
        self.motion(0, "begin")
        self.motion(0.1, "motion")
        self.assertEqual(self.rows(), [])
        self.light(0, 51)
        self.light(0.1, 102)
        self.motion(0.2, "none", 0)
        self.collector.finish_frames(end=True)
        self.assertEqual([(row[0], row[2], row[4]) for row in self.rows()],
                         [("0.000", "1", "20.00"), ("0.100", "1", "40.00"), ("0.200", "0", "40.00")])

    def test_brightness_may_be_ahead_of_the_frames(self):
        for time, mean in (0, 51), (0.1, 102), (0.2, 153):
            self.light(time, mean)
        for time in 0, 0.1, 0.2:
            self.motion(time, "none")
        self.assertEqual([row[4] for row in self.rows()], ["20.00", "40.00"])  # an `end` may repeat the last one
        self.collector.finish_frames(end=True)
        self.assertEqual([row[4] for row in self.rows()], ["20.00", "40.00", "60.00"])

    def test_frames_without_durations_last_until_the_next_one(self):
        for time, event in (0, "none"), (10, "begin"), (20, "motion"), (20, "end"):
            self.motion(time, event, duration=common.Gst.CLOCK_TIME_NONE)
        self.collector.finish_frames(end=True)
        self.motion(20, "end", duration=common.Gst.CLOCK_TIME_NONE)  # at EOS
        self.assertEqual((self.found.count, self.found.end + self.found.frame_time), (3, 30))

    def test_the_end_and_light_are_no_frames(self):
        self.motion(0, "begin")
        self.motion(0, "light", 0.9)
        self.motion(0.1, "none")
        self.motion(0.1, "end")
        self.light(0, 51)
        self.collector.finish_frames(end=True)
        self.motion(0.1, "end")  # at EOS
        self.assertEqual((self.found.count, self.found.lights, self.found.moving), (2, [0], 1))
        self.assertAlmostEqual(self.found.end + self.found.frame_time, 0.2)


class TrackerTest(programs.InFolder):
    def test_a_lost_frame_is_not_sampled_and_none_is_kept(self):
        """Ten frames of a second are sampled, if they are not lost between the pads."""
        times = []
        pipeline = common.parse("videotestsrc num-buffers=50 pattern=black ! "
                                "video/x-raw,format=I420,width=64,height=48,framerate=50/1 ! "
                                "identity name=before ! identity name=loss ! queue ! fakesink name=after sync=false")
        before, loss, after = (pipeline.get_by_name(name) for name in ("before", "loss", "after"))
        recorder = recording.Recorder(self.folder)
        recorder.mask = lambda time, moving: times.append((round(time, 3), moving.shape))

        def lose(_, info):
            lost = round(info.get_buffer().pts / common.Gst.SECOND, 3) in (0.2, 0.3)
            return common.Gst.PadProbeReturn.DROP if lost else common.Gst.PadProbeReturn.OK

        with pictures.Tracker(before.get_static_pad("sink"), after.get_static_pad("sink"), recorder,
                              self.folder) as tracker:
            loss.get_static_pad("sink").add_probe(common.Gst.PadProbeType.BUFFER, lose)
            common.play(pipeline)
            self.assertEqual((tracker.size, list(tracker.inputs)), ((64, 48), []))
        self.assertEqual(times, [(time, (48, 64)) for time in (0, 0.1, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)])


def structure(text):
    found = common.Gst.Structure.from_string(text)[0]
    assert found, text
    return found


if __name__ == "__main__":
    unittest.main(verbosity=2)
