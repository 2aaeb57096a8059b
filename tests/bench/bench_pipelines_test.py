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

    def table(self, *arguments, missing=''):
        """Runs the benchmark on a machine that has everything except some elements. Returns what it did, the rows by
        name and format, and the pipelines that it ran as lists of words."""
        for name, text in [('gst-inspect-1.0', INSPECT), ('gst-launch-1.0', LAUNCH), ('pipeline_timing', TIMING)]:
            (self.folder / name).write_text(text)
            (self.folder / name).chmod(0o755)
        log, rows = self.folder / 'log', self.folder / 'rows.json'
        log.write_text('')
        done = bench(f'--timing={self.folder / "pipeline_timing"}', f'--json={rows}', *arguments, MISSING=missing,
                     LOG=str(log), PATH=f'{self.folder}:{os.environ["PATH"]}')
        self.assertEqual((done.returncode, done.stderr), (0, ''), done.stdout)
        return done, self.read(rows), [line.split('|') for line in log.read_text().splitlines()]

    @staticmethod
    def read(path):
        return {(row['name'], row.get('format')): row for row in json.loads(path.read_text())['pipelines']}

    def clip(self):
        """An MP4 file with 12 frames of H.264; None if there is no encoder."""
        path = self.folder / 'a clip.mp4'
        made = subprocess.run(
            ['gst-launch-1.0', '-q', *'videotestsrc num-buffers=12 ! video/x-raw,format=I420,width=64,height=48 ! '
             'openh264enc ! h264parse ! mp4mux ! filesink'.split(), f'location={path}'], check=False,
            stderr=subprocess.DEVNULL)
        return path if made.returncode == 0 else None


class OnAGpuHost(Bench):
    """No row of the table stops the rows after it."""

    def test_every_row_with_clips(self):
        done, rows, _ = self.table('--clip=/media/first.mp4', '--clip=/media/second.mp4', '--turns=2')
        self.assertNotIn('skipped', done.stdout)
        for clip in 'first', 'second':
            scans = (f', scan, {n} at a time' for n in (1, 4, 16))
            for suffix in ('', ', blur, sharpen', ', motion, no metas', *scans):
                row = rows[f'decode {clip}.mp4{suffix}', 'NV12']
                self.assertEqual(len(row['seconds']['with']), 2)
                self.assertEqual('share_of_source' in row, 'scan' in suffix)
        names = [name for name, _ in rows]
        self.assertEqual(names[0], 'identity, the host alone')
        self.assertIn('wall of 36 in 4K', names)
        self.assertTrue(names[-1].startswith('latency of'), names)

    def test_every_row_without_clips(self):
        self.assertEqual(len(self.table('--turns=1')[1]) + 2 * 6,
                         len(self.table('--turns=1', '--clip=/a/1.mp4', '--clip=/a/2.mp4')[1]))

    def test_a_clip_whose_name_has_blanks(self):
        _, rows, pipelines = self.table('--clip=/my media/one "b" clip.mp4', '--turns=1', '--only=one .* clip')
        self.assertEqual(len(rows), 6)
        for pipeline in pipelines:
            self.assertIn('location=/my media/one "b" clip.mp4', pipeline)

    def test_what_is_missing_skips_its_rows_alone(self):
        everything = self.table('--clip=/a/1.mp4', '--turns=1')[1]
        for element, count in [('nvh264dec', 6), ('qtdemux', 6), ('cudadiff', 12)]:
            with self.subTest(element=element):
                done, rows, _ = self.table('--clip=/a/1.mp4', '--turns=1', missing=element)
                self.assertEqual(len(everything) - len(rows), count, done.stdout)
                self.assertEqual(len(re.findall(rf'^skipped: .*: no {element} here$', done.stdout, re.MULTILINE)),
                                 count, done.stdout)

    def test_rows_state_their_ratio_to_the_host(self):
        done, rows, _ = self.table('--turns=1', '--frames=10')
        self.assertEqual(rows['identity, the host alone', 'NV12']['us_per_element'], 1e5)  # ten frames
        for name in 'difference', 'chain of 4', 'chain of 4, 16 side by side':
            self.assertAlmostEqual(rows[name, 'NV12']['over_identity'], 1)
        for name in ('over, 2 pads', 'NV12'), ('gaussian-5 system', 'RGBA'):  # nothing is subtracted; the bus takes it
            self.assertNotIn('over_identity', rows[name])
        self.assertRegex(done.stdout, r'\ndifference .* 1\.0 × identity')
        self.assertNotIn('× identity', self.table('--turns=1', '--only=difference')[0].stdout)


class OnThisMachine(Bench):
    def test_the_bundle_has_what_it_imports(self):
        bundle = (BENCH.parents[1] / 'gpu-bundle.sh').read_text(encoding='utf-8')
        for module in re.findall(r'^(?:from|import) (\w+)', BENCH.read_text(encoding='utf-8'), re.MULTILINE):
            if (BENCH.parent / f'{module}.py').exists():
                self.assertIn(f',{module}.py,', bundle)

    def test_each_element_has_a_case(self):
        done = bench('--check')
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_every_row_runs_on_the_cpu(self):
        clip, rows = self.clip(), self.folder / 'rows.json'
        done = bench('--backend=cpu', '--turns=1', '--frames=3', f'--timing={timing}', f'--json={rows}',
                     *([f'--clip={clip}'] if clip else []))
        self.assertEqual((done.returncode, done.stderr), (0, ''), done.stdout)
        self.assertNotRegex(done.stdout, 'FAILED|nan|inf')
        names = [name for name, _ in self.read(rows)]
        self.assertTrue(names[-1].startswith('latency of'), names)
        if clip:
            self.assertIn('decode a clip.mp4, scan, 16 at a time', names)


if __name__ == '__main__':
    if not shutil.which('gst-launch-1.0'):
        print('skipped: no gst-launch-1.0')
        sys.exit(77)
    unittest.main()
