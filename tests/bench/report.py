#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Turns bench_kernels' JSON into the tables of docs/performance.md: report.py kernels.json

One row for each operation and format: at each size the time and its ratio to a copy of the same bytes, and at 8K the ratio of the peer's
time to ours."""
import json
import sys


def main(path):
    with open(path, encoding='utf-8') as file:
        data = json.load(file)
    rows = {}
    sizes = []
    for run in data['benchmarks']:
        operation, pixels, size = run['name'].split('/')[:3]
        if size not in sizes:
            sizes.append(size)
        rows.setdefault((operation, pixels), {})[size] = run
    print('| operation | format |', ' | '.join(f'{size}, µs (÷ copy)' for size in sizes), '| must | peer ÷ ours, 8K |')
    print('| --- ' * (len(sizes) + 4) + '|')
    for (operation, pixels), runs in rows.items():
        cells = []
        for size in sizes:
            run = runs.get(size)
            if run is None or 'over_copy' not in run:
                cells.append('–')
                continue
            floor = f", {run['over_floor']:.2f} of the FMA floor" if 'over_floor' in run else ''
            cells.append(f"{run['real_time']:.1f} ({run['over_copy']:.2f}{floor})")
        first = runs.get('8K', {})
        must = f"{first['must']:.2f}" if 'must' in first else ''
        peer = f"{first['peer_over_ours']:.1f}" if 'peer_over_ours' in first else ''
        if 'peer_over_ours_equal' in first:
            peer += f" (equal samples: {first['peer_over_ours_equal']:.1f})"
        print(f'| {operation} | {pixels} |', ' | '.join(cells), f'| {must} | {peer} |')


if __name__ == '__main__':
    main(*sys.argv[1:])
