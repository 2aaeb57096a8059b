# SPDX-License-Identifier: LGPL-2.1-or-later
"""Writes the results of all clips as Parquet: clips, seconds, events and objects. Clips are read one after the other, and rows are
written in groups, so that memory does not grow with the number of clips."""
import contextlib
import pathlib

import common

GROUP = 50000  # rows of a table that wait in memory

# Columns and types. Times are in seconds of the clip, shares are 0 to 1, boxes and lengths in pixels, luma in percent.
COLUMNS = {
    "clips": {"clip": "string", "key": "string", "status": "string", "error": "string", "attempts": "int32", "width": "int32",
              "height": "int32", "frames": "int64", "motion_frames": "int64", "duration": "float64", "objects": "int64",
              "first_motion": "float64", "brightness": "float64",
              "backend": "string", "seconds": "float64", "rate": "float64", "cpu_seconds": "float64", "memory_mib": "float64"},
    "seconds": {"clip": "string", "second": "int64", "frames": "int32", "motion_frames": "int32", "changed_mean": "float64",
                "changed_max": "float64", "brightness": "float64", "dark": "float64", "bright": "float64"},
    "events": {"clip": "string", "event": "string", "time": "float64", "changed_ratio": "float64", "id": "int64", "line": "string",
               "direction": "string"},
    "objects": {"clip": "string", "id": "int64", "zone": "string", "entered": "float64", "left": "float64", "seconds": "float64",
                "path_length": "float64", "x": "int32", "y": "int32", "width": "int32", "height": "int32"},
}


def load_arrow():
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise common.Failure(f"{error}: install examples/motion-scan/requirements.txt, see README.md there") from error
    return pyarrow


def text_of(name):
    """A name as valid text."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def row_of(clip, result):
    """The row of a clip in `clips`. Without a result its status is `missing`."""
    result = result or {"status": "missing"}
    lit = [row for row in result.get("profile", ()) if row["brightness"] is not None]
    frames = sum(row["frames"] for row in lit)
    seconds = result.get("seconds")
    return {**{column: result.get(column) for column in COLUMNS["clips"]}, "clip": text_of(clip.name), "key": clip.key,
            "objects": len(result.get("objects", ())),
            "first_motion": next((event["time"] for event in result.get("events", ()) if event["event"] == "begin"), None),
            "rate": result["frames"] / seconds if seconds and "frames" in result else None,
            "brightness": sum(row["brightness"] * row["frames"] for row in lit) / frames if frames else None}


class Table:
    """A Parquet file that becomes whole at the end of a `with` block."""

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
        tables = {name: Table(arrow, stack, pathlib.Path(folder) / f"{name}.parquet", columns) for name, columns in COLUMNS.items()}
        for clip in clips:
            result = results.read(clip)
            rows.append(row_of(clip, result))
            tables["clips"].add(rows[-1:])
            for name, key in (("seconds", "profile"), ("events", "events"), ("objects", "objects")):
                tables[name].add([{"clip": rows[-1]["clip"], **row} for row in (result or {}).get(key, ())])
        for table in tables.values():
            table.flush()
    return rows
