# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests the scenes of motion_quality.py, and runs the whole program with settings that have a known outcome."""
import itertools
import unittest

import motion_run
import motion_scenes
import motion_world
import numpy as np
from motion_real_test import results_of

SCRIPT = 'motion_quality.py'
FIRST, PREVIOUS = ('reference=first threshold=40 cell-size=4 cell-threshold=0.5',
                   'reference=previous threshold=40 min-area=2')
ROAD = 'preset=road'


def scenes(seed):
    """Yields the name and the first frames of every scene, small and fast."""
    for name in motion_scenes.SCENES:
        yield name, list(motion_scenes.scene(name, seed, None, 160, 120, 72))
    for name in motion_world.SCENES:
        yield name, list(itertools.islice(motion_world.scene(name, seed, None, 160, 120, pace=0.3).frames(), 60))


class Scenes(unittest.TestCase):
    def test_the_seed_decides(self):
        for (name, first), (_, same), (_, other) in zip(scenes(1), scenes(1), scenes(2)):
            with self.subTest(name):
                for a, b in zip(first, same, strict=True):
                    self.assertTrue(np.array_equal(a.picture, b.picture) and np.array_equal(a.ids, b.ids))
                self.assertFalse(np.array_equal(first[0].picture, other[0].picture))

    def test_figures(self):
        """The truth is in the pictures."""
        _, results, _ = results_of(SCRIPT, '--size=160x120', '--frames=120', '--only=plain,dark', '--no-peers',
                                   '--properties=reference=first threshold=20 light-change-ratio=0')
        found = results['cudadiff']['scenes']
        self.assertGreater(found['plain'], 0.7)
        self.assertEqual(set(found), {'plain', 'dark'})


class World(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        _, cls.results, cls.page = results_of(SCRIPT, '--group=world', '--only=removed,lane', '--size=160x120',
                                              '--no-peers', *(f'--properties={setting}'
                                                              for setting in (FIRST, PREVIOUS, ROAD)))

    def visits(self, name, scene):
        return self.results[name]['visits'][f'{scene}, seed 1']

    def test_ghost(self):
        """A thing that is taken away differs from the first frame forever, but from the previous frame only for a
        moment."""
        first, previous = self.visits('cudadiff', 'removed'), self.visits(PREVIOUS, 'removed')
        self.assertEqual((first['episodes'], first['people'], first['motions']), (1, 1, 1))
        self.assertAlmostEqual(first['ghost'], 19, delta=0.2)  # 20 s to the end of the scene, less the first
        self.assertLess(previous['ghost'], 0.5)
        self.assertGreater(self.results['cudadiff']['events'], self.results[PREVIOUS]['events'])

    def test_lane(self):
        for name in self.results:
            crossings = self.visits(name, 'lane')['crossings']
            self.assertGreater(crossings['true'], 30)
            self.assertLessEqual(crossings['right'] + crossings['wrong'], crossings['reported'])
            self.assertEqual(self.results[name]['crossings'], crossings['reported'] / crossings['true'])
            self.assertEqual(self.visits(name, 'lane')['episodes'], 0)
        # Vehicles are counted by their direction, although vehicles of the first frames are part of the first
        # background. In such a small clip the number found depends on chance: it must be at least half of them.
        crossings = self.visits(ROAD, 'lane')['crossings']
        self.assertGreaterEqual(crossings['right'], crossings['true'] / 2)
        self.assertLess(crossings['wrong'], 5)

    def test_table(self):
        self.assertIn(f'| figure | cudadiff | {PREVIOUS} | {ROAD} | must | aim | verdict |', self.page)
        self.assertRegex(self.page, r'\| removed \| \d\.\d\d; 1/1 motions, 19 s ghosts; \d+/1 ids \|')


if __name__ == '__main__':
    motion_run.need_plugin()
    unittest.main(verbosity=1)
