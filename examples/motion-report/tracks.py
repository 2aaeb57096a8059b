# SPDX-License-Identifier: LGPL-2.1-or-later
"""Follows the objects of a cudadiff through its metas: where each one is over time, and how it looks when it is seen best."""
import collections

import common
from common import Gst
from cudavision import frames

import gi
gi.require_version("GstApp", "1.0")
from gi.repository import GstApp  # noqa: E402, F401: gives appsrc and appsink their signals

import media

STEP = Gst.SECOND // 10  # between two places of an object that are kept
BETTER = 1.3  # a picture replaces another one if its score is this many times as high
MARGIN = 0.3  # of the box of an object, around it in its picture


class Tracker:
    """Watches a cudadiff. `tracks` has for each object a list of (timestamp in ns, box), `snapshots` its JPEG without tint.
    `poster` is a JPEG, with tint, of the frame in which objects fill most; `size` is the width and height of frames.

    On a GPU, frames are in its memory before and after the cudadiff. So `before` and `after` are pads further away, where frames
    are in system memory; timestamps tell which frame is which."""

    def __init__(self, before, motion, after):
        self.tracks, self.snapshots, self.poster, self.size = {}, {}, b"", (0, 0)
        self.scores, self.poster_score, self.poster_time = {}, -1, None
        self.inputs = collections.deque(maxlen=10)  # frames as they came in; more than the elements between can hold
        self.close, self.wide = media.Camera(224), media.Camera(960)
        before.add_probe(Gst.PadProbeType.BUFFER, self.on_input)
        motion.get_static_pad("src").add_probe(Gst.PadProbeType.BUFFER, self.on_objects)
        after.add_probe(Gst.PadProbeType.BUFFER, self.on_picture)

    def __enter__(self):
        self.close.__enter__()
        self.wide.__enter__()
        return self

    def __exit__(self, *error):
        self.inputs.clear()
        self.close.__exit__(*error)
        self.wide.__exit__(*error)

    def on_input(self, pad, info):
        self.inputs.append((info.get_buffer(), pad.get_current_caps()))
        return Gst.PadProbeReturn.OK

    def on_objects(self, pad, info):
        buffer, self.size = info.get_buffer(), common.size_of_caps(pad.get_current_caps())
        # An object that is held is only where it is predicted to be.
        seen = {each.id: each.box for each in frames.objects(buffer) if each.confirmed and not each.held}
        for number, box in seen.items():
            track = self.tracks.setdefault(number, [])
            if not track or buffer.pts - track[-1][0] >= STEP:
                track.append((buffer.pts, box))
            self.take_snapshot(number, box, buffer.pts)
        score = sum(w * h for _, _, w, h in seen.values())
        if score > self.poster_score * BETTER:
            self.poster_score, self.poster_time = score, buffer.pts
        return Gst.PadProbeReturn.OK

    def on_picture(self, pad, info):
        if info.get_buffer().pts == self.poster_time:
            self.poster_time, self.poster = None, self.wide.shoot(info.get_buffer(), pad.get_current_caps()) or self.poster
        return Gst.PadProbeReturn.OK

    def take_snapshot(self, number, box, pts):
        """Keeps the picture of an object in which it is largest. At the edge of the frame, only a part of it may be seen."""
        (x, y, w, h), (width, height) = box, self.size
        score = w * h * (1 if 0 < x and 0 < y and x + w < width and y + h < height else 0.25)
        frame = next((one for one in self.inputs if one[0].pts == pts), None)
        if not frame or score <= self.scores.get(number, 0) * BETTER:
            return
        across, down = round(w * MARGIN), round(h * MARGIN)
        left, top = max(0, x - across), max(0, y - down)
        right, bottom = min(width, x + w + across), min(height, y + h + down)
        self.scores[number] = score
        picture = self.close.shoot(*frame, (left, top, right - left, bottom - top))
        self.snapshots[number] = picture or self.snapshots.get(number, b"")
