#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Measures the processor time of cudadiff on the CPU backend beside the decoder: user time of a whole process for
each frame.

  motion_cpu.py CLIP… [--runs=N]

For each clip: `filesrc ! decodebin ! fakesink`, and the same with each setting of cudadiff behind the decoder, which is
subtracted. The shortest of N runs counts (3), because other work on the machine makes runs longer, and never shorter.
Processes run on one processor, so that kernels have one thread. Where PyPI's dvr-scan is on PATH, its scan of the clip,
with its own decoder and its start, is beside. The plugin is found with GST_PLUGIN_PATH. Exit status: 0; 1 if a pipeline
failed, with one sentence on stderr; 77 if something is missing.
"""
import argparse
import os
import resource
import shutil
import subprocess
import sys

try:
    import gi
    gi.require_version('Gst', '1.0')
    from gi.repository import Gst
except (ImportError, ValueError) as error:
    print(f'skipped: {error}', file=sys.stderr)
    sys.exit(77)

QUIET = 'output=passthrough attach-roi=false backend=cpu'
SETTINGS = ('preset=outdoor', 'preset=indoor', 'reference=mog2', '')


def play(description):
    """Runs a pipeline that ends with a sink named `end` on one processor; prints frames and user seconds of
    this process."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    Gst.init(None)
    pipeline = Gst.parse_launch(description)
    pipeline.set_state(Gst.State.PLAYING)
    message = pipeline.get_bus().timed_pop_filtered(Gst.CLOCK_TIME_NONE, Gst.MessageType.EOS | Gst.MessageType.ERROR)
    if message.type == Gst.MessageType.ERROR:
        sys.exit(f'{description}: {message.parse_error()[0].message}')
    frames = pipeline.get_by_name('end').get_property('stats').get_value('rendered')
    pipeline.set_state(Gst.State.NULL)
    print(frames, resource.getrusage(resource.RUSAGE_SELF).ru_utime)


def dvr_scan(clip, frames, runs):
    """User time of DVR-Scan for each frame: the shortest of some runs on one processor."""
    shortest = None
    for _ in range(runs):
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        done = subprocess.run(['dvr-scan', '--input', clip, '--scan-only', '--quiet'], check=False,
                              stdout=subprocess.DEVNULL,
                              preexec_fn=lambda: os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}))
        if done.returncode != 0:
            sys.exit(f'dvr-scan failed with exit status {done.returncode}')
        time = 1000 * (resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before) / max(1, frames)
        shortest = time if shortest is None else min(shortest, time)
    return shortest


def milliseconds(description, runs):
    """User time for each frame, and the number of frames: the shortest of some runs, each in a process of its own."""
    shortest = None
    for _ in range(runs):
        done = subprocess.run([sys.executable, __file__, '--play', description], stdout=subprocess.PIPE, text=True,
                              check=False)
        if done.returncode != 0:
            sys.exit(1)
        frames, seconds = done.stdout.split()
        time = 1000 * float(seconds) / max(1, int(frames))
        shortest = time if shortest is None else min(shortest, time)
    return shortest, int(frames)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('clips', nargs='*')
    parser.add_argument('--runs', default=3, type=int)
    parser.add_argument('--play')
    args = parser.parse_args()
    if args.play:
        return play(args.play)
    for clip in args.clips:
        source, sink = f'filesrc location="{clip}" ! decodebin', 'fakesink name=end sync=false'
        decoder, frames = milliseconds(f'{source} ! {sink}', args.runs)
        print(f'{os.path.basename(clip)}: decoder {decoder:.2f} ms of processor time a frame')
        for setting in SETTINGS:
            time = milliseconds(f'{source} ! cudadiff {setting} {QUIET} ! {sink}', args.runs)[0] - decoder
            print(f'  cudadiff {setting or "(defaults)"}: {time:.2f} ms more')
        if shutil.which('dvr-scan'):
            print(f'  DVR-Scan with its decoder: {dvr_scan(clip, frames, args.runs):.2f} ms')
    return 0


if __name__ == '__main__':
    sys.exit(main())
