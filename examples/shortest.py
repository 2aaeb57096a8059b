# SPDX-License-Identifier: LGPL-2.1-or-later
"""--min-event: omits motions and visits of objects that are too short."""
import collections
from dataclasses import dataclass
from typing import Optional

from part import ROUNDED, Time
from common import Gst

FRAME_TIME = 1 / 25  # the assumed duration of a frame that has none, in seconds


def lasts(seconds, least, frame_time):
    """Whether a duration of `seconds` is long enough. `least` is a Time or None."""
    return not least or seconds + ROUNDED / Gst.SECOND >= least.at_rate(frame_time or FRAME_TIME)


@dataclass
class Held:
    """A motion or a visit that may still turn out to be too short."""
    began: float
    last: float
    kept: Optional[bool] = None


class Shortest:
    """Takes events as inputs.line_of() makes them, in order. Returns each one, also in order, when its motion or visit
    is known to be long enough. Other events, such as `cross`, only wait for earlier events. `hold` is the property
    track-hold of cudadiff: an object that has not left was seen at most this many seconds ago. `dropped` has the start
    times of motions that were too short."""

    def __init__(self, least: Optional[Time], hold=1.0):
        self.least, self.hold = least, hold
        self.queue, self.open, self.dropped = collections.deque(), {}, set()

    def add(self, line, frame_time=None, began=None, last=None):
        """Returns the events that are due now. `began` and `last` belong to an `end`, if they are known."""
        if not self.least:
            return [line]
        event, time = line["event"], line["time"] or 0
        key = (line["id"], line.get("zone")) if "id" in line else None
        of_motion, held = "id" not in line and event in ("begin", "motion", "end"), self.open.get(key)
        if event in ("begin", "enter"):
            start = line.get("entered", time)
            held = self.open[key] = Held(time if of_motion else start, time)
        elif of_motion and event == "motion" and held and line.get("regions"):
            held.last = time
        if event in ("end", "leave") and held:
            length = line["seconds"] if event == "leave" else (
                (held.last if last is None else last) - (held.began if began is None else began)
                + (frame_time or FRAME_TIME))
            self.decide(held, length, frame_time, True)
            if not held.kept and of_motion:
                self.dropped.add(held.began)
            del self.open[key]
        for each, one in self.open.items():
            length = time - self.hold - one.began if each else one.last - one.began + (frame_time or FRAME_TIME)
            self.decide(one, length, frame_time)
        self.queue.append((line, held if of_motion or event in ("enter", "leave") else None))
        return self.ready()

    def decide(self, held, length, frame_time, ended=False):
        if held.kept is None and (ended or lasts(length, self.least, frame_time)):
            held.kept = lasts(length, self.least, frame_time)

    def ready(self):
        told = []
        while self.queue and (not self.queue[0][1] or self.queue[0][1].kept is not None):
            line, held = self.queue.popleft()
            if not held or held.kept:
                told.append(line)
        return told
