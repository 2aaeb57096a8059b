# SPDX-License-Identifier: LGPL-2.1-or-later
"""The findings as CSV files (RFC 4180, UTF-8, one line of names), and the last line of motion.jsonl."""
import csv
import io
import json

import common
from common import harmless

OBJECTS = ("object", "zone", "entered_s", "left_s", "seconds", "path_length_px", "lines_crossed",
           "entered_clock", "left_clock", "incomplete")
FRAMES = "time_s", "changed_percent", "moving", "regions", "brightness_percent", "dark_percent", "bright_percent"


def text_of(names, rows):
    stream = io.StringIO()
    writer = csv.writer(stream)
    writer.writerow(names)
    writer.writerows(map(harmless, row) for row in rows)
    return stream.getvalue()


def objects_csv(findings):
    """The file as bytes, with one line for each visit: of the frame, or of a zone if there are zones. `lines_crossed`
    are the lines that the object crossed during the visit, as NAME:DIRECTION, separated by spaces. `incomplete` says
    why the clip was not analysed to its end. Clocks are times of day, ISO 8601, if the clip has a clock time."""
    rows = []
    for visit in findings.visits:
        crossed = " ".join(f"{one['line']}:{one['direction']}" for one in findings.crossings
                           if one["id"] == visit["id"] and visit["entered"] <= one["time"] <= visit["left"])
        rows.append((visit["id"], visit.get("zone", ""), f"{visit['entered']:.3f}", f"{visit['left']:.3f}",
                     visit["seconds"], visit["path_length"], crossed,
                     *(clock.isoformat(timespec="milliseconds") if clock else ""
                       for clock in map(findings.clock_at, (visit["entered"], visit["left"]))), findings.incomplete))
    # A reason may name a file whose name is invalid text.
    return text_of(OBJECTS, rows).encode(errors="backslashreplace")


def write_objects(findings, folder):
    with common.whole(folder / "objects.csv") as stream:
        stream.write(objects_csv(findings))


def line_of(cells):
    """A line of CSV, as bytes."""
    stream = io.StringIO()
    csv.writer(stream).writerow(map(harmless, cells))
    return stream.getvalue().encode()


def frame_line(f):
    """The line of a frame, as bytes. Numbers need neither quotes nor harmless()."""
    return (f"{f.time:.3f},{f.changed:.4f},{int(f.moving)},{f.regions},{f.brightness:.2f},{f.dark:.2f},"
            f"{f.bright:.2f}\r\n").encode()


def last_event(findings):
    """The last line of motion.jsonl, as bytes: whether the clip was analysed to its end, and why not."""
    event = {"event": "finished", "time": round(findings.end + findings.frame_time, 6), "frames": findings.count,
             "complete": not findings.incomplete}
    if findings.incomplete:
        event["incomplete"] = findings.incomplete
    return (json.dumps(event) + "\n").encode()
