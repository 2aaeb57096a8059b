#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Measures the frames per second of whole pipelines, and the cost of the elements in them.

The cost is the time of a pipeline minus the time of the same pipeline without the element. Both run in turns A B A B,
and the medians count. Needs gst-launch-1.0 and gst-inspect-1.0. The rows of start and latency also need the program
pipeline_timing.

  bench_pipelines.py [--backend=cuda|cpu] [--plugin=DIR] [--frames=N] [--turns=N] [--json=FILE] [--clip=FILE.mp4]
                     [--only=REGEX] [--timing=PROGRAM] [--check]

The source is one picture that imagefreeze repeats, so that the pipelines measure the elements and not videotestsrc. On
CUDA, an element of the plugin first puts this picture into the memory that a neighbour would use: pinned system memory
or CUDA memory. Rows named "pageable" skip this: their frames use the same ordinary memory repeatedly, like a pool.

Elements run with their defaults, except for the settings in the name of a row.

Rows "scan, N at a time" decode a --clip N times in one process, with and without the elements that motion-scan puts
after each decoder. On CUDA nvh264dec decodes, on the CPU avdec_h264.

The row "identity, the host alone" is a chain of GStreamer's element that does nothing. It measures the host alone, so
it makes the figures of two hosts comparable: a row of elements in CUDA memory shows how many identity elements each of
them costs, if both rows were measured in the same run (--only='identity|difference').

A row with a limit shows the measured value, `must` and `aim`, and whether they are reached.

The peers are GStreamer's own elements, measured in the same turns where they exist. cudaconvertscale converts NV12 from
1920×1080 to 1904×1072, so that it is not in passthrough mode and computes about as many samples as it reads. When
nvcodec starts, it compiles the kernels of cudaconvertscale and cudacompositor, and registers these elements only with
an NVRTC of CUDA 12 (not 13). If the host has none, PyPI's wheel nvidia-cuda-nvrtc-cu12 contains one (unzip it): add its
folder nvidia/cuda_nvrtc/lib to LD_LIBRARY_PATH and set GST_CUDA_NVRTC_LIBNAME=libnvrtc.so.12.
--check measures nothing: it only checks that each element has a case.
Exit status: 0; 1 if a pipeline failed, an element has no case, or nothing was measured; 77 if elements are missing.
"""
import argparse
import dataclasses
import functools
import json
import os
import re
import shlex
import statistics
import subprocess
import sys

from machine import machine

PCIE_BYTES_PER_SECOND = 55e9  # one direction, pinned (16 lanes of PCIe 5)
CUDA = 'video/x-raw(memory:CUDAMemory)'
SYSTEM = 'video/x-raw'


@dataclasses.dataclass
class Mark:
    """A limit on the GPU for one number of a row."""
    number: str              # key of a row
    must: float
    aim: float = None        # None: until the GPU is full
    more: bool = True        # whether more is better

    def ratio(self, value):
        """1 if the value is exactly the limit; more is better."""
        return value / self.must if self.more else self.must / value if value > 0 else float('inf')

    def verdict(self, value):
        aim_reached = self.aim is not None and (value >= self.aim if self.more else value <= self.aim)
        return 'aim reached' if aim_reached else 'must reached' if self.ratio(value) >= 1 else 'missed'


@dataclasses.dataclass
class Case:
    """Elements in one kind of memory, at 1080p. `{b}` stands for the backend."""
    name: str
    format: str
    memory: str
    elements: list
    backends: tuple = ('cuda',)
    peer: str = ''           # elements that do the same work; they are measured in the same turns
    side_by_side: int = 1    # pipelines in one process
    source: str = ''         # replaces the still picture; nothing is subtracted
    pads: int = 0            # number of still pictures for one mixer, the only element; nothing is subtracted
    mark: Mark = None
    # Puts the still picture into the memory on CUDA. Empty: no element does this.
    loader: str = 'cudagaussian kernel-size=3 backend=cuda ! {memory}'
    like: str = ''           # a row with the same format, whose rate this row must reach
    # Whether to measure the source alone in the same turns, and which share of its rate is left.
    shares: bool = False

    def pipeline(self, backend, frames, elements):
        loader = f'! {self.loader} '.format(memory=self.memory) if backend == 'cuda' and self.loader else ''
        source = (self.source
                  or (f'videotestsrc num-buffers=1 pattern=snow ! {SYSTEM},format={self.format},{SIZE},'
                      f'framerate=60/1 {loader}! imagefreeze num-buffers={frames}'))
        if self.pads:
            head, *output = elements[0].format(b=backend).split(' ! ')
            output = ''.join(f'! {self.memory},{caps} ' for caps in output)
            return f'{head} name=mixer {output}! fakesink sync=false ' + f'{source} ! mixer. ' * self.pads
        chain = ''.join(f'! {element} ' for element in elements).format(b=backend)
        # One caps filter after another is an error.
        memory = '' if elements and '/' in elements[-1].split(' ! ')[-1] else f'! {self.memory} '
        return f'{source} {chain}{memory}! fakesink sync=false ' * self.side_by_side

    def lacking(self, backend):
        """What the pipeline needs and does not exist here, or None; see lacking()."""
        loader = self.loader.format(memory=self.memory) if backend == 'cuda' else ''
        chains = [self.source, loader, *(element.format(b=backend) for element in self.elements)]
        return next(filter(None, map(lacking, filter(None, chains))), None)


GAUSSIAN = 'cudagaussian kernel-size=5 backend={b}'
SHARPEN = 'cudaconvolve preset=sharpen backend={b}'
MOTION = 'cudadiff output=passthrough attach-roi=false backend={b}'
OVER = 'cudablend sink_1::alpha=0.5 backend={b}'
ODD, SIZE = 'sink_1::xpos=101 sink_1::ypos=51 sink_1::alpha=0.5', 'width=1920,height=1080'
CONVERT = f'cudaconvertscale add-borders=false ! {CUDA},width=1904,height=1072'
ROUND_TRIP = f'cudaupload ! {CUDA} ! cudadownload'  # without the caps, frames would stay in system memory
RATE = 'rate_of_element'     # frames per second of the element alone
RESULTS = Mark('us_per_frame', 15, 8, more=False)
CHAIN = Mark('us_per_element', 8, 5, more=False)
PCIE = Mark('pcie_share', 0.8, 0.9)
PAGEABLE = Mark('peer_over_ours', 1.5, 2.5)
SHARE = Mark('share_of_source', 0.6, 0.85)
# The elements that examples/motion-scan puts after a decoder.
SCAN = ['cudahistogram post-messages=false backend={b}',
        'cudadiff preset=outdoor output=passthrough attach-roi=false gap=1 message-interval=1000000000 backend={b}']
IDENTITY = 'identity, the host alone'
CASES = [
    Case(IDENTITY, 'NV12', CUDA, ['identity'] * 16),
    Case(IDENTITY, 'NV12', SYSTEM, ['identity'] * 16, ('cpu',)),
    Case('gaussian-5 system', 'RGBA', SYSTEM, [GAUSSIAN], mark=PCIE),
    Case('gaussian-5 system, async-depth=2', 'RGBA', SYSTEM, [GAUSSIAN + ' async-depth=2'], mark=PCIE),
    Case('gaussian-5 pageable', 'RGBA', SYSTEM, [GAUSSIAN], peer=ROUND_TRIP, loader='', mark=PAGEABLE),
    Case('gaussian-5 pageable, async-depth=2', 'RGBA', SYSTEM, [GAUSSIAN + ' async-depth=2'], peer=ROUND_TRIP,
         loader='', mark=PAGEABLE),
    Case('sharpen system', 'RGBA', SYSTEM, [SHARPEN]),
    Case('gaussian-5', 'NV12', CUDA, [GAUSSIAN], peer=CONVERT, mark=Mark(RATE, 120e3, 200e3)),
    Case('gaussian-31', 'NV12', CUDA, ['cudagaussian kernel-size=31 backend={b}']),
    Case('sharpen', 'NV12', CUDA, [SHARPEN], peer=CONVERT),
    Case('difference', 'NV12', CUDA, ['cudadiff backend={b}']),
    Case('difference, no opening, no metas', 'NV12', CUDA, ['cudadiff open-radius=0 attach-roi=false backend={b}'],
         mark=RESULTS),
    Case('motion, no metas, frames pass', 'NV12', CUDA, [MOTION], mark=RESULTS),
    Case('motion, frames pass', 'NV12', CUDA, ['cudadiff output=passthrough backend={b}'], mark=RESULTS),
    # "Everything on" costs at most twice as much as the difference.
    Case('preset=outdoor, frames pass', 'NV12', CUDA, ['cudadiff preset=outdoor output=passthrough backend={b}'],
         mark=Mark('us_per_frame', 30, 15, more=False)),
    Case('histogram, frames pass', 'NV12', CUDA, ['cudahistogram backend={b}'], mark=RESULTS),
    Case('camera watch, no messages, frames pass', 'NV12', CUDA,
         ['cudahistogram watch=true post-messages=false backend={b}'], mark=RESULTS),
    Case('histogram in metas', 'NV12', CUDA, ['cudahistogram add-meta=true backend={b}'], mark=RESULTS),
    Case('threshold', 'NV12', CUDA, ['cudaintegral output=threshold backend={b}']),
    Case('chain of 4', 'NV12', CUDA, [GAUSSIAN, SHARPEN, GAUSSIAN, SHARPEN], mark=CHAIN),
    Case('chain of 4, 16 side by side', 'NV12', CUDA, [GAUSSIAN, SHARPEN, GAUSSIAN, SHARPEN], side_by_side=16),
    Case('gaussian-5', 'RGB', SYSTEM, [GAUSSIAN], ('cpu',), 'cvsmooth type=gaussian kernel-width=5 kernel-height=5'),
    Case('gaussian-15', 'RGB', SYSTEM, ['cudagaussian kernel-size=15 backend={b}'], ('cpu',),
         'cvsmooth type=gaussian kernel-width=15 kernel-height=15'),
    Case('sobel-x', 'RGB', SYSTEM, ['cudaconvolve preset=sobel-x absolute=true backend={b}'], ('cpu',),
         'cvsobel x-order=1 y-order=0 aperture-size=3 mask=false'),
    Case('gaussian-5', 'NV12', SYSTEM, [GAUSSIAN], ('cpu',)),
    Case('over, 2 pads', 'NV12', CUDA, [OVER], peer='cudacompositor sink_1::alpha=0.5', pads=2, mark=Mark('fps', 80e3)),
    Case('over, 2 pads', 'RGBA', CUDA, [OVER], peer='cudacompositor sink_1::alpha=0.5', pads=2, mark=Mark('fps', 40e3)),
    Case('over, 2 pads, caps left open', 'NV12', CUDA, [OVER], pads=2, loader='cudaupload', like='over, 2 pads'),
    Case('over, 2 pads, caps left open', 'RGBA', CUDA, [OVER], pads=2, loader='cudaupload', like='over, 2 pads'),
    Case('16 pads in one place', 'NV12', CUDA, ['cudablend backend={b} ! width=1920,height=1080'], pads=16,
         peer='cudacompositor ! width=1920,height=1080', mark=Mark('fps', 15e3)),
    Case('16 pads in one place', 'RGBA', CUDA, ['cudablend backend={b} ! width=1920,height=1080'], pads=16,
         peer='cudacompositor ! width=1920,height=1080', mark=Mark('fps', 15e3)),
    Case('wall of 36 in 4K', 'NV12', CUDA, ['cudablend layout=grid backend={b} ! width=3840,height=2160'], pads=36),
    Case('over, 2 pads', 'RGBA', SYSTEM, ['cudablend sink_1::alpha=0.5 backend={b}'], ('cpu',),
         'compositor sink_1::alpha=0.5', pads=2),
    Case('over, 3 pads', 'RGBA', SYSTEM, ['cudablend sink_1::alpha=0.5 sink_2::alpha=0.7 backend={b}'], ('cpu',),
         'compositor sink_1::alpha=0.5 sink_2::alpha=0.7', pads=3),
    Case('over, 2 pads', 'NV12', SYSTEM, ['cudablend sink_1::alpha=0.5 backend={b}'], ('cpu',),
         'compositor sink_1::alpha=0.5', pads=2),
    *(Case('over, pad at an odd place', format, SYSTEM, [f'cudablend {ODD} backend={{b}} ! {SIZE}'], ('cpu',),
           f'compositor {ODD} ! {SIZE}', pads=2)
      for format in ('NV12', 'I420', 'RGBA')),
    # videodiff outputs luma where anything changed. It neither counts pixels nor applies a threshold.
    Case('difference of luma, no opening, no metas, no messages', 'I420', SYSTEM,
         ['cudadiff luma-only=true open-radius=0 attach-roi=false post-messages=false backend={b}'], ('cpu',),
         'videodiff'),
    Case('equalize, no messages', 'GRAY8', SYSTEM, ['cudahistogram equalize=true post-messages=false backend={b}'],
         ('cpu',), 'cvequalizehist'),
]


def cases_of(clip, backend):
    """The cases that decode an MP4 file with H.264."""
    decoder, pixels, memory = ('nvh264dec', 'NV12', CUDA) if backend == 'cuda' else ('avdec_h264', 'I420', SYSTEM)
    source = f'filesrc {shlex.quote("location=" + clip)} ! qtdemux ! h264parse ! {decoder}'
    name = f'decode {os.path.basename(clip)}'
    behind = [('', []), (', blur, sharpen', [GAUSSIAN, SHARPEN]), (', motion, no metas', [MOTION])]
    scans = [(f', scan, {count} at a time', count) for count in (1, 4, 16)]
    return [*(Case(name + suffix, pixels, memory, elements, (backend,), source=source) for suffix, elements in behind),
            *(Case(name + suffix, pixels, memory, SCAN, (backend,), source=source, side_by_side=count, shares=True,
                   mark=SHARE) for suffix, count in scans)]


class Failed(Exception):
    """An error message of gst-launch-1.0."""


def unlisted():
    """The elements of the plugin that no case uses, or whose start is not measured."""
    inspected = subprocess.run(['gst-inspect-1.0', 'cudavision'], capture_output=True, text=True,
                               env={**os.environ, 'LC_ALL': 'C'})
    used = {word for case in CASES for element in case.elements for word in element.split()}
    used &= {element.split()[0] for element in STARTING}
    return [name for name in re.findall(r'^  (cuda\w+):', inspected.stdout, re.MULTILINE) if name not in used]


@functools.lru_cache(maxsize=None)
def has(element):
    return (subprocess.run(['gst-inspect-1.0', '--exists', '--atleast-version=0.0', element],
                           stdout=subprocess.DEVNULL).returncode == 0)


def lacking(chain):
    """The first element of a chain that does not exist here; None if all do."""
    elements = (part.split()[0] for part in chain.split(' ! '))
    return next((element for element in elements if '=' not in element and '/' not in element  # these are caps
                 and not has(element)), None)


def seconds(case, backend, frames, elements):
    """The seconds from PLAYING to end of stream, without the start, as gst-launch-1.0 prints them."""
    limit = 120 if backend == 'cuda' else 120 * case.side_by_side
    pipeline = case.pipeline(backend, frames, elements)
    try:
        done = subprocess.run(['gst-launch-1.0', *shlex.split(pipeline)], capture_output=True, text=True,
                              timeout=limit, env={**os.environ, 'LC_ALL': 'C'})
    except subprocess.TimeoutExpired:
        raise Failed(f'no end of stream in {limit} s') from None
    ended = re.search(r'Execution ended after (\d+):(\d+):([\d.]+)', done.stdout)
    if done.returncode != 0 or not ended:
        lines = ([line for line in (done.stderr + done.stdout).splitlines() if re.search('ERROR|erroneous', line)]
                 or ['no end of stream'])
        raise Failed(lines[0].strip())
    hours, minutes, rest = ended.groups()
    return int(hours) * 3600 + int(minutes) * 60 + float(rest)


def frames_enough(case, backend, least):
    """The number of frames, at least `least`, with which the pipeline takes more than half a second."""
    if case.source:
        return least  # the clip decides
    taken = seconds(case, backend, least, case.elements)
    return least * max(1, min(100, round(0.7 / max(taken, 0.001))))


def measure(case, backend, frames, turns):
    """The medians of all turns, as a dictionary for the JSON file. `frames`: per pipeline; None: enough of them."""
    frames = frames or frames_enough(case, backend, 2000 if backend == 'cuda' else 100)
    variants = {'with': case.elements}
    if case.shares or not (case.source or case.pads):
        variants['without'] = []
    if case.peer and not lacking(case.peer):
        variants['peer'] = [case.peer]
    times = {variant: [] for variant in variants}
    for _ in range(turns):
        for variant, elements in variants.items():
            times[variant].append(seconds(case, backend, frames, elements))
    medians = {variant: statistics.median(values) for variant, values in times.items()}
    total = frames * case.side_by_side
    row = {'name': case.name, 'format': case.format, 'memory': case.memory, 'backend': backend, 'frames': total,
           'pipeline': case.pipeline(backend, frames, case.elements), 'seconds': times,
           'fps': total / medians['with']}
    if case.shares:
        row['share_of_source'] = medians['without'] / medians['with']
    elif 'without' in medians:
        cost = {variant: (median - medians['without']) / total * 1e6 for variant, median in medians.items()}
        row['fps_without'] = total / medians['without']
        row['us_per_frame'] = cost['with']
        row['us_per_element'] = cost['with'] / len(case.elements)
        if cost['with'] > 0:
            row[RATE] = 1e6 / cost['with']
        if 'peer' in cost:
            row['peer_us_per_frame'] = cost['peer']
            row['peer_over_ours'] = cost['peer'] / cost['with'] if cost['with'] > 0 else None
    elif 'peer' in medians:
        row['peer_fps'] = total / medians['peer']
        row['peer_over_ours'] = medians['peer'] / medians['with']
    if backend == 'cuda' and case.memory == SYSTEM and case.format == 'RGBA' and case.loader:
        row['pcie_share'] = row['fps'] * 1920 * 1080 * 4 / PCIE_BYTES_PER_SECOND
    return row


def judge(row, mark):
    """Adds the limit and the distance from it to the row. Returns a remark."""
    value = row.get(mark.number)
    if value is None:
        return None
    row['mark'] = {'number': mark.number, 'value': value, 'must': mark.must, 'aim': mark.aim,
                   'ratio': mark.ratio(value), 'verdict': mark.verdict(value)}
    aim = '' if mark.aim is None else f', aim {mark.aim:g}'
    return f'{mark.number} {value:.4g} (must {mark.must:g}{aim}): {mark.verdict(value)}'


def remarks(row, case, done):
    if 'pcie_share' in row:
        yield f"{row['pcie_share']:.0%} of PCIe"
    if row.get('peer_over_ours'):
        yield f"{case.peer.split()[0]} ÷ ours {row['peer_over_ours']:.2f}"
    elif case.peer:
        yield f'no {lacking(case.peer) or case.peer} here'
    host = next((other for other in done if other['name'] == IDENTITY), None)
    if case.memory == CUDA and host and host['us_per_element'] > 0 and 'us_per_element' in row:
        row['over_identity'] = row['us_per_element'] / host['us_per_element']
        yield f"{row['over_identity']:.1f} × identity"
    if case.side_by_side > 1:
        alone = next((other for other in done if case.name.startswith(other['name'] + ',')), None)
        if alone:
            row['over_alone'] = row['fps'] / alone['fps']
            yield f"{row['over_alone']:.2f} of one pipeline's rate"
    mark = case.mark
    if case.like:
        other = next((other for other in done if (other['name'], other['format']) == (case.like, case.format)), None)
        mark = other and Mark('fps', 0.95 * other['fps'])  # runs differ by a few percent
    if mark and row['backend'] == 'cuda':
        yield judge(row, mark)


# Start and latency ----------------------------------------------------------------------------------------------------

START = Mark('ms', 50, 20, more=False)
STARTING = ['cudablend', 'cudaconvolve preset=sharpen', 'cudadiff', 'cudagaussian', 'cudahistogram',
            'cudaintegral output=threshold']


def timing(program, runs, pipeline):
    """What pipeline_timing prints."""
    try:
        done = subprocess.run([program, '--runs', str(runs), *pipeline.split()], capture_output=True, text=True,
                              timeout=180, env={**os.environ, 'LC_ALL': 'C'})
    except subprocess.TimeoutExpired:
        raise Failed('no end of stream in 180 s') from None
    if done.returncode != 0:
        raise Failed((done.stderr.splitlines() or ['no output'])[0])
    return json.loads(done.stdout)


def measure_start(program, backend, turns, element):
    """Milliseconds from NULL to the first frame that an element adds: for the first element of its kind in a process,
    for each other one, and when the same pipeline restarts in the process. The first pipeline without the element
    includes the start of CUDA, if cudaupload exists."""
    memory = CUDA if backend == 'cuda' else SYSTEM
    upload = f'! cudaupload ! {CUDA} ' if backend == 'cuda' and has('cudaupload') else ''

    def pipeline(count):
        chain = f'! {element} backend={backend} ! {memory} ' * count
        return (f'videotestsrc num-buffers=1 ! {SYSTEM},format=NV12,width=1920,height=1080 {upload}{chain}! '
                'fakesink name=last')
    times = {count: [timing(program, 2, pipeline(count))['first_ms'] for _ in range(turns)] for count in (0, 1, 5)}
    first, again = ({count: statistics.median(turn[run] for turn in times[count]) for count in times} for run in (0, 1))
    row = {'name': f'start of {element.split()[0]}', 'format': 'NV12', 'memory': memory, 'backend': backend,
           'first_ms': times, 'ms_further': (first[5] - first[1]) / 4, 'ms_again': again[1] - again[0],
           'ms_without': first[0]}
    if upload or backend == 'cpu':
        row['ms'] = first[1] - first[0]
    return row


def print_start(row):
    alone = f"{row['ms']:6.1f} ms" if 'ms' in row else '   (no cudaupload)'
    judged = judge(row, START) if row['backend'] == 'cuda' else None
    print(f"{row['name']:34} first {alone}, each further one {row['ms_further']:6.1f} ms, again in the process "
          f"{row['ms_again']:6.1f} ms; "
          f"without it {row['ms_without']:.0f} ms" + (f', {judged}' if judged else ''), flush=True)


LATENCY = [('gaussian-5 system', 'RGBA', SYSTEM, GAUSSIAN),
           ('gaussian-5 system, async-depth=2', 'RGBA', SYSTEM, GAUSSIAN + ' async-depth=2'),
           ('gaussian-5', 'NV12', CUDA, GAUSSIAN),
           ('motion in metas', 'NV12', CUDA, 'cudadiff output=passthrough backend={b}'),
           ('motion in metas, async-depth=2', 'NV12', CUDA, 'cudadiff output=passthrough async-depth=2 backend={b}')]


def measure_latency(program, backend, turns, name, pixels, memory, element):
    """Microseconds from a frame's entry into the element to its exit, in a live pipeline of 60 frames per second."""
    loader = f'! cudagaussian kernel-size=3 backend=cuda ! {memory} ' if backend == 'cuda' else ''
    pipeline = ('videotestsrc is-live=true num-buffers=90 ! '
                f'{SYSTEM},format={pixels},width=1920,height=1080,framerate=60/1 {loader}'
                f'! {element} name=timed ! {memory} ! fakesink name=last sync=true').format(b=backend)
    found = [timing(program, 1, pipeline)['latency_us'] for _ in range(turns)]
    return {'name': f'latency of {name}', 'format': pixels, 'memory': memory, 'backend': backend,
            **{f'latency_us_{key}': statistics.median(turn[key] for turn in found) for key in ('median', 'p99')}}


def print_latency(row):
    print(f"{row['name']:46} {row['format']:4} median {row['latency_us_median']:7.0f} µs, "
          f"99 % within {row['latency_us_p99']:7.0f} µs", flush=True)


def starts_and_latencies(program, backend, turns, only):
    """Measures and prints these rows. Returns them and the number of failures."""
    jobs = [(f'start of {element.split()[0]}', element, measure_start, print_start, (element,)) for element in STARTING]
    jobs += [(f'latency of {case[0]}', case[3], measure_latency, print_latency, case)
             for case in LATENCY if backend == 'cuda' or case[2] == SYSTEM]
    rows, failures = [], 0
    for name, chain, measured, printed, arguments in jobs:
        if not re.search(only, name):
            continue
        if lacking(chain):
            print(f'skipped: {name}: no {lacking(chain)} here')
            continue
        try:
            rows.append(measured(program, backend, turns, *arguments))
            printed(rows[-1])
        except Failed as failure:
            failures += 1
            rows.append({'name': name, 'backend': backend, 'error': str(failure)})
            print(f'{name} FAILED: {failure}', flush=True)
    return rows, failures


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--backend', choices=['cuda', 'cpu'], default='cuda')
    parser.add_argument('--plugin', help='folder of libgstcudavision.so')
    parser.add_argument('--frames', type=int, help='frames in each pipeline (enough for half a second, '
                        'at least 2000 on CUDA and 100 on the CPU)')
    parser.add_argument('--turns', type=int, default=3)
    parser.add_argument('--json', help='file to write')
    parser.add_argument('--clip', action='append', default=[],
                        help='an MP4 file with H.264; may be given several times')
    parser.add_argument('--timing', default=os.path.join(os.path.dirname(os.path.abspath(__file__)), 'pipeline_timing'),
                        help='the program pipeline_timing, for the rows of start and latency (beside this script)')
    parser.add_argument('--only', default='', help='a regular expression for the names of the cases to run')
    parser.add_argument('--check', action='store_true', help='only check that each element has a case')
    options = parser.parse_args()
    if options.plugin:
        os.environ['GST_PLUGIN_PATH_1_0'] = os.path.abspath(options.plugin)
    missing = [element for element in ('cudagaussian', 'cudaconvolve', 'imagefreeze', 'videotestsrc')
               if not has(element)]
    if missing:
        print('skipped: no element', ', '.join(missing))
        return 77
    for element in unlisted():
        print(f'{element} is missing in CASES or STARTING of bench_pipelines.py')
        return 1
    if options.check:
        return 0

    cases = [case for case in CASES if options.backend in case.backends]
    cases += [case for clip in options.clip for case in cases_of(clip, options.backend)]
    failures, rows = 0, []
    here = machine()
    print(f"# {options.backend}, 1080p, medians of {options.turns} turns; {here}\n"
          f"{'':61} {'memory':6} {'fps':>8} {'without':>9} {'µs/frame':>9} {'µs/element':>10}")
    for case in cases:
        if not re.search(options.only, case.name):
            continue
        missing = case.lacking(options.backend)
        if missing:
            print(f'skipped: {case.name}: no {missing} here')
            continue
        label = f"{case.name:56} {case.format:4} {'cuda' if case.memory == CUDA else 'system':6}"
        try:
            row = measure(case, options.backend, options.frames, options.turns)
        except Failed as failure:
            failures += 1
            rows.append({'name': case.name, 'backend': options.backend, 'error': str(failure)})
            print(f"{label} FAILED: {failure}", flush=True)
            continue
        if case.source:  # the clip's number of frames is unknown, so there is no rate
            line = f"{statistics.median(row['seconds']['with']):8.3f} s for the clip" + 's' * (case.side_by_side > 1)
            if case.shares:
                line += f", {statistics.median(row['seconds']['without']):.3f} s decoding alone"
            del row['fps'], row['frames']
        elif case.pads:
            line = f"{row['fps']:8.0f} {'':9} {1e6 / row['fps']:9.1f} {'':10}"
        else:
            line = (
                f"{row['fps']:8.0f} {row['fps_without']:9.0f} {row['us_per_frame']:9.1f} {row['us_per_element']:10.1f}")
        print(' '.join([label, line, ', '.join(
            filter(None, remarks(row, case, [r for r in rows if 'fps' in r])))]).rstrip(), flush=True)
        rows.append(row)
    if os.access(options.timing, os.X_OK):
        more, failed = starts_and_latencies(options.timing, options.backend, options.turns, options.only)
        rows += more
        failures += failed
    else:
        print('skipped: start and latency: no program', options.timing)
    if not rows:
        print(f'nothing was measured: no case that runs here has a name with {options.only!r}')
        return 1
    marks = [row['mark']['verdict'] for row in rows if 'mark' in row]
    if marks:
        print(f"limits: {marks.count('aim reached')} with the aim reached, {marks.count('must reached')} reached, "
              f"{marks.count('missed')} missed")
    if options.json:
        with open(options.json, 'w', encoding='utf-8') as file:
            json.dump({'backend': options.backend, 'turns': options.turns, 'machine': here, 'pipelines': rows}, file,
                      indent=1)
    return 1 if failures else 0


if __name__ == '__main__':
    sys.exit(main())
