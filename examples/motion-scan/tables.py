# SPDX-License-Identifier: LGPL-2.1-or-later
"""Writes the results of all clips as Parquet: clips, seconds, events and objects. Clips are read one after the other,
and rows are written in groups, so that memory does not grow with the number of clips. If clips of events were cut,
their lists are also written."""
import contextlib
import csv
import datetime
import io
import json
import pathlib

import clips_of_events
import common

import seams

PICTURES = 4  # maximum number of pictures of a clip on the page
LINKS = 100  # maximum number of links to the clips of events of a clip, on the page
LISTED = ("clip", *clips_of_events.COLUMNS)  # columns of the lists of clips of events
GROUP = 50000  # number of rows of a table that wait in memory

# Columns and types. Times are in seconds of the clip, shares are 0 to 1, boxes and lengths in pixels, luma in percent.
COLUMNS = {
    "clips": {"clip": "string", "key": "string", "status": "string", "error": "string", "complete": "bool_",
              "incomplete": "string", "lost": "int64", "track": "string",
              "attempts": "int32", "width": "int32", "height": "int32", "frames": "int64", "motion_frames": "int64",
              "duration": "float64", "objects": "int64", "first_motion": "float64", "brightness": "float64",
              "backend": "string", "seconds": "float64", "rate": "float64", "cpu_seconds": "float64",
              "memory_mib": "float64", "cuts": "int32", "cut_remark": "string", "began": "string"},
    "seconds": {"clip": "string", "second": "int64", "frames": "int32", "motion_frames": "int32",
                "changed_mean": "float64",
                "changed_max": "float64", "brightness": "float64", "dark": "float64", "bright": "float64"},
    "events": {"clip": "string", "event": "string", "begin": "float64", "end": "float64", "duration": "float64",
               "objects": "int64", "picture": "string", "cut": "string", "changed_ratio": "float64", "id": "int64",
               "line": "string", "direction": "string", "frames": "int64",
               "begin_clock": "string", "until_clip": "string"},
    "objects": {"clip": "string", "id": "int64", "zone": "string", "entered": "float64", "left": "float64",
                "seconds": "float64", "path_length": "float64", "x": "int32", "y": "int32", "width": "int32",
                "height": "int32", "cut": "string", "entered_clock": "string", "until_clip": "string"},
}
LARGEST = {"int32": 2**31 - 1, "int64": 2**63 - 1, "float64": 2**63 - 1}  # the largest whole number of each type
# The columns that the page and the sums require.
NEEDED = {"seconds": ("second", "frames", "motion_frames"), "events": ("event", "begin", "end", "duration"),
          "objects": ("id", "entered", "left")}
# The fields of a result about one cut file (a row of clips_of_events.py), and about all of them. All are required.
CUT = {"file": "string", "begin_s": "float64", "end_s": "float64", "event_begin_s": "float64", "event_end_s": "float64",
       "begin_clock": "string"}  # object, too
CUTS = {"of": "string", "before": "float64", "after": "float64", "folder": "string", "remark": "string"}  # error, too


def load_arrow():
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise common.Failure(f"{error}: install examples/motion-scan/requirements.txt, see README.md there") from error
    return pyarrow


def is_text(text, errors):
    try:
        text.encode("utf-8", errors)
    except UnicodeEncodeError:
        return False
    return True


def is_value(value, kind):
    """Whether a column of a kind can have a value. Every column can have None."""
    if value is None:
        return True
    if kind == "string":
        return isinstance(value, str) and is_text(value, "strict")
    if kind == "bool_" or isinstance(value, bool):
        return kind == "bool_" and isinstance(value, bool)
    return (kind == "float64" and isinstance(value, float)) or (isinstance(value, int) and abs(value) <= LARGEST[kind])


def is_error(text):
    """Whether a text, or None, can be the error of a result. It may contain the name of a file, which need not be valid
    text."""
    return text is None or (isinstance(text, str) and is_text(text, "surrogateescape"))


def is_name(text):
    """Whether a text can be the name of a file in a folder."""
    return isinstance(text, str) and text not in ("", ".", "..") and not set(text) & set("/\0")


def has_all(row, columns, needed):
    """Whether a row has a value or None in each of the columns, and no None in the required ones."""
    return (isinstance(row, dict)
            and all(column in row and is_value(row[column], kind) for column, kind in columns.items())
            and all(row[column] is not None for column in needed))


def is_cut(row):
    """Whether a row of a result describes its cut file, or has none."""
    return row is None or (has_all(row, CUT, CUT) and is_name(row["file"])
                           and (row.get("object") == "" or is_value(row.get("object"), "int64")))


def is_row(row, name):
    return isinstance(row, dict) and is_cut(row.get("cut")) \
        and all(is_value(row.get(column), kind) for column, kind in COLUMNS[name].items() if column != "cut") \
        and all(row.get(column) is not None for column in NEEDED[name])


def is_result(result):
    """Whether data from a file is a result of analyse.py that fits the tables and the page."""
    if not isinstance(result, dict):
        return False
    lists = {"seconds": result.get("profile", []), "events": result.get("events", []),
             "objects": result.get("objects", [])}
    if not all(isinstance(rows, list) and all(is_row(row, name) for row in rows) for name, rows in lists.items()):
        return False
    if any(column in result and result[column] is None for column in ("frames", "motion_frames", "complete")):
        return False
    if ("frames" in result) != ("motion_frames" in result):
        return False
    cuts = result.get("cut")
    if (cuts is not None and not (has_all(cuts, CUTS, CUTS) and is_name(cuts["folder"]) and "error" in cuts
                                  and is_error(cuts["error"]))):
        return False
    if cuts is None and cuts_of(result):
        return False
    # These come from the lists, and from the clip itself.
    own = {**COLUMNS["clips"],
           **dict.fromkeys(("error", "objects", "first_motion", "brightness", "rate", "cuts", "cut_remark"))}
    return (is_error(result.get("error"))
            and all(is_value(result.get(column), kind)
                    for column, kind in own.items() if kind and column not in ("clip", "key")))


def text_of(name):
    """A name as valid text."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def cuts_of(result):
    """The rows of the clips of events of a clip, as in its clips.csv. Several events may share one."""
    cuts = [row["cut"] for row in [*result.get("events", ()), *result.get("objects", ())] if row.get("cut")]
    return list({row["file"]: row for row in cuts}.values())


def file_of(result, row):
    """The path of the cut file, relative to the folder of the tables."""
    return f"clips/{result['cut']['folder']}/{row['file']}"


def clock_of(result, seconds):
    """The time of day of an event in a clip, ISO 8601; None if the clip has no clock time."""
    try:
        began = datetime.datetime.fromisoformat((result or {}).get("began") or "")
        return (began + datetime.timedelta(seconds=seconds)).isoformat(timespec="milliseconds")
    except (ValueError, OverflowError):
        return None


def with_files(result, rows):
    """Rows of events or objects with paths of the clips of events, with times of day, and with names as valid text."""
    made = []
    for row in rows:
        row = {**row, "cut": file_of(result, row["cut"]) if row.get("cut") else None}
        for begin, clock in (("begin", "begin_clock"), ("entered", "entered_clock")):
            if begin in row:
                row[clock] = clock_of(result, row[begin])
        if row.get("until_clip"):
            row["until_clip"] = text_of(row["until_clip"])
        made.append(row)
    return made


def row_of(clip, result, objects):
    """The row of a clip in `clips`, in which this number of visits began. For the page it also has the `pictures` of
    its longest motions and the `links` to its clips of events, both as (begin, file). Without a result its status is
    `missing`."""
    result = result or {"status": "missing"}
    lit = [row for row in result.get("profile", ()) if row.get("brightness") is not None]
    frames = sum(row["frames"] for row in lit)
    seconds, motions = (result.get("seconds"),
                        [event for event in result.get("events", ()) if event["event"] == "motion"])
    longest = sorted((event for event in motions if event.get("picture")),
                     key=lambda event: -event["duration"])[:PICTURES]
    cut, found = result.get("cut") or {}, cuts_of(result)
    remark = "; ".join(filter(None, (cut.get("error"), cut.get("remark"))))
    return {**{column: result.get(column) for column in COLUMNS["clips"]}, "clip": text_of(clip.name), "key": clip.key,
            "error": text_of(result["error"]) if result.get("error") else None,
            "objects": objects, "complete": result.get("complete", False),
            "first_motion": motions[0]["begin"] if motions else None,
            "pictures": [(event["begin"], event["picture"]) for event in motions if event in longest],
            "cuts": len(found), "cut_remark": text_of(remark) if remark else None,
            "links": [(row["event_begin_s"], file_of(result, row)) for row in found[:LINKS]],
            "rate": result["frames"] / seconds if seconds and "frames" in result else None,
            "brightness": sum(row["brightness"] * row["frames"] for row in lit) / frames if frames else None}


class Lists:
    """clips.csv and clips.json for the clips of events of all clips, completed at the end of a `with` block."""

    def __init__(self, stack, folder):
        self.csv, self.json = (stack.enter_context(common.whole(folder / name)) for name in clips_of_events.LISTS)
        self.before = "[\n"
        self.line(LISTED)
        stack.callback(self.finish)

    def line(self, cells):
        text = io.StringIO()
        csv.writer(text).writerow(map(common.harmless, cells))
        self.csv.write(text.getvalue().encode())

    def add(self, clip, result):
        for row in cuts_of(result):
            row = {"clip": clip, **row, "file": f"{result['cut']['folder']}/{row['file']}"}
            self.line(row[name] for name in LISTED)
            self.json.write((self.before + json.dumps(row)).encode())
            self.before = ",\n"

    def finish(self):
        self.json.write(b"[]\n" if self.before == "[\n" else b"\n]\n")


class Table:
    """A Parquet file, completed at the end of a `with` block."""

    def __init__(self, arrow, stack, path, columns):
        self.arrow, self.rows = arrow, []
        self.schema = arrow.schema([(name, getattr(arrow, kind)()) for name, kind in columns.items()])
        stream = stack.enter_context(common.whole(path))
        self.writer = stack.enter_context(arrow.parquet.ParquetWriter(stream, self.schema, compression="zstd"))

    def add(self, rows):
        self.rows += rows
        if len(self.rows) >= GROUP:
            self.flush()

    def flush(self):
        if self.rows:
            self.writer.write_table(self.arrow.Table.from_pylist(self.rows, schema=self.schema))
        self.rows = []


def write(folder, clips, results):
    """Writes the four tables into a folder. Returns the rows of `clips`, in order."""
    arrow, rows = load_arrow(), []
    with contextlib.ExitStack() as stack:
        tables = {name: Table(arrow, stack, pathlib.Path(folder) / f"{name}.parquet", columns)
                  for name, columns in COLUMNS.items()}
        lists = Lists(stack, results.cuts) if results.cuts.is_dir() else None
        joined = seams.find(clips, results.read)
        for clip in clips:
            result = results.read(clip)
            if result:
                result["began"] = seams.began_of(clip, result)
            objects = (result or {}).get("objects", ())
            rows.append(row_of(clip, result, joined.count(clip, "objects", objects)))
            tables["clips"].add(rows[-1:])
            for name, key in (("seconds", "profile"), ("events", "events"), ("objects", "objects")):
                found = joined.apply(clip, key, (result or {}).get(key, ()))
                tables[name].add([{"clip": rows[-1]["clip"], **row} for row in with_files(result, found)])
            if lists and result:
                lists.add(rows[-1]["clip"], result)
        for table in tables.values():
            table.flush()
    return rows
