#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests what examples/motion-report computes for its pages, without a clip."""
import argparse
import csv
import io
import json
import pathlib
import re
import sys
import tempfile
import unittest

EXAMPLES = pathlib.Path(__file__).resolve().parent.parent.parent / "examples"
sys.path[:0] = [str(EXAMPLES), str(EXAMPLES / "motion-report")]
import analysis  # noqa: E402
import motion_report  # noqa: E402
import page  # noqa: E402
import tables  # noqa: E402


def leave(number, entered, left, **more):
    return {"id": number, "entered": entered, "left": left, "seconds": left - entered, "path_length": 10.5, **more}


def cross(number, time):
    return {"id": number, "time": time, "line": "gate", "direction": "left"}


class PageTest(unittest.TestCase):
    def test_times(self):
        self.assertEqual([page.clock(seconds) for seconds in (0, 9.96, 59.96, 3599.99, 3661.2)],
                         ["0:00.0", "0:10.0", "1:00.0", "1:00:00.0", "1:01:01.2"])
        self.assertEqual([page.duration(seconds) for seconds in (1.25, 99.9, 99.96, 3725)],
                         ["1.2 s", "99.9 s", "1 min 40 s", "1 h 2 min"])

    def test_columns_of_a_long_clip_keep_the_extremes(self):
        frames = [analysis.Frame(0.1 * i, brightness=50, dark=10, bright=90) for i in range(5001)]
        frames[1234] = analysis.Frame(123.4, brightness=50, dark=1, bright=99, changed=77)
        columns = page.columns_of(frames)
        self.assertLessEqual(len(columns["time"]), page.COLUMNS)
        self.assertEqual({len(values) for values in columns.values()}, {len(columns["time"])})
        self.assertEqual((max(columns["changed"]), min(columns["dark"]), max(columns["bright"])), (77, 1, 99))
        self.assertEqual(columns["time"][0], 0)
        self.assertEqual(len(page.columns_of(frames[:7])["time"]), 7)

    def test_shapes_in_pixels_and_in_shares(self):
        self.assertEqual(page.shapes_of("a b: 0.5,0.0 1.0,0.25 1.,1.0;c:10,20 30 , 40 0,0", (640, 480)),
                         [{"name": "a b", "points": [[320, 0], [640, 120], [640, 480]]},
                          {"name": "c", "points": [[10, 20], [30, 40], [0, 0]]}])
        self.assertEqual(page.shapes_of(None, (640, 480)), [])

    def test_runs_of_motion(self):
        moving = [0, 1, 1, 0, 0, 1]
        findings = analysis.Findings(frames=[analysis.Frame(float(i), moving=bool(m)) for i, m in enumerate(moving)])
        self.assertEqual(findings.runs, [[1, 2], [5, 5]])

    def test_objects_gather_their_visits(self):
        findings = analysis.Findings(visits=[leave(3, 1, 2, zone="a"), leave(1, 1.5, 9, zone="a"), leave(3, 4, 7, zone="b")],
                                     crossings=[cross(3, 5.5)], tracks={3: [(1, 10, 20, 30, 40)]})
        first, second = page.objects_of(findings)
        self.assertEqual((first["id"], first["entered"], first["left"], first["seconds"], first["path"]), (3, 1, 7, 4, 21))
        self.assertEqual((first["track"], len(first["crossings"])), ([[1, 10, 20, 30, 40]], 1))
        self.assertEqual((second["id"], second["track"]), (1, []))

    def test_csv(self):
        findings = analysis.Findings(frames=[analysis.Frame(0.5, 50, 1, 99, 12.5, 2, True)], crossings=[cross(3, 5.5), cross(4, 5)],
                                     visits=[leave(3, 1, 2, zone='a, "b"'), leave(3, 4, 7, zone="c")])
        self.assertEqual(tables.objects_csv(findings).splitlines()[1:],
                         ['3,"a, ""b""",1.000,2.000,1,10.5,', "3,c,4.000,7.000,3,10.5,gate:left"])
        self.assertEqual(tables.frames_csv(findings).splitlines()[1:], ["0.500,12.5000,1,2,50.00,1.00,99.00"])

    def test_spreadsheets_run_no_cell(self):
        for name in ("=1+1", "+a", "-a", "@a", "\ta", "\ra", "\na", "\uff1da", "=", "-1+1", "+1e", "-", "-1;=2"):
            visits = [leave(1, 0, 1, zone=name)]
            findings = analysis.Findings(visits=visits, crossings=[dict(cross(1, 0.5), line=name)])
            row = list(csv.reader(io.StringIO(tables.objects_csv(findings), newline="")))[1]
            self.assertEqual((row[1], row[6]), (f"'{name}", f"'{name}:left"))
        for name in ("a=1", "1", "-1", "+1.5", "way in", "", "'=1"):
            self.assertEqual(tables.harmless(name), name)
        for number in (-1, -1.5, 0, 1e30):
            self.assertIs(tables.harmless(number), number)
        frames = [analysis.Frame(-0.25, -1, -2, -3, -4, -5)]
        text = tables.frames_csv(analysis.Findings(frames=frames))
        self.assertEqual(text.splitlines()[1], "-0.250,-4.0000,0,-5,-1.00,-2.00,-3.00")

    def test_titles_hide_passwords(self):
        for clip, title in (("rtsp://me:secret@host/x?user=me&password=secret", "rtsp://host/x?user=***&password=***"),
                            (None, "a synthetic scene"), ("folder/a.mp4", "a.mp4"),
                            ("file://localhost/folder/a%20b.mp4", "a b.mp4")):
            self.assertEqual(motion_report.title_of(clip), title)

    def test_texts_and_data_are_escaped(self):
        zone = '</script><b> {{video}} " &lt'
        bad = f"{zone} \udcff"  # a byte of a file name that is no UTF-8
        findings = analysis.Findings(frames=[analysis.Frame(0), analysis.Frame(1)], visits=[leave(1, 0, 1, zone=zone)],
                                     crossings=[dict(cross(1, 0.5), line=zone)], size=(64, 48), backend="cpu", poster=b"JPEG")
        args = argparse.Namespace(zones=f"{zone}: 0,0 1,0 1,1", lines=None)
        with tempfile.TemporaryDirectory() as folder:
            page.write(findings, args, bad, pathlib.Path(folder), b"WEBM")
            page.write_index([page.Entry(bad, failure=bad), page.Entry(bad, findings)], bad, pathlib.Path(folder))
            text, index = (pathlib.Path(folder, name).read_text(encoding="utf-8") for name in ("report.html", "index.html"))
        for one in text, index:
            self.assertNotIn("<b>", one)
            self.assertIn("&lt;/script&gt;&lt;b&gt; {{video}} &quot; &amp;lt \ufffd", one)
        data = json.loads(re.search('id="data">(.*?)</script>', text)[1])
        self.assertEqual(data["zones"][0]["name"], zone)
        self.assertIn('id="webm">V0VCTQ==</script>', text)


if __name__ == "__main__":
    unittest.main()
