# SPDX-License-Identifier: LGPL-2.1-or-later
"""The findings as CSV files (RFC 4180, UTF-8, one line of names)."""
import csv
import io
import re

import common

OBJECTS = "object", "zone", "entered_s", "left_s", "seconds", "path_length_px", "lines_crossed"
FRAMES = "time_s", "changed_percent", "moving", "regions", "brightness_percent", "dark_percent", "bright_percent"


def harmless(cell):
    """A cell that no spreadsheet takes for a formula: a text that begins like one, and is no number, gets a ' in front, which marks
    texts there (https://owasp.org/www-community/attacks/CSV_Injection)."""
    formula = isinstance(cell, str) and re.match("[=+@\t\r\n\uff0b\uff0d\uff1d\uff20-]", cell)
    return f"'{cell}" if formula and not re.fullmatch(r"[-+]?\d+(\.\d+)?", cell, re.A) else cell


def text_of(names, rows):
    stream = io.StringIO()
    writer = csv.writer(stream)
    writer.writerow(names)
    writer.writerows(map(harmless, row) for row in rows)
    return stream.getvalue()


def objects_csv(findings):
    """One line for each visit: of the frame, or of a zone if there are zones. `lines_crossed` are the lines that the object crossed
    during the visit, as NAME:DIRECTION with spaces between them."""
    rows = []
    for visit in findings.visits:
        crossed = " ".join(f"{one['line']}:{one['direction']}" for one in findings.crossings
                           if one["id"] == visit["id"] and visit["entered"] <= one["time"] <= visit["left"])
        rows.append((visit["id"], visit.get("zone", ""), f"{visit['entered']:.3f}", f"{visit['left']:.3f}", visit["seconds"],
                     visit["path_length"], crossed))
    return text_of(OBJECTS, rows)


def frames_csv(findings):
    """One line for each frame. Brightness is the mean of the luma, dark and bright are its 1st and 99th percentiles."""
    return text_of(FRAMES, ((f"{f.time:.3f}", f"{f.changed:.4f}", int(f.moving), f.regions, f"{f.brightness:.2f}", f"{f.dark:.2f}",
                             f"{f.bright:.2f}") for f in findings.frames))


def write_all(findings, folder):
    for name, text in (("objects.csv", objects_csv(findings)), ("frames.csv", frames_csv(findings))):
        with common.whole(folder / name) as stream:
            stream.write(text.encode())
