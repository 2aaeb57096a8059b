# SPDX-License-Identifier: LGPL-2.1-or-later
"""Selects the frames of a motion with the best view of moving objects, which become snapshots. The snapshots do not
show what cudadiff draws."""

import collections
import time

import common
from common import Gst
from cudavision import frames

BETTER = 1.25  # a better view is larger by this factor
CUT = 0.5  # weight of an object that the edge of the frame may partly hide
STEP = 1.0  # seconds between two snapshots of a motion
KEPT = 12  # number of inputs to keep; cudadiff may hold up to eight frames


def score_of(sample) -> float:
    """The number of pixels of the largest visible object; less if the edge of the frame may hide a part of it."""
    width, height = common.size_of(sample)

    def score(box):
        x, y, wide, high = box
        return wide * high * (1 if x > 0 and y > 0 and x + wide < width and y + high < height else CUT)

    return max((score(each.box) for each in frames.objects(sample) if not each.held), default=0.0)


class Inputs:
    """The input frames of cudadiff, if its output is another picture (a mask, or the frame with tint and boxes)."""

    def __init__(self, diff):
        self.waiting = collections.deque(maxlen=KEPT)
        self.tapped = diff.get_property("output").value_nick != "passthrough"
        if self.tapped:
            common.on_frames(diff.get_static_pad("sink"), self.on_input)

    def on_input(self, _, buffer, caps):
        self.waiting.append((buffer, caps))

    def of(self, sample):
        """The input for an output, or the output itself if they are equal."""
        pts, found = sample.get_buffer().pts, sample
        while self.waiting and self.waiting[0][0].pts <= pts:
            buffer, caps = self.waiting.popleft()
            if buffer.pts == pts:
                found = Gst.Sample.new(buffer, caps, None, None)
        return found


class BestView:
    """`send` gets each snapshot: the first frame of a motion, then better views, at most one per second."""

    def __init__(self, send, clock=time.monotonic):
        self.send, self.clock = send, clock
        # sent: the score of the last snapshot; waiting: a better picture.
        self.on, self.sent, self.when, self.waiting = False, 0.0, 0.0, None

    def begin(self):
        """Called before the first frame of a motion."""
        self.finish()
        self.on, self.sent, self.when = True, -1.0, -STEP

    def look(self, sample, picture):
        """Called for the next frame. `picture` is the picture to send."""
        if not self.on:
            return
        score = score_of(sample)
        if score > (self.waiting[0] if self.waiting else self.sent * BETTER):
            self.waiting = score, picture
        if self.waiting and self.clock() - self.when >= STEP:
            self.flush()

    def flush(self):
        if self.waiting:
            (self.sent, picture), self.waiting, self.when = self.waiting, None, self.clock()
            self.send(picture)

    def finish(self):
        """Called when the motion ended or the camera was lost. Sends the waiting snapshot."""
        self.flush()
        self.on = False
