#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Measures the processor time that cudadiff adds to a pipeline on the CPU, compared with the decoder.

  motion_cpu.py CLIP… [--turns=5]

For each clip, it runs `uridecodebin ! fakesink` and the same pipeline with each setting of cudadiff, in turns. Each
pipeline is a process with all processors and threads that GStreamer and OpenCV use. Its time is user and system time
per frame, from the start of the pipeline to the end of stream. The time of the decoder in the same turn is subtracted.
The medians of the turns are printed, with their ratio to the decoder: other work on the machine lengthens both times,
and changes the ratio less. `still` repeats the first frame of the clip, so that nothing moves. If PyPI's dvr-scan is on
PATH, the time of its whole process for the clip follows. GST_PLUGIN_PATH must point to the plugin. Exit status: 0; 1 if
a pipeline failed, with one sentence on stderr; 77 if something is missing.
"""
import argparse
import os
import pathlib
import resource
import shutil
import statistics
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / 'examples'))
try:
    import common
    from common import Gst
except (ImportError, ValueError) as error:
    print(f'skipped: {error}', file=sys.stderr)
    sys.exit(77)
from machine import machine  # noqa: E402

MOTION = 'cudadiff {} output=passthrough attach-roi=false backend=cpu !'
STILL = 'imagefreeze num-buffers={} !'
SETTINGS = ('preset=outdoor', 'preset=indoor', 'reference=mog2', '')


def used(who):
    times = resource.getrusage(who)
    return times.ru_utime + times.ru_stime


def play(clip, between):
    """Plays a clip through elements. Prints the number of frames and the seconds of processor time."""
    pipeline = common.parse(f'{common.DECODER} name=clip ! {between} fakesink name=end sync=false',
                            clip={'uri': common.uri_of(clip)})
    before = used(resource.RUSAGE_SELF)
    pipeline.set_state(Gst.State.PLAYING)
    common.check(pipeline.get_bus().timed_pop_filtered(Gst.CLOCK_TIME_NONE,
                                                       Gst.MessageType.EOS | Gst.MessageType.ERROR))
    frames = pipeline.get_by_name('end').get_property('stats').get_value('rendered')
    pipeline.set_state(Gst.State.NULL)
    print(frames, used(resource.RUSAGE_SELF) - before)


def milliseconds(clip, between=''):
    """The processor time per frame of a pipeline in its own process, and the number of frames."""
    done = subprocess.run([sys.executable, __file__, clip, f'--play={between}'], stdout=subprocess.PIPE, text=True,
                          check=False)
    if done.returncode != 0:
        sys.exit(1)
    frames, seconds = done.stdout.split()
    if int(frames) == 0:
        sys.exit(f'{clip} has no frames')
    return 1000 * float(seconds) / int(frames), int(frames)


def dvr_scan(clip, frames):
    before = used(resource.RUSAGE_CHILDREN)
    done = subprocess.run(['dvr-scan', '--input', clip, '--scan-only', '--quiet'], check=False,
                          stdout=subprocess.DEVNULL)
    if done.returncode != 0:
        sys.exit(f'dvr-scan failed with exit status {done.returncode}')
    return 1000 * (used(resource.RUSAGE_CHILDREN) - before) / frames


def measure(clip, turns):
    decoder, more, scans = [], {}, []
    for _ in range(turns):
        alone, frames = milliseconds(clip)
        decoder.append(alone)
        for setting in SETTINGS:
            more.setdefault(setting or 'defaults', []).append(milliseconds(clip, MOTION.format(setting))[0] - alone)
        still = STILL.format(frames)
        more.setdefault('preset=outdoor, still', []).append(
            milliseconds(clip, still + ' ' + MOTION.format('preset=outdoor'))[0] - milliseconds(clip, still)[0])
        if shutil.which('dvr-scan'):
            scans.append(dvr_scan(clip, frames))
    print(f'{os.path.basename(clip)}, {frames} frames, ms of processor time a frame\n'
          f'  {"decoder":24}{statistics.median(decoder):7.2f}')
    for name, times in more.items():
        ratio = statistics.median(time / alone for time, alone in zip(times, decoder))
        print(f'  {"+ " + name:24}{statistics.median(times):7.2f}  {ratio:.2f} of the decoder')
    if scans:
        print(f'  {"DVR-Scan, all":24}{statistics.median(scans):7.2f}')
    sys.stdout.flush()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('clips', nargs='+', metavar='CLIP')
    parser.add_argument('--turns', default=5, type=int)
    parser.add_argument('--play', metavar='ELEMENTS', help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.turns < 1:
        parser.error('--turns is 1 or more')
    try:
        if args.play is not None:
            return play(args.clips[0], args.play)
        print(f'{machine()}; medians of {args.turns} turns')
        for clip in args.clips:
            measure(clip, args.turns)
        print(f'load after {os.getloadavg()[0]:.1f}')
    except common.Failure as failure:
        sys.exit(str(failure))
    return 0


if __name__ == '__main__':
    sys.exit(main())
