#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests bench_pipelines.py:  bench_pipelines_test.py PIPELINE_TIMING

Each element has a case, and every CPU row runs with few frames. GStreamer must find the plugin (GST_PLUGIN_PATH_1_0).
"""
import json
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

BENCH = Path(__file__).resolve().parent / 'bench_pipelines.py'
timing = sys.argv.pop(1)


def bench(*arguments):
    return subprocess.run([sys.executable, BENCH, *arguments], capture_output=True, text=True, check=False)


class Bench(unittest.TestCase):
    def test_the_bundle_has_what_it_imports(self):
        bundle = (BENCH.parents[1] / 'gpu-bundle.sh').read_text(encoding='utf-8')
        for module in re.findall(r'^(?:from|import) (\w+)', BENCH.read_text(encoding='utf-8'), re.MULTILINE):
            if (BENCH.parent / f'{module}.py').exists():
                self.assertIn(f',{module}.py,', bundle)

    def test_each_element_has_a_case(self):
        done = bench('--check')
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_every_row_runs_on_the_cpu(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        clip, rows = Path(folder, 'a "b" clip.mp4'), Path(folder, 'rows.json')
        made = subprocess.run(
            ['gst-launch-1.0', '-q', *'videotestsrc num-buffers=12 ! video/x-raw,format=I420,width=64,height=48 ! '
             'openh264enc ! h264parse ! mp4mux ! filesink'.split(), f'location={clip}'], check=False,
            stderr=subprocess.DEVNULL).returncode == 0
        done = bench('--backend=cpu', '--turns=1', '--frames=3', f'--timing={timing}', f'--json={rows}',
                     *([f'--clip={clip}'] if made else []))
        self.assertEqual((done.returncode, done.stderr), (0, ''), done.stdout)
        self.assertNotRegex(done.stdout, 'FAILED|nan|inf')
        names = [row['name'] for row in json.loads(rows.read_text(encoding='utf-8'))['pipelines']]
        self.assertTrue(names[-1].startswith('latency of'))
        self.assertEqual('decode a "b" clip.mp4, scan, 16 at a time' in names, made)


if __name__ == '__main__':
    if not shutil.which('gst-launch-1.0'):
        print('skipped: no gst-launch-1.0')
        sys.exit(77)
    unittest.main()
