#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Measures the frames per second of whole pipelines, and the cost of the elements in them.

The cost is the time of a pipeline minus the time of the same pipeline without the element. Both run in turns A B A B, and medians
count. Needs only gst-launch-1.0 and gst-inspect-1.0.

  bench_pipelines.py [--backend=cuda|cpu] [--plugin=DIR] [--frames=N] [--turns=N] [--json=FILE] [--clip=FILE.mp4] [--only=REGEX]

The source is one picture that imagefreeze repeats, so that the pipelines measure the elements and not videotestsrc. On CUDA an element
of the plugin first puts that picture into the memory that a neighbour would use: pinned system memory or CUDA memory.
Exit status: 0; 1 if a pipeline failed or an element has no case; 77 if elements are missing.
"""
import argparse
import dataclasses
import json
import os
import re
import statistics
import subprocess
import sys

PCIE_BYTES_PER_SECOND = 55e9  # one direction, pinned (16 lanes of PCIe 5)
CUDA = 'video/x-raw(memory:CUDAMemory)'
SYSTEM = 'video/x-raw'


@dataclasses.dataclass
class Case:
    """Elements in one kind of memory, at 1080p. `{b}` stands for the backend."""
    name: str
    format: str
    memory: str
    elements: list
    backends: tuple = ('cuda',)
    peer: str = ''           # one element that does the same work; it is measured in the same turns
    side_by_side: int = 1    # pipelines in one process
    source: str = ''         # replaces the still picture; then nothing is subtracted
    pads: int = 0            # number of still pictures that go into one mixer, the only element; nothing is subtracted
    width: int = 1920
    height: int = 1080

    def pipeline(self, backend, frames, elements):
        loader = f'! cudagaussian kernel-size=3 backend=cuda ! {self.memory} ' if backend == 'cuda' else ''
        source = self.source or (f'videotestsrc num-buffers=1 pattern=snow ! {SYSTEM},format={self.format},width={self.width},'
                                 f'height={self.height},framerate=60/1 {loader}! imagefreeze num-buffers={frames}')
        if self.pads:
            head, *output = elements[0].format(b=backend).split(' ! ')
            output = ''.join(f'! {self.memory},{caps} ' for caps in output)
            return f'{head} name=mixer {output}! fakesink sync=false ' + f'{source} ! mixer. ' * self.pads
        chain = ''.join(f'! {element} ' for element in elements).format(b=backend)
        return f'{source} {chain}! {self.memory} ! fakesink sync=false ' * self.side_by_side


GAUSSIAN = 'cudagaussian kernel-size=5 backend={b}'
SHARPEN = 'cudaconvolve preset=sharpen backend={b}'
MOTION = 'cudadiff output=passthrough attach-roi=false backend={b}'
CASES = [
    Case('gaussian-5 system', 'RGBA', SYSTEM, [GAUSSIAN]),
    Case('sharpen system', 'RGBA', SYSTEM, [SHARPEN]),
    Case('gaussian-5', 'NV12', CUDA, [GAUSSIAN]),
    Case('gaussian-31', 'NV12', CUDA, ['cudagaussian kernel-size=31 backend={b}']),
    Case('sharpen', 'NV12', CUDA, [SHARPEN]),
    Case('difference', 'NV12', CUDA, ['cudadiff open-radius=0 attach-roi=false backend={b}']),
    Case('motion, frames pass', 'NV12', CUDA, [MOTION]),
    Case('motion in metas, frames pass', 'NV12', CUDA, ['cudadiff output=passthrough backend={b}']),
    Case('histogram, frames pass', 'NV12', CUDA, ['cudahistogram backend={b}']),
    Case('threshold', 'NV12', CUDA, ['cudaintegral output=threshold backend={b}']),
    Case('chain of 4', 'NV12', CUDA, [GAUSSIAN, SHARPEN, GAUSSIAN, SHARPEN]),
    Case('chain of 4, 16 side by side', 'NV12', CUDA, [GAUSSIAN, SHARPEN, GAUSSIAN, SHARPEN], side_by_side=16),
    Case('gaussian-5', 'RGB', SYSTEM, [GAUSSIAN], ('cpu',), 'cvsmooth type=gaussian kernel-width=5 kernel-height=5'),
    Case('gaussian-15', 'RGB', SYSTEM, ['cudagaussian kernel-size=15 backend={b}'], ('cpu',),
         'cvsmooth type=gaussian kernel-width=15 kernel-height=15'),
    Case('sobel-x', 'RGB', SYSTEM, ['cudaconvolve preset=sobel-x absolute=true backend={b}'], ('cpu',),
         'cvsobel x-order=1 y-order=0 aperture-size=3 mask=false'),
    Case('gaussian-5', 'NV12', SYSTEM, [GAUSSIAN], ('cpu',)),
    Case('over, 2 pads', 'NV12', CUDA, ['cudablend sink_1::alpha=0.5 backend={b}'], pads=2),
    Case('over, 2 pads', 'RGBA', CUDA, ['cudablend sink_1::alpha=0.5 backend={b}'], pads=2),
    Case('16 pads in one place', 'NV12', CUDA, ['cudablend backend={b} ! width=1920,height=1080'], pads=16),
    Case('wall of 36 in 4K', 'NV12', CUDA, ['cudablend layout=grid backend={b} ! width=3840,height=2160'], pads=36),
    Case('over, 2 pads', 'RGBA', SYSTEM, ['cudablend sink_1::alpha=0.5 backend={b}'], ('cpu',), 'compositor sink_1::alpha=0.5', pads=2),
    Case('over, 3 pads', 'RGBA', SYSTEM, ['cudablend sink_1::alpha=0.5 sink_2::alpha=0.7 backend={b}'], ('cpu',),
         'compositor sink_1::alpha=0.5 sink_2::alpha=0.7', pads=3),
    Case('over, 2 pads', 'NV12', SYSTEM, ['cudablend sink_1::alpha=0.5 backend={b}'], ('cpu',), 'compositor sink_1::alpha=0.5', pads=2),
    # videodiff outputs luma where anything changed. It neither counts pixels nor applies a threshold.
    Case('difference', 'I420', SYSTEM, ['cudadiff luma-only=true open-radius=0 attach-roi=false post-messages=false backend={b}'], ('cpu',), 'videodiff'),
    Case('equalize', 'GRAY8', SYSTEM, ['cudahistogram equalize=true post-messages=false backend={b}'], ('cpu',), 'cvequalizehist'),
]


class Failed(Exception):
    """An error message of gst-launch-1.0."""


def unlisted():
    """The elements of the plugin that no case uses."""
    inspected = subprocess.run(['gst-inspect-1.0', 'cudavision'], capture_output=True, text=True, env={**os.environ, 'LC_ALL': 'C'})
    used = {word for case in CASES for element in case.elements for word in element.split()}
    return [name for name in re.findall(r'^  (cuda\w+):', inspected.stdout, re.MULTILINE) if name not in used]


def has(element):
    return subprocess.run(['gst-inspect-1.0', '--exists', '--atleast-version=0.0', element.split()[0]], stdout=subprocess.DEVNULL).returncode == 0


def seconds(pipeline):
    """The seconds from PLAYING to end of stream, as gst-launch-1.0 prints them: without the start."""
    try:
        done = subprocess.run(['gst-launch-1.0', *pipeline.split()], capture_output=True, text=True, timeout=120,
                              env={**os.environ, 'LC_ALL': 'C'})
    except subprocess.TimeoutExpired:
        raise Failed('no end of stream in 120 s') from None
    ended = re.search(r'Execution ended after (\d+):(\d+):([\d.]+)', done.stdout)
    if done.returncode != 0 or not ended:
        lines = [line for line in (done.stderr + done.stdout).splitlines() if re.search('ERROR|erroneous', line)] or ['no end of stream']
        raise Failed(lines[0].strip())
    hours, minutes, rest = ended.groups()
    return int(hours) * 3600 + int(minutes) * 60 + float(rest)


def measure(case, backend, frames, turns):
    """The medians of all turns, as a dictionary for the JSON file."""
    variants = {'with': case.elements}
    if not case.source and not case.pads:
        variants['without'] = []
    if case.peer and has(case.peer):
        variants['peer'] = [case.peer]
    times = {variant: [] for variant in variants}
    for _ in range(turns):
        for variant, elements in variants.items():
            times[variant].append(seconds(case.pipeline(backend, frames, elements)))
    medians = {variant: statistics.median(values) for variant, values in times.items()}
    total = frames * case.side_by_side
    row = {'name': case.name, 'format': case.format, 'memory': case.memory, 'backend': backend, 'frames': total,
           'pipeline': case.pipeline(backend, frames, case.elements), 'seconds': times,
           'fps': total / medians['with']}
    if 'without' in medians:
        cost = {variant: (median - medians['without']) / total * 1e6 for variant, median in medians.items()}
        row['fps_without'] = total / medians['without']
        row['us_per_frame'] = cost['with']
        row['us_per_element'] = cost['with'] / len(case.elements)
        if 'peer' in cost:
            row['peer_us_per_frame'] = cost['peer']
            row['peer_over_ours'] = cost['peer'] / cost['with'] if cost['with'] > 0 else None
    elif 'peer' in medians:
        row['peer_over_ours'] = medians['peer'] / medians['with']
    if backend == 'cuda' and case.memory == SYSTEM and case.format == 'RGBA':
        row['pcie_share'] = row['fps'] * case.width * case.height * 4 / PCIE_BYTES_PER_SECOND
    return row


def remarks(row, case, done):
    """The remarks at the end of a row in the table."""
    if 'pcie_share' in row:
        yield f"{row['pcie_share']:.0%} of PCIe"
    if row.get('peer_over_ours'):
        yield f"{case.peer.split()[0]} ÷ ours {row['peer_over_ours']:.2f}"
    elif case.peer:
        yield f'no {case.peer.split()[0]} here'
    if case.side_by_side > 1:
        alone = next((other for other in done if case.name.startswith(other['name'] + ',')), None)
        if alone:
            row['over_alone'] = row['fps'] / alone['fps']
            yield f"{row['over_alone']:.2f} of one pipeline's rate"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--backend', choices=['cuda', 'cpu'], default='cuda')
    parser.add_argument('--plugin', help='folder of libgstcudavision.so')
    parser.add_argument('--frames', type=int, help='frames in each pipeline (cuda: 2000, cpu: 100)')
    parser.add_argument('--turns', type=int, default=3)
    parser.add_argument('--json', help='file to write')
    parser.add_argument('--clip', action='append', default=[], help='an MP4 file with H.264, which is decoded on the GPU')
    parser.add_argument('--only', default='', help='a regular expression for the names of the cases to run')
    options = parser.parse_args()
    if options.plugin:
        os.environ['GST_PLUGIN_PATH_1_0'] = os.path.abspath(options.plugin)
    frames = options.frames or (2000 if options.backend == 'cuda' else 100)
    missing = [element for element in ('cudagaussian', 'cudaconvolve', 'imagefreeze', 'videotestsrc') if not has(element)]
    if missing:
        print('skipped: no element', ', '.join(missing))
        return 77
    for element in unlisted():
        print(f'{element} has no case in bench_pipelines.py')
        return 1

    cases = [case for case in CASES if options.backend in case.backends]
    if options.backend == 'cuda':
        for clip in options.clip:
            name = f'decode {os.path.basename(clip)}'
            source = f'filesrc location={clip} ! qtdemux ! h264parse ! nvh264dec'
            if not has('nvh264dec'):
                print(f'skipped: {name}: no element nvh264dec')
                continue
            cases += [Case(name + suffix, 'NV12', CUDA, elements, source=source)
                      for suffix, elements in (('', []), (', blur, sharpen', [GAUSSIAN, SHARPEN]), (', motion', [MOTION]))]
    failures, rows = 0, []
    print(f"# {options.backend}, 1080p, {frames} frames a pipeline, medians of {options.turns} turns\n"
          f"{'':34} {'memory':6} {'fps':>8} {'without':>9} {'µs/frame':>9} {'µs/element':>10}")
    for case in cases:
        if not re.search(options.only, case.name):
            continue
        label = f"{case.name:29} {case.format:4} {'cuda' if case.memory == CUDA else 'system':6}"
        try:
            row = measure(case, options.backend, frames, options.turns)
        except Failed as failure:
            failures += 1
            rows.append({'name': case.name, 'backend': options.backend, 'error': str(failure)})
            print(f"{label} FAILED: {failure}", flush=True)
            continue
        if case.source:  # the clip's number of frames is unknown, so there is no rate
            line = f"{statistics.median(row['seconds']['with']):8.3f} s for the clip"
            del row['fps'], row['frames']
        elif case.pads:
            line = f"{row['fps']:8.0f} {'':9} {1e6 / row['fps']:9.1f} {'':10}"
        else:
            line = f"{row['fps']:8.0f} {row['fps_without']:9.0f} {row['us_per_frame']:9.1f} {row['us_per_element']:10.1f}"
        print(' '.join([label, line, ', '.join(remarks(row, case, [r for r in rows if 'fps' in r]))]).rstrip(), flush=True)
        rows.append(row)
    if options.json:
        with open(options.json, 'w', encoding='utf-8') as file:
            json.dump({'backend': options.backend, 'turns': options.turns, 'pipelines': rows}, file, indent=1)
    return 1 if failures else 0


if __name__ == '__main__':
    sys.exit(main())
