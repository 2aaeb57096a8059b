#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Turns the JSON of bench_kernels and cvcuda_peers.py into the table of docs/kernels.md:

  report.py kernels.json [cvcuda.json]

Each operation and format has a row: at each size the time and its ratio to a copy of the same bytes, the limits at 8K
(a ratio, or µs) and at 1080p (µs), and at 8K the ratio of the peer's time to this project's. Values over their limit
are bold. CV-CUDA has its own column.
`report.py --rows BENCH_KERNELS PAGE` checks that the table of a page has the rows of bench_kernels, and no others.
"""
import json
import math
import re
import subprocess
import sys

SIZES = ('8K', '4K', '1080p')
# Rows of cvcuda_peers.py without a counterpart.
CVCUDA_ALONE = [('median-3', 'GRAY8'), ('median-3', 'RGBA'), ('composite', 'RGB')]


def cell(run):
    """The time of a run and its ratios, bold if one is over its limit."""
    if run is None or 'over_copy' not in run:
        return '–'
    floor = f", {run['over_floor']:.2f} of the FMA floor" if 'over_floor' in run else ''
    missed = (run.get('over_floor', run['over_copy']) > run.get('must', math.inf)
              or run['real_time'] > run.get('must_us', math.inf))
    bold = '**' if missed else ''
    return f"{bold}{run['real_time']:.1f} ({run['over_copy']:.2f}{floor}){bold}"


def limit_of(run):
    return f"{run['must']:.2f}" if 'must' in run else f"{run['must_us']:g} µs" if 'must_us' in run else ''


def table(ours, cvcuda=()):
    """The lines of the table. `ours`, `cvcuda`: the benchmarks of the two files."""
    rows, theirs = {}, {}
    for run in ours:
        operation, pixels, size = run['name'].split('/')[:3]
        rows.setdefault((operation, pixels), {})[size] = run
    for run in cvcuda:
        operation, pixels, size = run['name'].split('/')
        if size == '8K':
            theirs[operation, pixels] = run
    sizes = [size for size in SIZES if any(size in runs for runs in rows.values())]
    head = ['operation', 'format', *(f'{size}, µs (÷ copy)' for size in sizes), 'must, 8K; 1080p', 'peer ÷ ours, 8K']
    if cvcuda:
        head.append('CV-CUDA ÷ ours, 8K (÷ copy)')
    lines = [f"| {' | '.join(head)} |", '| --- ' * len(head) + '|']
    for row in [*rows, *(row for row in theirs if row not in rows)]:  # the last ones have no counterpart of ours
        runs = rows.get(row, {})
        cells = [cell(runs.get(size)) for size in sizes]
        first = runs.get('8K', {})
        must = '; '.join(limit for limit in (limit_of(first), limit_of(runs.get('1080p', {}))) if limit)
        peer = f"{first['peer_over_ours']:.1f}" if 'peer_over_ours' in first else ''
        if 'peer_over_ours_equal' in first:
            peer += f" (equal samples: {first['peer_over_ours_equal']:.1f})"
        cells += [must, peer]
        if row in theirs:
            ratio = f"{theirs[row]['cvcuda_us'] / first['real_time']:.1f}" if 'over_copy' in first else '–'
            cells.append(f"{ratio} ({theirs[row]['over_copy']:.1f})")
        elif cvcuda:
            cells.append('')
        lines.append(f"| {' | '.join([*row, *cells])} |")
    return lines


def check_rows(program, page):
    listed = subprocess.run([program, '--backend=cpu', '--sizes=8K', '--benchmark_list_tests'], check=True,
                            capture_output=True, text=True)
    known = re.findall(r'^(\S+)/(\w+)/8K/', listed.stdout, re.MULTILINE)
    with open(page, encoding='utf-8') as file:
        lines = file.read().split('| operation | format |')[1].split('\n\n')[0].splitlines()[2:]
    rows = [tuple(cell.strip() for cell in line.split('|')[1:3]) for line in lines]
    rows = [row for row in rows if row not in CVCUDA_ALONE]
    wrong = [f'{name} {pixels} is not in the table' for name, pixels in known if (name, pixels) not in rows]
    wrong += [f'{name} {pixels} is no row of bench_kernels' for name, pixels in rows if (name, pixels) not in known]
    print('\n'.join(wrong) or f'{len(known)} rows')
    return 1 if wrong or not known else 0


def main(*paths):
    files = []
    for path in paths:
        with open(path, encoding='utf-8') as file:
            files.append(json.load(file)['benchmarks'])
    print('\n'.join(table(*files)))
    return 0


if __name__ == '__main__':
    sys.exit(check_rows(*sys.argv[2:]) if sys.argv[1:2] == ['--rows'] else main(*sys.argv[1:]))
