# SPDX-License-Identifier: LGPL-2.1-or-later
"""Listeners for the events of a camera. A listener must return quickly, because the calling thread delivers frames."""


class Listener:
    """Receives everything and does nothing."""

    def event(self, camera, line):
        """A message of cudadiff, or a clip: `line` is its JSON."""

    def state(self, camera):
        """Something about the camera may have changed."""

    def snapshot(self, camera, sample):
        """A frame (Gst.Sample) with a good view of a moving object."""

    def clip(self, camera, row):
        """A clip was written."""


class Everyone(Listener):
    """Calls several listeners, one after the other."""

    def __init__(self, listeners):
        self.listeners = list(listeners)

    def event(self, camera, line):
        for each in self.listeners:
            each.event(camera, line)

    def state(self, camera):
        for each in self.listeners:
            each.state(camera)

    def snapshot(self, camera, sample):
        for each in self.listeners:
            each.snapshot(camera, sample)

    def clip(self, camera, row):
        for each in self.listeners:
            each.clip(camera, row)
