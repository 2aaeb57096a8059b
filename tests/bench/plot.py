#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Draws the plots of docs/performance.md from bench_pipelines' JSON: plot.py pipelines.json FOLDER

limits.svg  for each row with a limit: the measured value divided by what it must be (more is better; right of the line: reached)
peers.svg   for each row with a peer: frames a second of the peer and of ours
`plot.py --check` draws made-up numbers in memory and checks that the result is XML. Needs only Python.
"""
import json
import math
import os
import sys
import xml.etree.ElementTree
from xml.sax.saxutils import escape

LABELS, BARS, LINE = 330, 420, 22  # widths of the label column and of the bars, height of a line, in pixels
COLOURS = {'ours': '#4477aa', 'peer': '#bbbbbb', 'reached': '#228833', 'missed': '#cc6677'}


def chart(title, bars, line_at=None):
    """An SVG of horizontal bars on a logarithmic axis. bars: (label, value, text, colour); a label '' continues the row above."""
    values = [value for _, value, _, _ in bars] + ([line_at] if line_at else [])
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    high = max(high, low + 1)

    def x(value):
        return LABELS + BARS * (math.log10(value) - low) / (high - low)
    height = LINE * (len(bars) + 3)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{LABELS + BARS + 130}" height="{height}" font-family="sans-serif" font-size="12">',
           f'<rect width="100%" height="100%" fill="white"/><text x="10" y="{LINE * 0.8:.0f}" font-weight="bold">{escape(title)}</text>']
    for power in range(low, high + 1):
        at = x(10 ** power)
        out.append(f'<path d="M{at:.1f} {LINE} V{height - LINE * 1.4:.1f}" stroke="#dddddd"/>'
                   f'<text x="{at:.1f}" y="{height - LINE * 0.6:.1f}" text-anchor="middle" fill="#666666">{10 ** power:g}</text>')
    for i, (label, value, text, colour) in enumerate(bars):
        y = LINE * (i + 1.2)
        out.append(f'<text x="{LABELS - 8}" y="{y + LINE * 0.6:.1f}" text-anchor="end">{escape(label)}</text>'
                   f'<rect x="{LABELS}" y="{y:.1f}" width="{max(x(value) - LABELS, 1):.1f}" height="{LINE * 0.8:.1f}" fill="{COLOURS[colour]}"/>'
                   f'<text x="{max(x(value), LABELS) + 5:.1f}" y="{y + LINE * 0.6:.1f}">{escape(text)}</text>')
    if line_at:
        out.append(f'<path d="M{x(line_at):.1f} {LINE} V{height - LINE * 1.4:.1f}" stroke="black" stroke-dasharray="4 3"/>')
    return '\n'.join(out + ['</svg>', ''])


def limits(rows):
    bars = [(f"{row['name']}, {row['format']}", row['mark']['ratio'], f"{row['mark']['ratio']:.2f} ({row['mark']['verdict']})",
             'missed' if row['mark']['verdict'] == 'missed' else 'reached')
            for row in rows if row.get('mark') and 0 < row['mark']['ratio'] < math.inf]
    return bars and chart('Measured value ÷ what it must be (more is better)', bars, 1)


def peers(rows):
    bars = []
    for row in rows:
        if not row.get('peer_over_ours'):
            continue
        # Where sources are subtracted, the rate is that of the element alone.
        ours = 1e6 / row['us_per_frame'] if 'us_per_frame' in row else row['fps']
        bars.append((f"{row['name']}, {row['format']}", ours, f'{ours:.0f}', 'ours'))
        bars.append(('peer', ours / row['peer_over_ours'], f"{ours / row['peer_over_ours']:.0f}", 'peer'))
    return bars and chart("Frames a second, beside GStreamer's own element", bars)


def draw(rows):
    """The files' names and contents."""
    drawn = {'limits.svg': limits(rows), 'peers.svg': peers(rows)}
    return {name: svg for name, svg in drawn.items() if svg}


def check():
    rows = [{'name': 'a & b', 'format': 'NV12', 'us_per_frame': 8.0, 'peer_over_ours': 0.7,
             'mark': {'ratio': 0.9, 'verdict': 'missed'}},
            {'name': 'pads', 'format': 'RGBA', 'fps': 20000.0, 'peer_over_ours': 3.1, 'mark': {'ratio': 12.5, 'verdict': 'aim reached'}},
            {'name': 'without limit', 'format': 'RGBA', 'fps': 20.0}, {'name': 'failed', 'error': 'an error'}]
    drawn = draw(rows)
    for svg in drawn.values():
        xml.etree.ElementTree.fromstring(svg)
    good = set(drawn) == {'limits.svg', 'peers.svg'} and drawn['peers.svg'].count('>peer<') == 2 and 'without limit' not in drawn['limits.svg']
    print('1 passed, 0 failed, 0 skipped' if good else 'FAILED: a row is missing\n0 passed, 1 failed, 0 skipped')
    return 0 if good and draw([]) == {} else 1


def main(path, folder):
    with open(path, encoding='utf-8') as file:
        drawn = draw(json.load(file)['pipelines'])
    for name, svg in drawn.items():
        with open(os.path.join(folder, name), 'w', encoding='utf-8') as file:
            file.write(svg)
        print(os.path.join(folder, name))
    return 0 if drawn else 1


if __name__ == '__main__':
    if sys.argv[1:] == ['--check']:
        sys.exit(check())
    if len(sys.argv) != 3:
        sys.exit(__doc__.strip())
    sys.exit(main(*sys.argv[1:]))
