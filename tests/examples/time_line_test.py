#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests time_line.py, clock_names.py and the seams of motion-scan without a video. Exit status 77 without the bindings
of GStreamer."""
import datetime
import os
import pathlib
import random
import sys
import tempfile
import time
import types
import unittest

from programs import EXAMPLES
sys.path.insert(1, str(EXAMPLES / "motion-scan"))
import clip_facts  # noqa: E402
import clock_names  # noqa: E402
import seams  # noqa: E402
import time_line  # noqa: E402

os.environ["TZ"] = "CET-1CEST,M3.5.0,M10.5.0/3"  # with summer time
time.tzset()
UTC = datetime.timezone.utc


def segment(path, length=10.0, began=None, size=(64, 48)):
    """A file of this length in seconds; None: it cannot be read."""
    facts = None if length is None else clip_facts.Facts("video/quicktime", "video/x-h264", None, *size, length, began,
                                                         False, length=length)
    return time_line.Segment(path, facts, "" if facts else "it is empty", clock_names.named(path))


def written(test, *clocks):
    """Files with these clock times in their names, which were written in this order."""
    folder, files = pathlib.Path(test.enterContext(tempfile.TemporaryDirectory())), []
    for number, clock in enumerate(clocks):
        path = folder / f"{clock}.mp4"
        path.touch()
        os.utime(path, (1e9 + 10 * number,) * 2)
        files.append(segment(str(path)))
    return files


def names(runs):
    return [[each.name for each in run] for run in runs]


def sizes(runs):
    return [len(run) for run in runs]


class Names(unittest.TestCase):
    def test_clock_times(self):
        expected = datetime.datetime(2024, 1, 31, 13, 5)
        for path in ("2024-01-31_13-05-00.mp4", "20240131130500.mp4", "cam_20240131_130500.avi",
                     "cam.20240131.130500.ts", "RecM01_20240131_130500_130530_6D28808.mp4",
                     "2024_0131_130500_001F.MP4", "2024-01-31T13:05:00.mkv",
                     "2024-01-31 13.05.00.3gp", "video 2024-01-31 at 13.05.00.mov", "2024-01-31/13-05-00.mp4",
                     "2024/01/31/13.05.00-13.10.00[M][0@0][0].dav", "20240131/cam/130500.mp4"):
            self.assertEqual(clock_names.named(f"/rec/a/b/{path}").clock, expected, path)
        self.assertEqual(clock_names.named("PXL_20240131_130500123.mp4").clock, expected.replace(microsecond=123000))
        for path in ("2024-01-31T13:05:00Z.mp4", "2024-01-31/13/porch/05.00.mp4", "1706706300.mp4",
                     "a_1706706300000.mp4"):
            self.assertEqual(clock_names.named(f"/rec/{path}").clock, expected.replace(tzinfo=UTC), path)
        for path in ("clip.mp4", "GX010123.MP4", "2024-13-01_13-05-00.mp4", "2024-02-30_13-05-00.mp4", "130500.mp4",
                     "2024-01-31_25-05-00.mp4", "ch01_00000000123000000.mp4", "2024-01-31.mp4", "IMG_0001.MOV"):
            self.assertIsNone(clock_names.named(f"/rec/a/b/c/d/{path}"), path)

    def test_which_belong_together(self):
        def series(path):
            return clock_names.named(f"/rec/x/y/z/{path}").series
        for one, other in (("a_20240131_130500.mp4", "a_20240131_130510.mkv"),
                           ("2024-01-31/13-05-00.mp4", "2024-02-01/00-00-00.mp4"),
                           ("2024/01/31/13.59.00-13.59.59[M].dav", "2024/02/01/00.00.00-00.10.00[R].dav"),
                           ("2024-01-31/13/porch/05.00.mp4", "2024-02-01/00/porch/00.00.mp4"),
                           ("Rec_20240131_130500_130530_6D28808.mp4", "Rec_20240131_130530_130600_7A11F09.mp4")):
            self.assertEqual(series(one), series(other), (one, other))
        for one, other in (("a_20240131_130500.mp4", "b_20240131_130510.mp4"),
                           ("cam1_20240131_130500.mp4", "cam2_20240131_130510.mp4"),
                           ("20240131_130500_F.mp4", "20240131_130500_R.mp4"),
                           ("2024_0131_130500_001F.MP4", "2024_0131_130500_002R.MP4"),
                           ("2024-01-31/13/porch/05.00.mp4", "2024-01-31/13/gate/05.00.mp4")):
            self.assertNotEqual(series(one), series(other), (one, other))

    def test_the_natural_order(self):
        names = ["a1", "a2", "a10", "a10b", "b", "٣"]
        self.assertEqual(sorted(random.Random(1).sample(names, 6), key=clock_names.natural), names)


class Lines(unittest.TestCase):
    def test_recordings(self):
        """Files that touch are one recording, in any order. After a long hole another recording begins."""
        files = [segment(f"/r/2024-01-31_{clock}.mp4") for clock in
                 ("13-05-20", "13-05-00", "13-05-10", "15-00-00", "17-10-00", "17-10-11", "20-00-00", "23-00-00")]
        self.assertEqual(sizes(time_line.recordings(files)), [4, 2, 1, 1])
        self.assertEqual(sizes(time_line.recordings(files, "all")), [8])
        self.assertEqual(sizes(time_line.recordings(files, "none")), [1] * 8)
        self.assertEqual(time_line.recordings([], "all"), [])
        short = [segment(f"/r/2024-01-31_13-05-0{second}.mp4", 1.0) for second in (0, 2, 4)]  # with holes of a second
        self.assertEqual(sizes(time_line.recordings(short)), [1, 1, 1])

    def test_clocks_of_containers(self):
        """These clocks are used if all files have one and no name has one, unless all files were made at the same
        time."""
        begin = datetime.datetime(2024, 1, 31, 13, tzinfo=UTC)

        def files(step, **more):
            return [segment(f"/r/{name}.mp4", began=begin + datetime.timedelta(seconds=step * i), **more)
                    for i, name in enumerate("cab")]
        self.assertEqual(names(time_line.recordings(files(10))), [["c.mp4", "a.mp4", "b.mp4"]])
        for wrong in files(1), files(0), files(60), [*files(10)[:2], segment("/r/d.mp4")], [
                *files(10)[:1], *files(10, size=(32, 24))[1:2]]:
            self.assertEqual(sizes(time_line.recordings(wrong)), [1] * len(wrong))
        for step in 0, 1, 5:  # on request, files that a program copied are in the order of their names
            self.assertEqual(names(time_line.recordings(files(step), "all")), [["a.mp4", "b.mp4", "c.mp4"]])
        for step in 9, 10, 60:
            self.assertEqual(names(time_line.recordings(files(step), "all")), [["c.mp4", "a.mp4", "b.mp4"]])

    def test_the_clock_is_set_back(self):
        """The order in which the files were written decides, whatever the order of the arguments."""
        files = written(self, *(f"2024-01-31_{clock}" for clock in (
            "13-00-00", "13-00-10", "13-00-20", "12-59-45", "12-59-55", "13-00-05", "13-00-15")))
        right = [each.name for each in files]
        for seed in range(5):
            random.Random(seed).shuffle(files)
            self.assertEqual([each.name for each in time_line.ordered(files)], right)
        line = time_line.TimeLine(time_line.ordered(files))
        for number, each in enumerate(sorted(files, key=lambda one: right.index(one.name))):
            self.assertEqual(line.place(each), 10 * number)
            line.reach(10 * number + 10)
        self.assertEqual((line.set_back, line.holes), ([(right[3], 45.0)], []))
        self.assertEqual([when for when, _ in line.clocks], [0, 30])
        self.assertEqual(line.sentence([]), f"the clock was set back by 45.0 s before {right[3]}")
        self.assertEqual(time_line.clock_at(line.clocks, 35).strftime("%H:%M:%S"), "12:59:50")

    def test_places(self):
        """Clocks of whole seconds do not cause holes, even over many files. Larger differences are holes."""
        files = [segment(f"/r/2024-01-31_13-{i // 6:02}-{i % 6 * 10:02}.mp4", 10.04) for i in range(300)]
        line = time_line.TimeLine(time_line.ordered(files))
        for each in files:
            line.reach(line.place(each) + 10.04)
            shown = time_line.clock_at(line.clocks, line.began)  # the clock on the page is right within the tolerance
            self.assertLessEqual(abs((shown - each.clock).total_seconds()), time_line.TOLERANCE)
        self.assertEqual(line.holes, [])
        self.assertAlmostEqual(line.end, 300 * 10.04)
        self.assertEqual(line.set_back, [])

    def test_summer_time(self):
        """It begins, and it ends."""
        for month, day in (3, 31), (10, 27):
            begin = datetime.datetime(2024, month, day, 0, 59, 50, tzinfo=UTC)
            clocks = [begin + datetime.timedelta(seconds=second) for second in (0, 10, 20)]
            files = written(self, *(f"{clock.astimezone():%Y-%m-%d_%H-%M-%S}" for clock in clocks))
            (run,) = time_line.recordings(files[::-1])
            self.assertEqual([(each.name, each.clock) for each in run],
                             [(each.name, clock) for each, clock in zip(files, clocks)])

    def test_files_that_cannot_be_read(self):
        clocks = "13-00-00", "13-00-10", "13-00-20", "13-00-30"
        files = [segment(f"/r/2024-01-31_{clock}.mp4", None if i in (0, 3) else 10.0) for i, clock in enumerate(clocks)]
        run, = time_line.recordings(files)
        self.assertEqual(names([run]), [[each.name for each in files]])
        line = time_line.TimeLine(run)
        for each in run:
            if each.facts:
                line.reach(line.place(each) + 10)
            else:
                line.miss(each)
        line.finish()
        self.assertEqual([(hole.begin, hole.end, hole.files) for hole in line.holes],
                         [(0, 10, [files[0].name]), (30, 40, [files[3].name])])
        self.assertEqual(line.sentence(line.holes), "2 holes, where files could not be read (from 2024-01-31 13:00:00, "
                         "10.0 s; 2024-01-31 13:00:30, 10.0 s)")

    def test_words(self):
        self.assertEqual([time_line.words_of(seconds) for seconds in (0, 59.94, 60, 100, 3600, 3725.4)],
                         ["0.0 s", "59.9 s", "1 min", "1 min 40 s", "1 h", "1 h 2 min 5 s"])


class Seams(unittest.TestCase):
    """Results of motion-scan for files of ten seconds."""

    def find(self, *results, step=10):
        clips = [types.SimpleNamespace(key=str(i), name=f"c{i}", uri=f"file:///r/2024-01-31_13-00-{step * i:02}.mp4")
                 for i in range(len(results))]
        found = seams.find(clips, lambda clip: results[int(clip.key)])
        kind = "objects" if "objects" in results[0] else "events"
        return [found.apply(clip, kind, result[kind]) for clip, result in zip(clips, results)]

    @staticmethod
    def result(*visits, height=100):
        rows = [{"id": i, "zone": zone, "entered": entered, "left": left, "seconds": left - entered, "path_length": 5.0,
                 "first_box": first, **dict(zip(seams.BOX, last))}
                for i, (entered, left, first, last, zone) in enumerate(visits)]
        return {"status": "ok", "duration": 10.0, "frames": 100, "width": 160, "height": height, "objects": rows}

    A, B, FAR = [10, 10, 20, 40], [32, 12, 20, 40], [130, 10, 20, 40]

    def test_a_visit(self):
        one, two = self.find(self.result((7, 9.9, self.A, self.A, None)), self.result((0.5, 4, self.B, self.FAR, None)))
        columns = "entered", "left", "seconds", "path_length", "x", "until_clip"
        self.assertEqual(([tuple(row[name] for name in columns) for row in one], two), ([(7, 14, 7, 10, 130, "c1")],
                                                                                         []))

    def test_a_visit_through_three_files(self):
        rows = self.find(self.result((7, 9.9, self.A, self.A, None)), self.result((0.5, 9.9, self.B, self.B, None)),
                         self.result((0.2, 3, self.A, self.A, None)))
        self.assertEqual((sizes(rows), rows[0][0]["left"], rows[0][0]["until_clip"]),
                         ([1, 0, 0], 23, "c2"))

    def test_what_does_not_go_on(self):
        last = 7, 9.9, self.A, self.A, None
        for first in ((0.5, 4, self.FAR, self.FAR, None), (5, 9, self.A, self.A, None), (0.5, 4, None, self.A, None),
                      (0.5, 4, self.A, self.A, "door")):
            self.assertEqual(sizes(self.find(self.result(last), self.result(first))), [1, 1], first)
        first = 0.5, 4, self.A, self.A, None
        early = 2, 7, self.A, self.A, None
        self.assertEqual(sizes(self.find(self.result(early), self.result(first))), [1, 1])
        self.assertEqual(sizes(self.find(self.result(last), self.result(first), step=13)), [1, 1])

    def test_two_and_fragments(self):
        """Each object continues as the nearest one. Another fragment of the object belongs to it."""
        rows = self.find(
            self.result((7, 9.9, self.A, self.A, None), (7, 9.9, self.FAR, self.FAR, None)),
            self.result((0.5, 4, [128, 12, 20, 40], self.FAR, None), (0.5, 5, self.B, self.B, None),
                        (1.5, 6, [14, 50, 8, 8], self.B, None)))
        self.assertEqual([(row["left"]) for row in rows[0]], [16, 14])
        self.assertEqual(rows[1], [])

    def test_pictures_of_another_size(self):
        double = [2 * value for value in self.B]
        rows = self.find(self.result((7, 9.9, self.A, self.A, None)),
                         self.result((0.5, 4, double, double, None), height=200))
        self.assertEqual(sizes(rows), [1, 0])

    def test_motions(self):
        def result(*motions):
            return {"status": "ok", "duration": 10.0, "frames": 100, "width": 160, "height": 100, "events": [
                {"event": "motion", "begin": begin, "end": end, "duration": end - begin, "objects": 1}
                for begin, end in motions] + [{"event": "light", "begin": 9.9, "end": 9.9, "duration": 0}]}
        one, two = self.find(result((2, 3), (8, 10)), result((0.5, 4), (6, 7)))
        self.assertEqual([(row["begin"], row["end"], row["duration"]) for row in one if row["event"] == "motion"],
                         [(2, 3, 1), (8, 14, 6)])
        self.assertEqual([(row["begin"], row["end"]) for row in two if row["event"] == "motion"], [(6, 7)])

    def test_results_that_are_missing(self):
        failed = {"status": "failed", "objects": []}
        rows = self.find(self.result((7, 9.9, self.A, self.A, None)), failed,
                         self.result((0.5, 4, self.A, self.A, None)))
        self.assertEqual(sizes(rows), [1, 0, 1])


if __name__ == "__main__":
    unittest.main()
