# SPDX-License-Identifier: LGPL-2.1-or-later
"""Analyses fewer frames than a live camera sends: every second, third … frame, so that about `fps` frames per second
remain. The others are dropped before the queue, so they cost nothing after the decoder. Recordings contain them."""

from common import Gst

LATE = 1.05  # a frame comes at most this much later than the period, because the times of cameras are not exact


class Sampling:
    """Decides which frames of a stream are analysed. `fps`: the least frames per second that remain, if the stream has
    as many; 0: all."""

    def __init__(self, fps):
        self.period = Gst.SECOND * LATE / fps if fps else 0
        self.kept = self.previous = Gst.CLOCK_TIME_NONE  # the times of the last analysed frame, and of the last frame

    def attach(self, pad):
        if self.period:
            pad.add_probe(Gst.PadProbeType.BUFFER, self.on_buffer)

    def on_buffer(self, _, info):
        return Gst.PadProbeReturn.OK if self.takes(info.get_buffer().pts) else Gst.PadProbeReturn.DROP

    def takes(self, time):
        """Whether the frame of this time is analysed: if the frame after it would come too late, or if times are
        unknown or go back."""
        known = Gst.CLOCK_TIME_NONE not in (time, self.kept, self.previous) and self.kept <= self.previous < time
        step = time - self.previous if known else 0
        self.previous = time
        if known and time + step - self.kept <= self.period:
            return False
        self.kept = time
        return True
