#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Compares examples/motion-scan with decoding alone, in turns:  motion_scan_rate.py CLIP… [--runs=3]

For each clip, 16 links to it are decoded as in motion-scan: one process per core takes one link after the other, with
one thread each. The same is measured with cudadiff after the decoder. Then motion-scan analyses the same links. Prints
the frames per second of decoding and of the scan, without their start and end, and their ratio; the processor time of
all three, which depends less on other work on the machine, and its ratios; and the seconds of the scan with Ray's start
and end. The best of RUNS counts. Run it with a Python that has Ray, see examples/motion-scan/README.md. GST_PLUGIN_PATH
must point to the plugin. Exit status: 0; 1 if something failed; 77 if something is missing.
"""
import argparse
import importlib.util
import os
import pathlib
import re
import resource
import subprocess
import sys
import tempfile
import time

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / 'examples'
sys.path.insert(0, str(EXAMPLES))
try:
    import common
    from common import Gst
except (ImportError, ValueError) as error:
    print(f'skipped: {error}', file=sys.stderr)
    sys.exit(77)
from machine import machine  # noqa: E402


def use_one_thread(_, __, element):
    if element.get_factory().get_name().startswith('avdec_') and element.find_property('max-threads'):
        element.set_property('max-threads', 1)


# The cudadiff of motion-scan. All other work of a scan shows as the difference from its rate.
MOTION = 'cudadiff preset=outdoor output=passthrough attach-roi=false gap=1 message-interval=1000000000 backend=cpu !'


def decode(clips, behind):
    """Decodes clips, with the elements `behind`. Prints the start and end times, the frames, and the seconds of
    processor time."""
    began, frames = None, 0
    for clip in clips:
        pipeline = common.parse(f'{common.DECODER} name=clip ! {behind} fakesink name=end sync=false',
                                clip={'uri': pathlib.Path(clip).absolute().as_uri()})
        pipeline.get_by_name('clip').connect('deep-element-added', use_one_thread)
        began = began or time.monotonic()
        pipeline.set_state(Gst.State.PLAYING)
        common.check(pipeline.get_bus().timed_pop_filtered(Gst.CLOCK_TIME_NONE,
                                                           Gst.MessageType.EOS | Gst.MessageType.ERROR))
        frames += pipeline.get_by_name('end').get_property('stats').get_value('rendered')
        pipeline.set_state(Gst.State.NULL)
    used = resource.getrusage(resource.RUSAGE_SELF)
    print(began, time.monotonic(), frames, used.ru_utime + used.ru_stime)


def decode_rate(clips, behind=''):
    """Frames per second of decoding with the elements `behind`, and milliseconds of processor time per frame."""
    cores = len(os.sched_getaffinity(0))
    processes = [subprocess.Popen([sys.executable, __file__, f'--decode={behind}', *clips[core::cores]],
                                  stdout=subprocess.PIPE, text=True, env={**os.environ, 'OPENCV_FOR_THREADS_NUM': '1'})
                 for core in range(min(cores, len(clips)))]
    rows = [tuple(map(float, process.communicate()[0].split())) for process in processes]
    frames = sum(row[2] for row in rows)
    return (frames / (max(row[1] for row in rows) - min(row[0] for row in rows)),
            1000 * sum(row[3] for row in rows) / frames)


def scan_rate(clips):
    """Frames per second of the scan, milliseconds of processor time per frame, and its seconds including the start."""
    import pyarrow.parquet
    with tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        said = subprocess.run([sys.executable, str(EXAMPLES / 'motion-scan' / 'motion-scan'), *clips, f'--out={folder}',
                               '--backend=cpu'], check=True, stdout=subprocess.PIPE, text=True).stdout
        seconds = time.monotonic() - began
        rows = pyarrow.parquet.read_table(f'{folder}/clips.parquet').to_pylist()
    speed = float(re.search(r'video, (\S+) times real time', said)[1])
    frames, duration, used = (sum(row[key] for row in rows) for key in ('frames', 'duration', 'cpu_seconds'))
    return speed * frames / duration, 1000 * used / frames, seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('clips', nargs='+')
    parser.add_argument('--runs', type=int, default=3)
    parser.add_argument('--decode', metavar='ELEMENTS', help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.decode is not None:
        decode(args.clips, args.decode)
        return
    if not importlib.util.find_spec('ray'):
        print('skipped: no Ray', file=sys.stderr)
        sys.exit(77)
    print(machine())
    for clip in args.clips:
        with tempfile.TemporaryDirectory() as folder:
            links = [os.path.join(folder, f'{number}{pathlib.Path(clip).suffix}') for number in range(16)]
            for link in links:
                os.symlink(os.path.abspath(clip), link)
            alone, motion, scans = [], [], []
            for _ in range(args.runs):
                alone.append(decode_rate(links))
                motion.append(decode_rate(links, MOTION))
                scans.append(scan_rate(links))
        rate, used, seconds = max(scans)
        print(f'{pathlib.Path(clip).name}: decoding alone {max(alone)[0]:.0f} frames/s, the scan {rate:.0f} frames/s: '
              f'{rate / max(alone)[0]:.2f}. Processor time in ms a frame: decoding {max(alone)[1]:.2f}, '
              'decoding and cudadiff '
              f'{max(motion)[1]:.2f}, the scan {used:.2f}: {max(alone)[1] / used:.2f} and {max(motion)[1] / used:.2f}. '
              f'{seconds:.1f} s with the start and end of Ray. All runs: '
              + ', '.join(f'{scan[0]:.0f} of {one[0]:.0f}' for one, scan in zip(alone, scans)))


if __name__ == '__main__':
    main()
