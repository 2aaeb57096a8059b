#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests bench_pipelines.py:  bench_pipelines_test.py PIPELINE_TIMING

Each element has a case. The table of a GPU host, with programs in place of gst-launch-1.0 and the others, has every
row. On the CPU every row runs, with few frames. GStreamer must find the plugin (GST_PLUGIN_PATH_1_0).
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

BENCH = Path(__file__).resolve().parent / 'bench_pipelines.py'
timing = sys.argv.pop(1)

# A GStreamer with every element except $MISSING, in which each link of a pipeline takes a second.
INSPECT = '#!/bin/sh\nfor last; do :; done\necho "  async-depth  "\n' \
          'case " $MISSING " in *" $last "*) exit 1 ;; esac\n'
LAUNCH = '''#!/bin/sh
links=0
for word; do
  printf '%s|' "$word"
  if [ "$word" = ! ]; then links=$((links + 1)); fi
done >>"$LOG"
echo >>"$LOG"
echo "Execution ended after 0:00:$links.0"
'''
TIMING = """#!/bin/sh
echo '{"first_ms": [2, 1], "latency_us": {"median": 5, "p99": 6}, "rendered": 1}'
"""


def bench(*arguments, **environment):
    return subprocess.run([sys.executable, BENCH, *arguments], capture_output=True, text=True, check=False,
                          env={**os.environ, **environment})


class Bench(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.log, self.json = self.folder / 'log', self.folder / 'rows.json'

    def rows(self):
        """The rows of the last table, by name and format."""
        return {(row['name'], row.get('format')): row
                for row in json.loads(self.json.read_text(encoding='utf-8'))['pipelines']}

    def table_of_a_gpu_host(self, missing=''):
        """Runs the benchmark with a clip on a machine that has everything except an element. Returns what it did."""
        for name, text in [('gst-inspect-1.0', INSPECT), ('gst-launch-1.0', LAUNCH), ('pipeline_timing', TIMING)]:
            (self.folder / name).write_text(text)
            (self.folder / name).chmod(0o755)
        done = bench('--clip=/my media/a "b" clip.mp4', '--turns=1', f'--timing={self.folder / "pipeline_timing"}',
                     f'--json={self.json}', MISSING=missing, LOG=str(self.log),
                     PATH=f'{self.folder}:{os.environ["PATH"]}')
        self.assertEqual((done.returncode, done.stderr), (0, ''), done.stdout)
        return done.stdout

    def test_a_gpu_host(self):
        """No row stops the rows after it, and the name of a clip may have blanks."""
        self.assertNotIn('skipped', self.table_of_a_gpu_host())
        everything = self.rows()
        self.assertTrue(list(everything)[-1][0].startswith('latency of'))
        self.assertIn('share_of_source', everything['decode a "b" clip.mp4, scan, 16 at a time', 'NV12'])
        self.assertAlmostEqual(everything['difference', 'NV12']['over_identity'], 1)
        self.assertEqual(self.log.read_text().count('|location=/my media/a "b" clip.mp4|'), 3 + 2 * (1 + 4 + 16))
        for element, count in [('nvh264dec', 6), ('cudadiff', 12)]:
            with self.subTest(element=element):
                said = self.table_of_a_gpu_host(element)
                self.assertEqual(len(everything) - len(self.rows()), count, said)
                self.assertEqual(len(re.findall(rf'^skipped: .*: no {element} here$', said, re.MULTILINE)), count)

    def test_the_bundle_has_what_it_imports(self):
        bundle = (BENCH.parents[1] / 'gpu-bundle.sh').read_text(encoding='utf-8')
        for module in re.findall(r'^(?:from|import) (\w+)', BENCH.read_text(encoding='utf-8'), re.MULTILINE):
            if (BENCH.parent / f'{module}.py').exists():
                self.assertIn(f',{module}.py,', bundle)

    def test_each_element_has_a_case(self):
        done = bench('--check')
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_every_row_runs_on_the_cpu(self):
        clip = self.folder / 'a clip.mp4'
        made = subprocess.run(
            ['gst-launch-1.0', '-q', *'videotestsrc num-buffers=12 ! video/x-raw,format=I420,width=64,height=48 ! '
             'openh264enc ! h264parse ! mp4mux ! filesink'.split(), f'location={clip}'], check=False,
            stderr=subprocess.DEVNULL).returncode == 0
        done = bench('--backend=cpu', '--turns=1', '--frames=3', f'--timing={timing}', f'--json={self.json}',
                     *([f'--clip={clip}'] if made else []))
        self.assertEqual((done.returncode, done.stderr), (0, ''), done.stdout)
        self.assertNotRegex(done.stdout, 'FAILED|nan|inf')
        names = [name for name, _ in self.rows()]
        self.assertTrue(names[-1].startswith('latency of'))
        self.assertEqual('decode a clip.mp4, scan, 16 at a time' in names, made)


if __name__ == '__main__':
    if not shutil.which('gst-launch-1.0'):
        print('skipped: no gst-launch-1.0')
        sys.exit(77)
    unittest.main()
