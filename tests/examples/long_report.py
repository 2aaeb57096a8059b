#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Writes the report of an imaginary clip of hours, to measure how fast such a page opens:
  long_report.py FOLDER [--hours=10]

Three people at a time walk through the picture, at 25 frames per second. There is no video."""
import argparse
import pathlib
import sys

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"
sys.path[:0] = [str(EXAMPLES), str(EXAMPLES / "motion-report")]
sys.dont_write_bytecode = True
import numpy  # noqa: E402

import common  # noqa: E402
import page  # noqa: E402
import page_video  # noqa: E402
from part import Part  # noqa: E402
import pictures  # noqa: E402
import recording  # noqa: E402
from findings import Findings, Frame  # noqa: E402

STAY = 20  # seconds that a person is in the picture
SIZE = 1920, 1080


def box_of(number, share):
    return round(share * 1800), 200 + 130 * (number % 5), 70, 180


def visit(found, number, entered):
    left = entered + STAY
    found.visits.append({"id": number, "entered": entered, "left": left, "seconds": STAY, "path_length": 1800.0,
                         "best_time": entered + 10, "best_box": list(box_of(number, 0.5))})


def fill(found, hours, jpeg):
    noise = numpy.random.default_rng(1)
    present, number = [], 0
    for tick in range(int(hours * 36000)):
        time = tick / 10
        if tick % (10 * STAY // 3) == 0:
            number += 1
            present = [(other, since) for other, since in present if time - since < STAY] + [(number, time)]
            visit(found, number, time)
            found.pictures.put(number, jpeg)
        mask = noise.random((54, 96)) < 0.002
        for other, since in present:
            box = box_of(other, min((time - since) / STAY, 1))
            found.recording.place(time, other, box)
            x, y, w, h = (round(value / 20) for value in box)
            mask[y:y + h, x:x + w] |= noise.random(mask[y:y + h, x:x + w].shape) < 0.8
        found.recording.mask(time, mask)
        if tick % 10 == 0:
            found.recording.histogram(time, noise.integers(0, 1000, 64))
        for part in range(2 + tick % 2):
            found.add(Frame(time + part / 25, 50, 5, 95, float(mask.mean() * 100), 3, tick % 600 < 500))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--hours", type=float, default=10)
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    common.parse("fakesrc ! fakesink")
    pipeline = common.parse(
        "videotestsrc num-buffers=1 ! video/x-raw,width=160,height=360 ! jpegenc ! appsink name=sink")
    buffer = next(common.samples(pipeline)).get_buffer()
    found = Findings(pictures=pictures.Pictures(args.folder), recording=recording.Recorder(args.folder), size=SIZE,
                     backend="cpu", seconds=1)
    fill(found, args.hours, buffer.extract_dup(0, buffer.get_size()))
    found.recording.finish()
    page.write(found, argparse.Namespace(zones=None, lines=None, part=Part(), min_event=None, recording=[]),
               "hours of data", args.folder, page_video.Video(None, "mp4", 0, "there is no video"), b"", None)


if __name__ == "__main__":
    main()
