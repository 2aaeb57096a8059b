#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs the benchmarks of programs on the CPU, each as short as possible:  benchmarks_test.py PIPELINE_TIMING

Checks that each one prints its rows, or explains in one sentence why it cannot run. No figure is judged. In
bench_pipelines.py each element has a case. GStreamer must find the plugin (GST_PLUGIN_PATH). Tests skip without
Debian's Python bindings of GStreamer or an H.264 encoder, the program exits with 77 without gst-launch-1.0.
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

BENCH = Path(__file__).resolve().parent
timing = sys.argv.pop(1)
cameras = shutil.which('mosquitto', path=f'{os.environ["PATH"]}:/usr/sbin')
bindings = (os.access('/usr/bin/python3', os.X_OK) and
            subprocess.run(['/usr/bin/python3', '-c', 'import gi'], stderr=subprocess.DEVNULL).returncode == 0)


def make(path, frames, sound=False):
    """Makes an MP4 file with H.264, 10 frames per second."""
    description = (f'videotestsrc num-buffers={frames} pattern=ball ! '
                   'video/x-raw,format=I420,width=160,height=96,framerate=10/1 ! openh264enc ! h264parse ! mux. '
                   f'mp4mux name=mux ! filesink').split() + [f'location={path}']
    if sound:
        description += f'audiotestsrc num-buffers={frames} ! avenc_aac ! mux.'.split()
    return subprocess.run(['gst-launch-1.0', '-q', *description], check=False, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL).returncode == 0


class Pipelines(unittest.TestCase):
    def bench(self, *arguments):
        done = subprocess.run([sys.executable, BENCH / 'bench_pipelines.py', *arguments], capture_output=True,
                              text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ''), done.stdout)
        return done.stdout

    def test_the_bundle_has_what_it_imports(self):
        bundle = (BENCH.parent / 'gpu-bundle.sh').read_text(encoding='utf-8')
        program = (BENCH / 'bench_pipelines.py').read_text(encoding='utf-8')
        for module in re.findall(r'^(?:from|import) (\w+)', program, re.MULTILINE):
            if (BENCH / f'{module}.py').exists():
                self.assertIn(f',{module}.py,', bundle)

    def test_each_element_has_a_case(self):
        self.bench('--check')

    def test_every_row_runs_on_the_cpu(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        clip, rows = Path(folder, 'a "b" clip.mp4'), Path(folder, 'rows.json')
        clips = [f'--clip={clip}'] if make(clip, 12) else []
        said = self.bench('--backend=cpu', '--turns=1', '--frames=3', f'--timing={timing}', f'--json={rows}', *clips)
        self.assertNotRegex(said, 'FAILED|nan|inf')
        names = [row['name'] for row in json.loads(rows.read_text(encoding='utf-8'))['pipelines']]
        self.assertTrue(names[-1].startswith('latency of'))
        self.assertEqual('decode a "b" clip.mp4, scan, 16 at a time' in names, bool(clips))


@unittest.skipUnless(bindings, 'no Python bindings of GStreamer')
class Programs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = cls.enterClassContext(tempfile.TemporaryDirectory())
        cls.clip, cls.long = f'{folder}/a "short" clip.mp4', f'{folder}/a long clip.mp4'
        if not make(cls.long, 250):
            raise unittest.SkipTest('no openh264enc, or no mp4mux')
        if not make(cls.clip, 20, sound=True):
            make(cls.clip, 20)

    def said(self, name, *arguments, status=0):
        done = subprocess.run(['/usr/bin/python3', BENCH / name, *map(str, arguments)], capture_output=True, text=True,
                              check=False)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        self.assertNotIn('Traceback', done.stderr)
        return done.stdout if status == 0 else done.stderr.splitlines()[-1]

    def test_motion_cpu(self):
        lines = self.said('motion_cpu.py', self.clip, self.long, '--turns=1').splitlines()
        self.assertRegex(lines[0], r', \d+ processors, load [\d.]+; medians of 1 turns$')
        for clip, frames in (self.clip, 20), (self.long, 250):
            at = lines.index(f'{os.path.basename(clip)}, {frames} frames, ms of processor time a frame')
            names = [re.split(r'  +', line.strip())[0] for line in lines[at + 1:at + 7]]
            self.assertEqual(names, ['decoder', '+ preset=outdoor', '+ preset=indoor', '+ reference=mog2', '+ defaults',
                                     '+ preset=outdoor, still'])
        self.assertIn('/nowhere: there is no such file', self.said('motion_cpu.py', '/nowhere', status=1))

    def test_report_speed(self):
        said = self.said('report_speed.py', self.clip, '--rounds=1')
        self.assertIn(f'{self.clip}, 20 frames\n', said)
        self.assertEqual(len(re.findall(r'^  (decode|decode and cudadiff|report) +\d+ frames/s', said, re.MULTILINE)),
                         3, said)
        self.assertRegex(self.said('report_speed.py', '/nowhere.mp4', status=1), '^gst-launch-1.0 failed with exit')

    def test_latencies_of_elements(self):
        """Elements need neither a clip nor a broker."""
        rows = [line for line in self.said('latencies.py', '--only=elements', '--seconds=3', f'--timing={timing}')
                .splitlines() if line.startswith('| cuda')]
        self.assertEqual([re.match(r'\| (cuda\w+)', row)[1] for row in rows], ['cudagaussian', 'cudadiff', 'cudadiff'])
        self.assertRegex(self.said('latencies.py', '--only=elements', '--timing=/nowhere', status=77),
                         'skipped: no program /nowhere')
        self.assertRegex(self.said('latencies.py', '--seconds=1', status=77), '^skipped: ')

    @unittest.skipUnless(cameras, 'no mosquitto (WITH=mqtt tests/run.sh installs it)')
    def test_latencies_of_the_service(self):
        said = self.said('latencies.py', self.long, '--only=service', '--cameras=1', '--width=320', '--seconds=3')
        self.assertRegex(said, r'\n\| motion-alarm-service, 1 cameras of 320 pixels, frame to MQTT \| \d+ \|')

    @unittest.skipUnless(cameras, 'no mosquitto (WITH=mqtt tests/run.sh installs it)')
    def test_camera_cost(self):
        said = self.said('camera_cost.py', self.long, '--cameras=1', '--width=320', '--seconds=3')
        self.assertRegex(said, r'\n\| 1 \| \d+, \d+ \|')
        self.assertRegex(self.said('camera_cost.py', self.clip, '--width=320', status=1), 'is shorter than 24 s')


if __name__ == '__main__':
    if not shutil.which('gst-launch-1.0'):
        print('skipped: no gst-launch-1.0')
        sys.exit(77)
    unittest.main(verbosity=2)
