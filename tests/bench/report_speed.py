#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Compares examples/motion-report with decoding alone.

  report_speed.py CLIP… [--rounds=3]

For each clip, in turns: decode it; decode it and run cudadiff (preset=outdoor output=passthrough, no messages); write
its report. Each step is a process, including its start. Python keeps its compiled modules, as for users; the first
round compiles them. Prints the best frames/s of each and its ratio to decoding, and the same for processor time.
GStreamer must find the plugin (GST_PLUGIN_PATH). Exit status 1, with one sentence on stderr, if a step failed."""
import argparse
import os
import pathlib
import re
import resource
import subprocess
import sys
import tempfile
import time

from machine import machine

PROGRAM = pathlib.Path(__file__).resolve().parents[2] / "examples/motion-report/motion_report.py"
DECODE = "gst-launch-1.0", "-q", "uridecodebin", "caps=video/x-raw(ANY)", "expose-all-streams=false"
ELEMENT = ("!", "queue", "!", "cudadiff", "preset=outdoor", "output=passthrough", "post-messages=false",
           "attach-roi=false")


def run(command, compiled):
    """Runs a command; Python keeps compiled modules in the folder `compiled`. Returns its seconds, its processor
    seconds, and its output."""
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": compiled}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True, env=environment)
    if done.returncode != 0:
        sys.exit(f"{command[0]} failed with exit status {done.returncode}")
    seconds, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stdout


def measure(clip, rounds):
    uri, sink = f"uri={pathlib.Path(clip).resolve().as_uri()}", ("!", "fakesink", "sync=false")
    best, frames = {}, 0
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as compiled:
        for _ in range(rounds):
            for name, command in (("decode", [*DECODE, uri, *sink]),
                                  ("decode and cudadiff", [*DECODE, uri, *ELEMENT, *sink]),
                                  ("report", [PROGRAM, f"--clip={clip}", f"--out={folder}"])):
                seconds, used, said = run(command, compiled)
                old = best.get(name, (seconds, used))
                best[name] = min(seconds, old[0]), min(used, old[1])
                if found := re.search(r"^frames +(\d+)$", said, re.M):
                    frames = int(found[1])
    print(f"{clip}, {frames} frames")
    wall, used = best["decode"]
    for name, (seconds, processor) in best.items():
        print(f"  {name:<20}{frames / seconds:7.0f} frames/s, {wall / seconds:5.2f} of decoding; "
              f"processor {processor:6.2f} s, {used / processor:5.2f} of decoding")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("clips", nargs="+")
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    print(machine())
    for clip in args.clips:
        measure(clip, args.rounds)
        sys.stdout.flush()


if __name__ == "__main__":
    main()
