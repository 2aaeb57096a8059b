# SPDX-License-Identifier: LGPL-2.1-or-later
"""Target: results of motion-scan that are read from a folder into tables and the page. A file that is not a result is
ignored."""
import pathlib
import tempfile

import clips
import page
import tables

FILES = ("examples/motion-scan/tables.py", "examples/motion-scan/page.py", "examples/motion-scan/clips.py")
OUT = tempfile.TemporaryDirectory()
CLIP = clips.Clip("a clip.avi", "file:///a%20clip.avi", "0" * 32)
RANGES = {"int32": 2**31, "int64": 2**63}


class Arrow:
    """Replaces pyarrow: refuses the values that pyarrow refuses."""

    class ParquetWriter:
        def __init__(self, stream, schema, compression):
            self.schema = schema

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def write_table(self, table):
            pass

    class Table:
        @staticmethod
        def from_pylist(rows, schema):
            for row in rows:
                for name, kind in schema:
                    Arrow.check(row.get(name), kind)

    parquet = None

    @staticmethod
    def schema(columns):
        return columns

    def __getattr__(self, kind):
        return lambda: kind

    @staticmethod
    def check(value, kind):
        if value is None:
            return
        if kind == "string":
            assert isinstance(value, str), value
            value.encode()
        elif kind == "bool_":
            assert isinstance(value, bool), value
        elif kind == "float64":
            assert isinstance(value, (int, float)) and not isinstance(value, bool), value
            float(value)
        else:
            assert isinstance(value, int) and not isinstance(value,
                                                             bool) and -RANGES[kind] <= value < RANGES[kind], value


Arrow.parquet = Arrow
tables.load_arrow = Arrow


def one_input(data):
    results = clips.Results(OUT.name)
    results.prepare()
    results.file(CLIP).write_bytes(data)
    results.missing([CLIP], repeat_failed=True)
    rows = tables.write(OUT.name, [CLIP], results)
    page.write(pathlib.Path(OUT.name) / "summary.html", rows, ["facts: <&>"])
