# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests the pull points of a camera: their queues, waits and bounds."""

import threading
import unittest
from unittest import mock

from helpers import HANGS, wait_for

import pull_points


class PullPoints(unittest.TestCase):
    def setUp(self):
        self.points = pull_points.PullPoints()
        self.enterContext(mock.patch("pull_points.LONGEST", HANGS))

    def pull(self, key, limit=1000, wait=0):
        return [(each.operation, each.motion) for each in self.points.pull(key, wait, limit)[0]]

    def test_states(self):
        early, _ = self.points.create(60)
        self.points.set(False)  # this changes nothing
        self.points.set(True)
        self.points.set(True)
        late, _ = self.points.create(60)
        self.points.set(False)
        self.assertEqual([("Initialized", False), ("Changed", True)], self.pull(early, 2))
        self.assertEqual([("Changed", False)], self.pull(early, 2))
        self.assertEqual([], self.pull(early))
        self.assertEqual([("Initialized", True), ("Changed", False)], self.pull(late))
        self.points.synchronize(late)
        self.assertEqual([("Initialized", False)], self.pull(late))

    def pulls(self):
        """A point, the list to which a waiting pull adds its messages, and the thread of the pull."""
        key, _ = self.points.create(60)
        self.assertEqual([("Initialized", False)], self.pull(key))
        found = []

        def pull():
            try:
                found.append(self.pull(key, wait=HANGS))
            except pull_points.Gone:
                found.append("gone")

        thread = threading.Thread(target=pull)
        thread.start()
        wait_for("it pulls", lambda: self.points.points[key].turn == 2)
        return key, found, thread

    def test_pulls_wait(self):
        """Many clients wait, and get the same messages."""
        pulls = [self.pulls() for _ in range(pull_points.MOST)]
        self.points.set(True)
        for _, found, thread in pulls:
            thread.join(HANGS)
            self.assertEqual([[("Changed", True)]], found)

    def test_a_pull_ends_the_one_before(self):
        """A client whose connection broke does not lose messages to its old pull."""
        key, found, thread = self.pulls()
        self.assertEqual([], self.pull(key))
        thread.join(HANGS)
        self.assertEqual([[]], found)
        self.points.set(True)
        self.assertEqual([("Changed", True)], self.pull(key))

    def test_a_pull_that_ends_takes_nothing(self):
        """This includes a message that arrives before the pull has noticed that it ends."""
        key, found, thread = self.pulls()
        with self.points.changed:
            self.points.points[key].turn += 1
            self.points.set(True)
        thread.join(HANGS)
        self.assertEqual([[]], found)
        self.assertEqual([("Changed", True)], self.pull(key))

    def test_what_is_removed_ends_a_pull(self):
        key, found, thread = self.pulls()
        self.points.remove(key)
        thread.join(HANGS)
        self.assertEqual(["gone"], found)
        for act in (self.pull, self.points.synchronize, self.points.remove, lambda key: self.points.renew(key, 60)):
            self.assertRaises(pull_points.Gone, act, key)

    def test_bounds(self):
        keys = [self.points.create(60)[0] for _ in range(pull_points.MOST)]
        self.assertRaises(pull_points.Full, self.points.create, 60)
        self.points.points[keys[0]].end = 0  # it expires
        self.assertRaises(pull_points.Gone, self.pull, keys[0])
        self.points.create(60)
        for motion in [True, False] * 200 + [True]:
            self.points.set(motion)
        found = self.pull(keys[1])
        self.assertEqual((pull_points.QUEUE, ("Changed", True)), (len(found), found[-1]))

    def test_lives(self):
        for asked, most in ((0.001, 10), (60, 60), (1e12, 3600)):
            key, left = self.points.create(asked)
            for found in (left, self.points.renew(key, asked)):
                self.assertTrue(0 < found <= most, (asked, found))
            self.points.remove(key)
        self.assertGreater(self.points.create(1e12)[1], self.points.create(0.001)[1])

    def test_who_pulls_lives_on(self):
        key, _ = self.points.create(3600)
        self.points.points[key].end -= 3500
        self.assertGreater(self.points.pull(key, 0, 1)[1], 100)


if __name__ == "__main__":
    unittest.main()
