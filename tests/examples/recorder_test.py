#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests that the files of a recorder become one recording with one timeline. Exit status 77 without the bindings of
GStreamer, NumPy or the encoders."""
import datetime
import os
import signal
import subprocess
import time
import unittest

import programs
from programs import REPORT, scan
programs.use("motion-scan")
import camera_files  # noqa: E402
import clip_facts  # noqa: E402
import clips  # noqa: E402
import seams  # noqa: E402

os.environ["TZ"] = "CET-1CEST,M3.5.0,M10.5.0/3"  # with summer time
time.tzset()


class Recordings(programs.InFolder):
    def setUp(self):
        super().setUp()
        (self.folder / "cam").mkdir()

    def write(self, name, kind="h264.mp4", begin=0, frames=100, visits=(), **more):
        """Writes a camera file with ten pictures per second."""
        if absent := camera_files.missing(kind):
            self.skipTest(f"not installed: {', '.join(absent)}")
        more = {"rate": 10, **more}
        return camera_files.write(self.folder / "cam" / f"{name}.{kind.partition('.')[2]}", kind, begin, frames, visits,
                              **more)

    def write_files(self, count, kind="h264.mp4", **more):
        """Writes files of ten seconds that follow each other. Returns their paths."""
        return [self.write(f"2024-01-31_13-05-{begin:02}", kind, begin, **more) for begin in range(0, 10 * count, 10)]

    def report(self, *arguments, status=0):
        """Runs a report of the folder. Returns its output."""
        inputs = [] if any(not each.startswith("-") for each in arguments) else ["cam"]
        return super().report(*inputs, *arguments, status=status)

    def visits(self):
        return [(float(row["entered_s"]), float(row["left_s"]))
                for row in programs.rows_of(self.folder / "out/objects.csv")]

    def check_visits(self, expected):
        found = self.visits()
        self.assertEqual(len(found), len(expected), found)
        for (entered, left), (begin, end) in zip(found, expected):
            self.assertLess(max(abs(entered - begin), abs(left - end)), 0.6, (found, expected))


class Seams(Recordings):
    def test_a_visit_across_files(self):
        """One object, one motion and one clip span two files, and a whole file between others."""
        visits = [(7, 13), (25, 45)]
        self.write_files(5, visits=visits)
        said = self.report("--clips=visits", "--before=1", "--after=1")
        self.assertIn("cam: 5 files are one recording", said)
        self.check_visits(visits)
        self.assertEqual((len(self.data()["runs"]), self.data()["holes"]), (2, []))
        rows = self.list_of_clips()
        self.assertEqual(len(rows), 2)
        for row, (begin, end) in zip(rows, visits):
            self.assertLess(abs(row["event_begin_s"] - begin) + abs(row["event_end_s"] - end), 0.6)
            facts = clip_facts.facts_of(str(self.folder / "out/clips" / row["file"]))
            # As recorded, unlike the page's video, which has another size.
            self.assertEqual((facts.codec, facts.width), ("video/x-h264", camera_files.WIDTH))
            self.assertLess(abs(facts.length - (row["end_s"] - row["begin_s"])), 0.15)
            self.assertLessEqual(row["begin_s"], begin - 0.9)
            self.assertRegex(row["begin_clock"], r"^2024-01-31T13:05:[0-4]\d\.\d{3}\+01:00$")

    def test_files_that_differ(self):
        """The files differ in size, format, container and rate. They are analysed at the size of the first one."""
        visits = [(7, 13), (17, 23)]
        self.write("2024-01-31_13-05-00", begin=0, visits=visits)
        self.write("2024-01-31_13-05-10", "jpeg.avi", begin=10, visits=visits, size=(320, 240), rate=5, frames=50)
        self.write("2024-01-31_13-05-20", "h264.mkv", begin=20, visits=visits, size=(240, 180), rate=20, frames=200)
        self.report("--clips")
        self.check_visits(visits)
        self.assertEqual((self.data()["size"], len(self.data()["runs"])),
                         ([camera_files.WIDTH, camera_files.HEIGHT], 2))
        rows = self.list_of_clips()  # these come from the page's video
        self.assertTrue(rows)
        for row in rows:
            facts = clip_facts.facts_of(str(self.folder / "out/clips" / row["file"]))
            self.assertLess(abs(facts.length - (row["end_s"] - row["begin_s"])), 0.15)
        self.assertEqual(self.events("light"), [])

    def test_a_hole_is_said_and_drawn(self):
        """No visit spans the hole. A few seconds' deviation from the names is not a hole."""
        self.write("2024-01-31_13-05-00", visits=[(7, 30)])
        self.write("2024-01-31_13-05-11", begin=10, visits=[(7, 30)])
        self.write("2024-01-31_13-05-51", begin=20, visits=[(7, 30)])
        said = self.report()
        self.assertIn("1 hole, where nothing was recorded (from 2024-01-31 13:05:20, 30.0 s)", said)
        self.assertEqual(self.data()["holes"], [[20, 50, ""]])
        self.assertEqual([(hole["time"], hole["until"], hole["files"]) for hole in self.events("hole")], [(20, 50, [])])
        runs = self.data()["runs"]
        self.assertTrue(all(end <= 20.1 or begin >= 49.9 for begin, end, _ in runs), runs)
        self.assertTrue(any(begin < 20 for begin, *_ in runs) and any(begin > 40 for begin, *_ in runs), runs)
        self.assertEqual(self.data()["end"], 60)

    def test_no_clip_spans_a_hole(self):
        """Motions before and after a hole are separate clips, also if the seconds around them would overlap, or no key
        frame is between them."""
        for second in "h264.mp4", "jpeg.avi":  # jpeg: the clips come from the page's video
            self.write("2024-01-31_13-05-00", visits=[(7, 30)])
            self.write("2024-01-31_13-05-10", second, begin=10, visits=[(7, 30)])
            self.write("2024-01-31_14-05-20", begin=20, visits=[(7, 30)])
            for more in ["--clips"], ["--clips", "--before=3000", "--after=3000"], ["--clips=visits"]:
                with self.subTest(second=second, more=more):
                    self.report(*more)
                    rows = self.list_of_clips()
                    self.assertTrue(any(row["end_s"] <= 20.1 for row in rows), rows)
                    self.assertTrue(any(row["begin_s"] >= 3620 for row in rows), rows)
                    for row in rows:
                        self.assertTrue(row["end_s"] <= 20.1 or row["begin_s"] >= 3620, rows)
                        facts = clip_facts.facts_of(str(self.folder / "out/clips" / row["file"]))
                        self.assertLess(abs(facts.length - (row["end_s"] - row["begin_s"])), 0.15)
                    if row["begin_s"] >= 3620:
                        self.assertRegex(row["begin_clock"], "^2024-01-31T14:05:2")
            for path in (self.folder / "cam").iterdir():
                path.unlink()

    def test_files_that_cannot_be_read(self):
        """Unreadable files are named and counted, and their time is a hole: at the beginning, in the middle and at the
        end."""
        paths = self.write_files(5)
        names = [path.name for path in paths]
        for path, share in ((paths[0], 0), (paths[2], 0.6), (paths[4], 0)):
            camera_files.cut(path, share)
        said = self.report(status=3)
        self.assertRegex(said, rf"3 of 5 files could not be read, or only in part: {names[0]} \(it is empty\), "
                         rf"{names[2]} \(its index \(moov\) is missing: [^)]*\), {names[4]} \(it is empty\)")
        self.assertEqual([hole[:2] for hole in self.data()["holes"]], [[0, 10], [20, 30], [40, 50]])
        self.assertEqual([hole["files"] for hole in self.events("hole")], [[names[i]] for i in (0, 2, 4)])
        for path in paths:
            camera_files.cut(path, 0)
        self.assertIn("5 of 5 files could not be read", self.report("--join=all", status=1))

    def test_a_file_that_is_cut_off(self):
        """The existing part is analysed; the rest is a hole."""
        visits = [(10.5, 16), (22, 28)]
        paths = self.write_files(3, "jpeg.avi", visits=visits)
        camera_files.cut(paths[1], 0.7)
        said = self.report(status=3)
        self.assertRegex(said, r"1 of 3 files could not be read, or only in part: \S+13-05-10.avi \(it is cut off")
        self.check_visits(visits)
        (begin, end, _), = self.data()["holes"]
        self.assertTrue(16 < begin < 18 and end == 20, (begin, end))

    def test_files_without_clock_times(self):
        """On request, they follow each other in the natural order of their names."""
        visits = [(7, 13)]
        for number, name in enumerate(("part 2", "part 10", "part 11")):
            self.write(name, "jpeg.avi", begin=10 * number, visits=visits)
        (self.folder / "cam/part 3.avi").touch()
        self.report("--join=all", status=3)
        self.assertEqual(self.data()["holes"], [[10, 20, "part 3.avi"]])
        self.assertEqual([round(begin) for begin, _ in self.visits()], [7, 20])
        (self.folder / "cam/part 3.avi").unlink()
        self.report("--join=all")
        self.check_visits(visits)
        self.assertEqual(self.data()["clocks"], [])

    def test_what_belongs_together(self):
        """Files that touch are one recording, unless --join decides otherwise. Cameras in one folder are kept apart."""
        for camera in "a", "b":
            for number in range(2):
                self.write(f"{camera}_20240131_1305{10 * number:02}", begin=10 * number)
        self.write("a_20240131_180000")
        self.write("other")
        self.report()
        names = ["a_20240131_130500", "a_20240131_180000.mp4", "b_20240131_130500", "other.mp4"]
        self.assertEqual(self.names(), sorted([*names, "index.html"]))
        self.assertEqual(self.data(f"out/{names[0]}")["end"], 20)
        self.report("--join=none", "cam/a_20240131_130500.mp4", "cam/a_20240131_130510.mp4")
        self.assertTrue((self.folder / "out/a_20240131_130510.mp4/report.html").is_file())
        self.assertFalse((self.folder / "out/report.html").exists())
        self.report("cam/a_20240131_130510.mp4", "cam/a_20240131_130500.mp4")  # in any order
        self.assertEqual(self.data()["end"], 20)

    def test_a_part(self):
        """Times count from the start of the recording. Files before the part are not decoded."""
        visits = [(7, 13), (31, 34)]
        self.write_files(5, visits=visits)
        for part in ("--start=00:25", "--end=36s"), ("--start=250", "--duration=110"):  # the second one in frames
            self.report(*part)
            self.assertEqual((self.data()["start"], self.data()["count"]), (25, 110))
            self.check_visits(visits[1:])

    def test_ctrl_c(self):
        """The analysed part is reported, without a hole."""
        for number in range(60):
            self.write(f"2024-01-31_13-{number:02}-00", begin=60 * number, frames=600)
        program = subprocess.Popen([REPORT, "cam", "--out=out", "--backend=cpu"], stdout=subprocess.PIPE, text=True,
                                   cwd=self.folder)
        self.addCleanup(program.kill)
        for line in program.stdout:
            if "frames, motion in" in line:  # the progress
                break
        program.send_signal(signal.SIGINT)
        said, _ = program.communicate()
        self.assertEqual(program.returncode, 3, said)
        self.assertRegex(said, r"incomplete +it was stopped by Ctrl-C\n")
        self.assertEqual((self.data()["holes"], self.data()["count"] < 36000), ([], True))


class Scan(Recordings):
    def test_a_visit_across_files(self):
        """motion-scan analyses each file separately. In its tables the visit is one row, and so is the motion."""
        paths = list(map(str, self.write_files(3, visits=[(7, 13), (24, 28)])))
        every = clips.clips_of(paths, {})
        results = {clip.key: scan(path) for clip, path in zip(every, paths)}
        found = seams.find(every, lambda clip: results[clip.key])
        for kind, begin, end in (("objects", "entered", "left"), ("events", "begin", "end")):
            rows = [[(row[begin], row[end], row.get("until_clip"))
                     for row in found.apply(clip, kind, results[clip.key][kind])] for clip in every]
            self.assertEqual([len(each) for each in rows], [1, 0, 1], rows)
            self.assertEqual((rows[0][0][2], rows[2][0][2]), (paths[1], None))
            for (entered, left, _), wanted in ((rows[0][0], (7, 13)), (rows[2][0], (4, 8))):
                self.assertLess(max(abs(entered - wanted[0]), abs(left - wanted[1])), 1, rows)
        self.assertEqual(seams.began_of(every[1], results[every[1].key]), "2024-01-31T13:05:10+01:00")


class Clocks(Recordings):
    def test_a_clock_that_is_set_back(self):
        """The order in which files were written decides. The timeline continues."""
        visits = [(17, 23)]
        names = "13-05-00", "13-05-10", "13-04-55", "13-05-05"
        for number, name in enumerate(names):
            path = self.write(f"2024-01-31_{name}", begin=10 * number, visits=visits)
            os.utime(path, (10 ** 9 + 10 * number,) * 2)
        self.assertIn("the clock was set back by 25.0 s before 2024-01-31_13-04-55.mp4", self.report("--join=all"))
        self.check_visits(visits)
        self.assertEqual([each[0] for each in self.data()["clocks"]], [0, 20])

    def test_the_end_of_summer_time(self):
        """One hour occurs twice in the names. This is not a hole, and nothing is set back."""
        begin = datetime.datetime(2024, 10, 27, 0, 59, 50, tzinfo=datetime.timezone.utc)
        for second in 0, 10:
            local = (begin + datetime.timedelta(seconds=second)).astimezone()
            self.write(f"{local:%Y-%m-%d_%H-%M-%S}", begin=second)
        self.assertNotRegex(self.report(), "hole|set back")
        self.assertEqual(self.data()["clocks"], [[0, begin.timestamp() * 1000, 7200]])


if __name__ == "__main__":
    unittest.main()
