# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests motion_quality.py --group=world from end to end, with settings that have a known outcome."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

import motion_run

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'motion_quality.py')
FIRST, PREVIOUS = ('reference=first threshold=40 cell-size=4 cell-threshold=0.5',
                   'reference=previous threshold=40 min-area=2')
ROAD = 'preset=road'


class World(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as top:
            out, page = os.path.join(top, 'out.json'), os.path.join(top, 'out.md')
            options = ['--group=world', '--only=removed,lane', '--size=160x120', '--no-peers', f'--json={out}',
                       f'--markdown={page}']
            options += [f'--properties={setting}' for setting in (FIRST, PREVIOUS, ROAD)]
            cls.done = subprocess.run([sys.executable, SCRIPT, *options], capture_output=True, text=True, check=False)
            if cls.done.returncode == 0:
                with open(out, encoding='utf-8') as file:
                    cls.results = json.load(file)['results']
                with open(page, encoding='utf-8') as file:
                    cls.page = file.read()

    def setUp(self):
        self.assertEqual(self.done.returncode, 0, self.done.stderr)

    def visits(self, name, scene):
        return self.results[name]['visits'][f'{scene}, seed 1']

    def test_ghost(self):
        """What is taken away differs from the first frame forever, but from the previous one only for a moment."""
        first, previous = self.visits('cudadiff', 'removed'), self.visits(PREVIOUS, 'removed')
        self.assertEqual((first['episodes'], first['people'], first['motions']), (1, 1, 1))
        self.assertAlmostEqual(first['ghost'], 19, delta=0.2)  # 20 s until the end of the scene, without the first one
        self.assertLess(previous['ghost'], 0.5)
        self.assertGreater(self.results['cudadiff']['events'], self.results[PREVIOUS]['events'])

    def test_lane(self):
        for name in self.results:
            crossings = self.visits(name, 'lane')['crossings']
            self.assertGreater(crossings['true'], 30)
            self.assertLessEqual(crossings['right'] + crossings['wrong'], crossings['reported'])
            self.assertEqual(self.results[name]['crossings'], crossings['reported'] / crossings['true'])
            self.assertEqual(self.visits(name, 'lane')['episodes'], 0)
        # Most vehicles are counted, each in its direction, though vehicles of the first frames are part of the first
        # background.
        crossings = self.visits(ROAD, 'lane')['crossings']
        self.assertGreater(crossings['right'], 30)
        self.assertLess(crossings['wrong'], 5)

    def test_table(self):
        self.assertIn(f'| figure | cudadiff | {PREVIOUS} | {ROAD} | must | aim | verdict |', self.page)
        self.assertRegex(self.page, r'\| removed \| \d\.\d\d; 1/1 motions, 19 s ghosts; \d+/1 ids \|')


if __name__ == '__main__':
    motion_run.need_plugin()
    unittest.main(verbosity=1)
