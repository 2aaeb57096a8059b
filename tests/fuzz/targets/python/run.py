#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs a Python target:
  run.py TARGET --replay FILE|FOLDER…             each file is a case; without a fuzzing engine
  run.py TARGET --coverage FILE|FOLDER…           the same, and prints the share of executed lines of the targeted files
  run.py TARGET --minimise OUT FILE|FOLDER…       copies to the folder OUT the smallest cases that together execute all
                                                  steps between lines
  run.py TARGET [OPTION OF LIBFUZZER…] FOLDER…    fuzzing with atheris (https://pypi.org/project/atheris)
TARGET: arrays, configuration, lists or results. Exit status: 0; 1 after a failure (libFuzzer has its own); 77 if a
requirement of the target is missing."""
import ast
import hashlib
import importlib.util
import pathlib
import sys
import types

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[3]
FOLDERS = {"arrays": "examples", "configuration": "examples/motion-alarm-service", "lists": "examples/motion-scan",
           "results": "examples/motion-scan"}


def load(name):
    """The module of a target. The folder of the targets is searched last, because other modules have the same names."""
    sys.path[:0] = [str(ROOT / FOLDERS[name]), str(ROOT / "examples"), str(ROOT / "gst/python")]
    sys.path.append(str(HERE))
    try:
        spec = importlib.util.spec_from_file_location(f"target_{name}", HERE / f"{name}.py")
        target = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(target)
    except (ImportError, ValueError) as error:
        print(f"skipped: {error}")
        sys.exit(77)
    return target


def files_of(names):
    """The named files, and the files in the named folders."""
    paths = [pathlib.Path(name).resolve() for name in names]
    return [file for path in paths for file in (sorted(path.iterdir()) if path.is_dir() else [path])]


def lines_of(code):
    """The numbers of all executable lines of a module."""
    found = {line for _, _, line in code.co_lines() if line}
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            found |= lines_of(constant)
    return found


class Coverage:
    """Records the executed lines of some files, and the steps between lines."""

    def __init__(self, target):
        source = (HERE / f"{target}.py").read_text()
        listed = next(line for line in source.splitlines() if line.startswith("FILES = "))
        self.hit = {str(ROOT / file): set() for file in ast.literal_eval(listed.removeprefix("FILES = "))}
        self.before = 0

    def trace(self, frame, event, _):
        seen = self.hit.get(frame.f_code.co_filename)
        if seen is None:
            return None
        seen.add((self.before, frame.f_lineno))
        self.before = frame.f_lineno
        return self.trace

    def steps(self):
        return {(file, *step) for file, seen in self.hit.items() for step in seen}

    def report(self):
        for file, seen in self.hit.items():
            every = lines_of(compile(pathlib.Path(file).read_bytes(), file, "exec"))
            run = every & {line for _, line in seen}
            print(f"{pathlib.Path(file).relative_to(ROOT)!s:<44}{len(every):>8}{len(run):>8}"
                  f"{100 * len(run) / len(every):>9.1f} %")


def replay(target, names):
    files = files_of(names)
    for file in files:
        print(file, file=sys.stderr, flush=True)
        target.one_input(file.read_bytes())
    print(f"{len(files)} passed, 0 failed, 0 skipped")
    return not files


def minimise(name, out, files):
    target, coverage = load(name), Coverage(name)
    for file in sorted(files, key=lambda file: (file.stat().st_size, file.name)):
        data, before = file.read_bytes(), coverage.steps()
        coverage.before = 0
        sys.settrace(coverage.trace)
        target.one_input(data)
        sys.settrace(None)
        if coverage.steps() > before:
            (out / hashlib.sha1(data).hexdigest()).write_bytes(data)


def main():
    name, *arguments = sys.argv[1:] or [""]
    if name not in FOLDERS:
        sys.exit(__doc__)
    if arguments[:1] == ["--replay"]:
        sys.exit(replay(load(name), arguments[1:]))
    if arguments[:1] == ["--coverage"]:
        coverage = Coverage(name)
        sys.settrace(coverage.trace)  # before the import, so that definitions count
        status = replay(load(name), arguments[1:])
        sys.settrace(None)
        coverage.report()
        sys.exit(status)
    if arguments[:1] == ["--minimise"]:
        minimise(name, pathlib.Path(arguments[1]), files_of(arguments[2:]))
        sys.exit(0)
    try:
        import atheris
    except ImportError as error:
        print(f"skipped: {error}")
        sys.exit(77)
    with atheris.instrument_imports(include=["config", "tomllib", "clips", "uris", "tables", "page", "common",
                                             "cudavision"]):
        target = load(name)
    atheris.instrument_func(target.one_input)
    atheris.Setup([sys.argv[0], *arguments], target.one_input)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
