# SPDX-License-Identifier: LGPL-2.1-or-later
"""Keeps the frame with the best view of a motion, as a small JPEG."""
import base64
import re

import common
import gi
from common import Gst

gi.require_version("GstVideo", "1.0")
from gi.repository import GLib, GstVideo  # noqa: E402

WIDTH = 640  # maximum width in pixels
MOST = 200  # maximum number of pictures of a clip: the first ones


def jpeg_of(sample):
    """A frame as text: a JPEG in base64. None if it cannot be converted."""
    width, height = common.size_of(sample)
    share = min(1, WIDTH / width)
    # Without the caps feature, GPU memory is mapped like any other memory.
    plain = Gst.Caps.from_string(re.sub(r"\(memory:[^)]*\)", "", sample.get_caps().to_string()))
    size = f"width={max(1, round(width * share))},height={max(1, round(height * share))}"
    try:
        picture = GstVideo.video_convert_sample(Gst.Sample.new(sample.get_buffer(), plain, None, None),
                                                Gst.Caps.from_string(f"image/jpeg,{size},pixel-aspect-ratio=1/1"),
                                                10 * Gst.SECOND)
    except GLib.Error:
        return None
    buffer = picture.get_buffer()
    return base64.b64encode(buffer.extract_dup(0, buffer.get_size())).decode()


class Best:
    """The best frame after cudadiff since the last take(). Messages arrive in the thread of the frames, before their
    frame. If the element works on a GPU, they may arrive up to nine frames later."""

    def __init__(self, pad):
        self.pad, self.score, self.sample, self.taken, (self.width, self.height) = pad, 0, None, 0, (0, 0)

    def look(self, structure):
        """Takes the frame of a message if it shows more. The score is the largest region, halved if the edge of the
        frame cuts it."""
        caps = self.pad.get_current_caps()
        if not caps or self.taken >= MOST:
            return
        width, height = common.size_of_caps(caps)

        def score(region):
            cut = (region["x"] <= 0 or region["y"] <= 0 or region["x"] + region["width"] >= width
                   or region["y"] + region["height"] >= height)
            return region["area"] / (2 if cut else 1)

        now = max(map(score, structure["regions"]), default=0)
        if now > self.score:
            self.score = now
            self.pad.add_probe(Gst.PadProbeType.BUFFER, self.keep)

    def keep(self, pad, info):
        if caps := pad.get_current_caps():  # a stopped pad no longer has caps
            self.sample = Gst.Sample.new(info.get_buffer(), caps, None, None)
        return Gst.PadProbeReturn.REMOVE

    def take(self):
        """The picture, or None."""
        sample, self.sample, self.score = self.sample, None, 0
        self.taken += sample is not None
        return jpeg_of(sample) if sample else None
