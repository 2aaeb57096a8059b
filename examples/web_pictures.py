# SPDX-License-Identifier: LGPL-2.1-or-later
"""Reads pictures of HTTP cameras in a uridecodebin: Motion JPEG, and snapshot URLs, which answer each request with one
JPEG.

    http source ─┬─ multipart ─→ multipartdemux ─→ …    the first picture passes immediately: no other pad is awaited
                 ├─ a JPEG ────→ one buffer ───→ …      and the source restarts for the next one
                 └─ anything else passes

Frames get their time of arrival."""
import re
import threading
import time

import common
from common import Gst

PICTURES = b"\xff\xd8\xff", b"\x89PNG"  # the first bytes of JPEG and PNG
NEXT, MOST = b"\xff\xd9\xff\xd8", 1  # one JPEG ends and another one begins; after more of these, the answer never ends
LARGEST = 64 * 2**20  # maximum number of bytes of a picture
EVERY = 1.0  # seconds between two requests


class WebPictures:
    """Watches a source element in a pipeline that has not started. `every`: seconds between the beginnings of two
    requests. `live` is called, in the streaming thread, if the source delivers live pictures instead of a file."""

    def __init__(self, source, every=None, live=lambda: None):
        self.source, self.every, self.live = source, every or EVERY, live
        self.data, self.joints, self.asked = None, 0, 0.0  # data: of a picture; None: nothing has arrived yet
        self.began = None  # time of the first picture, in seconds on the monotonic clock
        self.pushing = self.endless = False
        kinds = Gst.PadProbeType.BUFFER | Gst.PadProbeType.EVENT_DOWNSTREAM
        source.get_static_pad("src").add_probe(kinds, self.on_source)

    def begin(self):
        if self.began is None:
            self.began = time.monotonic()
            self.live()

    def stamped(self, buffer):
        """A buffer with its time of arrival. The time of the pipeline's clock is unknown before the first picture, and
        wrong while the pipeline starts."""
        buffer.pts = int((time.monotonic() - self.began) * Gst.SECOND)
        return buffer

    def push(self, pad, buffer):
        """Pushes a buffer in place of the one that a probe drops."""
        self.pushing = True
        pad.push(self.stamped(buffer))
        self.pushing = False
        return Gst.PadProbeReturn.DROP

    # Snapshots --------------------------------------------------------------------------------------------------------

    def on_source(self, pad, info):
        if self.pushing:
            return Gst.PadProbeReturn.OK
        if not info.type & Gst.PadProbeType.BUFFER:
            kind = info.get_event().type
            if kind == Gst.EventType.STREAM_START:
                self.data, self.joints, self.asked = None, 0, time.monotonic()
            return self.on_end(pad) if kind == Gst.EventType.EOS and self.data else Gst.PadProbeReturn.OK
        data = info.get_buffer().extract_dup(0, info.get_buffer().get_size())
        if self.endless:
            return self.push(pad, Gst.Buffer.new_wrapped(data))
        if self.data is None:
            if not data.startswith(PICTURES):
                return Gst.PadProbeReturn.OK if self.began else Gst.PadProbeReturn.REMOVE
            self.data = bytearray()
            self.begin()
        self.data += data
        self.joints += NEXT in self.data[-len(data) - len(NEXT) + 1:]
        if self.joints > MOST or len(self.data) > LARGEST:
            self.endless, data, self.data = True, bytes(self.data), None
            return self.push(pad, Gst.Buffer.new_wrapped(data))
        return Gst.PadProbeReturn.DROP

    def on_end(self, pad):
        """A picture is complete. The stream does not end: the next picture is requested when it is due."""
        picture = self.stamped(Gst.Buffer.new_wrapped(bytes(self.data)))
        # The pad itself is at its end.
        if pad.get_peer().chain(picture) not in (Gst.FlowReturn.FLUSHING, Gst.FlowReturn.EOS):
            timer = threading.Timer(max(0, self.asked + self.every - time.monotonic()), self.ask)
            timer.daemon = True
            timer.start()
        return Gst.PadProbeReturn.DROP

    def ask(self):
        """Restarts the source, unless the pipeline stops meanwhile."""
        if self.stops():
            return
        self.source.set_state(Gst.State.READY)
        self.source.sync_state_with_parent()
        if self.stops():
            self.source.set_state(Gst.State.NULL)

    def stops(self):
        parent = self.source.get_parent()
        return not parent or parent.target_state < Gst.State.PAUSED

    # Motion JPEG ------------------------------------------------------------------------------------------------------

    def on_demuxer(self, demuxer):
        """Handles a multipartdemux that is added to the pipeline. By default it announces more pads, and decodebin
        waits seconds for them."""
        demuxer.connect("pad-added", self.on_part)
        demuxer.connect_after("pad-added", lambda _, pad: is_picture(pad) and demuxer.no_more_pads())

    def on_part(self, _, pad):
        if is_picture(pad):
            self.begin()
            pad.add_probe(Gst.PadProbeType.BUFFER, self.on_picture)
        else:  # sound is dropped
            pad.add_probe(Gst.PadProbeType.BUFFER, lambda *_: Gst.PadProbeReturn.DROP)

    def on_picture(self, pad, info):
        buffer = info.get_buffer()
        if self.pushing or buffer.pts != Gst.CLOCK_TIME_NONE:  # its source gives times if do-timestamp is set
            return Gst.PadProbeReturn.OK
        return self.push(pad, common.without_times(buffer))


def is_picture(pad):
    """Whether a part is a picture. Camera-specific names of JPEG become GStreamer's name."""
    caps = pad.get_current_caps()  # None if the pad is being stopped
    name = caps.to_string().partition(",")[0] if caps else ""
    if re.search("jpe?g$", name) and name != "image/jpeg":
        pad.set_caps(Gst.Caps.from_string("image/jpeg"))
    return bool(re.match("image/|video/", name) or re.search("jpe?g$", name))
