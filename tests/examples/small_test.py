#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests that the settings which docs/motion.md names find an object of three pixels, and that each piece of the page's
zone editor makes options which cudadiff takes. Exit status 77 without the bindings or NumPy."""
import json
import re
import shutil
import subprocess
import unittest

import programs
import numpy
import common
import inputs

ROOT = programs.EXAMPLES.parent
WIDTH, HEIGHT = 320, 240
# The editor of zones.js with elements that do nothing else. Two shapes are drawn with clicks.
EDITOR = """
const made = {}, document = {createElementNS: () => ({setAttribute() {}, append() {}})};
const element = (id) => made[id] ??= {value: "", setAttribute() {}, addEventListener(kind, f) { this[kind] = f; }};
const group = {replaceChildren() {}, append() {}};
const overlay = {classList: {toggle() {}}, getBoundingClientRect: () => ({left: 0, top: 0, width: 100, height: 50}),
  addEventListener(kind, f) { this[kind] = f; }};
%s
const editor = makeZoneEditor(overlay, group, [200, 100], element, () => 10);
const texts = [element("zone-text").value];
const draw = (kind, name, points) => {
  element("zone-kind").value = kind;
  element("zone-name").value = name;
  element("zone-draw").click();
  for (const [clientX, clientY] of points) overlay.click({clientX, clientY, detail: 1});
  editor.key("Enter");
  texts.push(element("zone-text").value);
};
draw("mask", "it's", [[0, 0], [50, 0], [50, 25]]);
draw("zone", "it's", [[0, 0], [100, 0], [100, 50], [0, 50]]);
draw("mask", "", [[10, 10], [20, 10], [20, 20]]);
draw("mask", "", [[10, 10], [20, 10]]);
element("zone-clear").click();
texts.push(element("zone-text").value);
console.log(JSON.stringify(texts));
"""


class Small(programs.InFolder):
    def test_an_object_of_three_pixels(self):
        frames = []
        for index in range(110):
            picture = numpy.full((HEIGHT, WIDTH), 90, numpy.uint8)
            picture[::16] += 20
            if index >= 60:
                picture[100, index - 40:index - 37] = 220
            frames.append(picture.tobytes() + bytes([128]) * (WIDTH * HEIGHT // 2))
        programs.launch(f"fdsrc ! rawvideoparse format=i420 width={WIDTH} height={HEIGHT} framerate=25/1 ! jpegenc "
                        f"quality=98 ! matroskamux ! filesink location={self.folder}/a.mkv", input=b"".join(frames))
        page = " ".join((ROOT / "docs/motion.md").read_text(encoding="utf-8").split())
        settings = re.search("an object of three pixels is found with `([^`]*)`", page)[1].split()
        self.assertIn("open-radius=0", settings)
        self.assertEqual(self.entered(settings), 1)
        self.assertEqual(self.entered([each for each in settings if each != "open-radius=0"]), 0)

    def entered(self, settings):
        done = subprocess.run([*programs.ALARM_PY, "a.mkv", *settings], cwd=self.folder,
                              stdout=subprocess.PIPE, text=True, check=True)
        return [json.loads(line)["event"] for line in done.stdout.splitlines()].count("enter")


@unittest.skipUnless(shutil.which("node"), "no node")
class Editor(unittest.TestCase):
    def test_zones_and_parts_to_ignore(self):
        script = (ROOT / "examples/motion-report/zones.js").read_text(encoding="utf-8").replace('"use strict";', "")
        done = subprocess.run(["node", "-"], input=EDITOR % script, stdout=subprocess.PIPE, text=True, check=True)
        nothing, mask, both, more, line, cleared = json.loads(done.stdout)
        self.assertEqual((nothing, cleared), ("--zones=''", "--zones=''"))
        self.assertEqual(mask, "--set=mask-regions='0.000,0.000 0.500,0.000 0.500,0.500'")
        self.assertEqual(both, "--zones='it'\\''s: 0.000,0.000 1.000,0.000 1.000,1.000 0.000,1.000' " + mask)
        self.assertEqual(more, both[:-1] + "; 0.100,0.200 0.200,0.200 0.200,0.400'")
        self.assertEqual(line, more)  # two corners are no shape
        motion = common.parse("cudadiff name=motion ! fakesink").get_by_name("motion")
        self.assertTrue(inputs.set_property(motion, re.search("set=(mask-regions=.*)'", more)[1].replace("'", "")))


if __name__ == "__main__":
    unittest.main()
