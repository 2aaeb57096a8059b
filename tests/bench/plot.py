#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Draws the plots of docs/performance.md: plot.py FILE.json … FOLDER

From the JSON of bench_kernels, and of cvcuda_peers.py if given, it draws time ÷ copy of the same bytes, for this
project and the peers:
sizes.svg   against the size of the picture; radius.svg  against the radius; kernel.svg  against the size of the kernel
Needs only Python.
"""
import json
import math
import os
import re
import sys
from xml.sax.saxutils import escape

HUES = ('#4477aa', '#cc6677', '#228833')  # one for each operation in a plot
WIDTH, HEIGHT, LEGEND, LINE = 470, 330, 250, 22  # of the axes, of the legend and of a line in it, in pixels
# For each plot: the title, the copy that times are divided by, and the operations: label, rows whose group is on the x
# axis, and x of that group. System copies of small pictures are mostly start-up time, so `sizes` uses a plain copy
# kernel.
PLOTS = {
    'sizes.svg': ('Time ÷ copy against the size of the picture (GRAY8)', 'copy_kernel_us', [
        ('Gaussian, 5 taps', r'gaussian-5/GRAY8/(\w+)', None),
        ('convolve 3×3', r'convolve-3x3/GRAY8/(\w+)', None),
        ('histogram', r'histogram/GRAY8/(\w+)', None)]),
    'radius.svg': ('Time ÷ copy against the radius in samples (GRAY8, 8K)', 'copy_us', [
        ('Gaussian', r'gaussian-(\d+)/GRAY8/8K', lambda taps: taps // 2),
        ('box mean', r'box-mean-r(\d+)/GRAY8/8K', lambda radius: radius),
        ('non-local means', r'nlm-r(\d+)-s5/GRAY8/8K', lambda radius: radius)]),
    'kernel.svg': ('Time ÷ copy against the width of the kernel (convolve, 8K)', 'copy_us', [
        ('GRAY8', r'convolve-(\d+)x\d+/GRAY8/8K', lambda width: width),
        ('RGBA', r'convolve-(\d+)x\d+/RGBA/8K', lambda width: width)]),
}


def curves(title, ticks, lines):
    """An SVG of curves on logarithmic axes. ticks: x and its label; lines: (label, colour, dashes, points)."""
    values = [y for *_, points in lines for _, y in points]
    left, top = 50, 30
    low, high = math.log10(min(*values, 1)), math.log10(max(*values, 10))
    first, last = math.log10(min(ticks)), math.log10(max(ticks))

    def place(x, y):
        return (f'{left + 10 + (WIDTH - 20) * (math.log10(x) - first) / (last - first or 1):.1f}',
                f'{top + HEIGHT * (high - math.log10(y)) / (high - low):.1f}')
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + WIDTH + LEGEND}" height="{top + HEIGHT + 30}" '
           'font-family="sans-serif" font-size="12">',
           '<rect width="100%" height="100%" fill="white"/><text x="10" y="18" '
           f'font-weight="bold">{escape(title)}</text>']
    for power in range(math.floor(low), math.floor(high) + 1):
        for value in (10 ** power * step for step in ((1, 2, 5) if high - low < 2 else (1,))):
            if low <= math.log10(value) <= high:
                y = place(min(ticks), value)[1]
                out.append(f'<path d="M{left} {y} h{WIDTH}" stroke="{"#888888" if value == 1 else "#dddddd"}"/>'
                           f'<text x="{left - 6}" y="{y}" dy="4" text-anchor="end" fill="#666666">{value:g}</text>')
    for x, label in ticks.items():
        at = place(x, 1)[0]
        out.append(f'<path d="M{at} {top} v{HEIGHT}" stroke="#eeeeee"/>'
                   f'<text x="{at}" y="{top + HEIGHT + 18}" text-anchor="middle" '
                   f'fill="#666666">{escape(str(label))}</text>')
    # The legend is ordered by the largest values of the curves.
    for i, (label, colour, dashes, points) in enumerate(sorted(lines, key=lambda line: -max(y for _, y in line[3]))):
        style = f'stroke="{colour}" stroke-width="2" stroke-dasharray="{dashes}" fill="none"'
        places = [place(*point) for point in sorted(points)]
        at = top + LINE * (i + 0.5)
        out.append(f'<path d="M{" L".join(" ".join(point) for point in places)}" {style}/>'
                   + ''.join(f'<circle cx="{x}" cy="{y}" r="3" fill="{colour}"/>' for x, y in places)
                   + f'<path d="M{left + WIDTH + 10} {at} h34" {style}/><text x="{left + WIDTH + 52}" '
                   f'y="{at + 4}">{escape(label)}</text>')
    return '\n'.join(out + ['</svg>', ''])


def kernels(title, copy, operations, runs):
    """runs: the name of a row without its options → the counters of bench_kernels and of cvcuda_peers.py."""
    ticks, lines = {}, []
    for (operation, pattern, x_of), hue in zip(operations, HUES):
        points = {'real_time': [], 'peer_us': [], 'cvcuda_us': []}
        for name, run in runs.items():
            found = re.fullmatch(pattern, name)
            if not found or copy not in run:
                continue
            x = x_of(int(found[1])) if x_of else run['pixels']
            ticks[x] = x if x_of else found[1]
            for time, of_time in points.items():
                if time in run:
                    of_time.append((x, run[time] / run[copy]))
        peer = 'NPP or CUB' if operation == 'histogram' else 'NPP'
        for of_time, whose, dashes in zip(points.values(), ('ours', peer, 'CV-CUDA'), ('none', '7 4', '2 3')):
            if of_time:
                lines.append((f'{operation}: {whose}', hue, dashes, of_time))
    return lines and curves(title, ticks, lines)


def draw(*files):
    """The names and contents of the plots, from the contents of JSON files."""
    runs = {}
    for file in files:
        for run in file.get('benchmarks', []):
            # all times are divided by the copy of bench_kernels
            times = {key: value for key, value in run.items() if 'cvcuda_us' not in run or key == 'cvcuda_us'}
            runs.setdefault('/'.join(run['name'].split('/')[:3]), {}).update(times)
    drawn = {name: kernels(title, copy, operations, runs) for name, (title, copy, operations) in PLOTS.items()}
    return {name: svg for name, svg in drawn.items() if svg}


def main(*paths, folder):
    files = []
    for path in paths:
        with open(path, encoding='utf-8') as file:
            files.append(json.load(file))
    drawn = draw(*files)
    for name, svg in drawn.items():
        with open(os.path.join(folder, name), 'w', encoding='utf-8') as file:
            file.write(svg)
        print(os.path.join(folder, name))
    return 0 if drawn else 1


if __name__ == '__main__':
    if len(sys.argv) < 3:
        sys.exit(__doc__.strip())
    sys.exit(main(*sys.argv[1:-1], folder=sys.argv[-1]))
