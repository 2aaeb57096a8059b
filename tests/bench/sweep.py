#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Repeats the measurements behind the tuning of an operation's CUDA kernels.

    sweep.py [--build FOLDER] [--pack FOLDER] [--rows REGEX] [--sizes LIST] OPERATION [FIELD …]

A field of kernels/OPERATION/cuda_tuning.hpp lists its values in a comment:    int warps = 8;  // sweep: 4 8 16
For each value the script compiles the operation with only that field changed (the header is changed meanwhile) and runs
its rows in bench_kernels (REGEX is a --benchmark_filter; default: OPERATION). It prints a table for each field, with
the µs of each row for each value. A star marks the value in the tree. On a machine without a GPU, --pack writes the
libraries to FOLDER. On a GPU host run FOLDER/run.sh BENCH_KERNELS [OPTION of bench_kernels …], with
tests/bench/bench_kernels of the unpacked bundle of tests/gpu-bundle.sh.
"""
import argparse
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

root = Path(__file__).resolve().parents[2]
field_line = re.compile(r"^(\s*[\w:<> ]+\s(\w+) = )([^;]+)(;.*//\s*sweep:\s*(.+?)\s*)$")
library = "kernels/libcudavision-kernels-shared.so"

run_script = """#!/bin/sh
# Prints the time of each row for each value: run.sh BENCH_KERNELS [OPTION]…
here=$(cd "$(dirname "$0")" && pwd)
bench=$1
shift
for variant in "$here"/*=*; do
  LD_LIBRARY_PATH="$variant${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" "$bench" --benchmark_filter="$(cat "$here/rows")" \\
    --benchmark_out="$variant/result.json" --benchmark_out_format=json "$@" >/dev/null || exit
done
python3 "$here/sweep.py" --tables "$here"
"""


def fields_of(header):
    """The fields that can be swept: name → (value in the tree, values to try)."""
    found = {}
    for line in header.read_text(encoding="utf-8").splitlines():
        match = field_line.match(line)
        if match:
            found[match.group(2)] = (match.group(3).strip(), match.group(5).split())
    return found


def with_value(header, field, value):
    """The text of the header with another value of a field."""
    lines = []
    for line in header.read_text(encoding="utf-8").splitlines(keepends=True):
        match = field_line.match(line.rstrip("\n"))
        lines.append(f"{match.group(1)}{value}{match.group(4)}\n" if match and match.group(2) == field else line)
    return "".join(lines)


def make_variant(build, header, field, value, folder):
    """Compiles the tests' library of kernels with one field changed, and copies it into `folder`."""
    kept = header.read_bytes()
    header.write_text(with_value(header, field, value), encoding="utf-8")
    try:
        subprocess.run(["ninja", "-C", build, library], check=True, stdout=subprocess.DEVNULL)
    finally:
        header.write_bytes(kept)
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(build / library, folder)


def print_tables(folder):
    tree = json.loads((folder / "tree.json").read_text(encoding="utf-8"))
    for field, (value_of_tree, values) in tree.items():
        columns = []
        rows = {}
        for value in values:
            result = folder / f"{field}={value}" / "result.json"
            if not result.exists():
                continue
            columns.append(value + ("*" if value == value_of_tree else ""))
            for run in json.loads(result.read_text(encoding="utf-8"))["benchmarks"]:
                rows.setdefault("/".join(run["name"].split("/")[:3]), []).append(run["real_time"])
        print(f"\n{field:36}" + "".join(f"{column:>9}" for column in columns))
        for name, times in rows.items():
            print(f"{name:36}" + "".join(f"{time:9.1f}" for time in times))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=root / "build")
    parser.add_argument("--pack", type=Path)
    parser.add_argument("--rows")
    parser.add_argument("--sizes", default="8K,1080p")
    parser.add_argument("--tables", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("operation", nargs="?")
    parser.add_argument("fields", nargs="*")
    options = parser.parse_args()
    if options.tables:
        return print_tables(options.tables)
    if not options.operation:
        parser.error("name an operation")
    header = root / "kernels" / options.operation / "cuda_tuning.hpp"
    if not header.exists():
        parser.error(f"{options.operation} has no {header.relative_to(root)}")
    known = fields_of(header)
    wanted = options.fields or list(known)
    for field in wanted:
        if field not in known:
            parser.error(f"{field} is not a field with values to sweep; those are {', '.join(known) or 'none'}")
    build = options.build.resolve()
    folder = (options.pack or build / "sweep" / options.operation).resolve()
    for field in wanted:
        for value in known[field][1]:
            print(f"compiling {field}={value}", file=sys.stderr)
            make_variant(build, header, field, value, folder / f"{field}={value}")
    # The unchanged tree, with the benchmark.
    subprocess.run(["ninja", "-C", build, library, "tests/bench/bench_kernels"], check=True, stdout=subprocess.DEVNULL)
    (folder / "tree.json").write_text(json.dumps({field: known[field] for field in wanted}), encoding="utf-8")
    (folder / "rows").write_text((options.rows or options.operation) + "\n", encoding="utf-8")
    (folder / "run.sh").write_text(run_script, encoding="utf-8")
    (folder / "run.sh").chmod(0o755)
    (folder / "sweep.py").write_text(Path(__file__).read_text(encoding="utf-8"), encoding="utf-8")
    if not options.pack:
        return subprocess.run([folder / "run.sh", build / "tests/bench/bench_kernels",
                               f"--sizes={options.sizes}"]).returncode
    return 0


if __name__ == "__main__":
    sys.exit(main())
