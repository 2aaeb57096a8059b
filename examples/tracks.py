# SPDX-License-Identifier: LGPL-2.1-or-later
"""Selects the video track of a file to analyse, if it has several, such as two lenses of a camera, or a picture beside
the video."""
from common import GLib, Gst


class Tracks:
    """Links track number `wanted` (from 1, in the order of the container) of a uridecodebin in a pipeline made from a
    description. Afterwards `count` is the number of video tracks, or 0 if it is unknown."""

    def __init__(self, decoder, wanted=1):
        self.decoder, self.wanted, self.count = decoder, wanted, 0
        self.handler = decoder.connect("no-more-pads", self.on_pads)  # no frame flows before this signal

    @property
    def is_missing(self):
        """Whether it is known that there is no such track."""
        return 0 < self.count < self.wanted

    def close(self):
        self.decoder.disconnect(self.handler)

    def on_pads(self, decoder):
        pads = sorted((pad for pad in decoder.srcpads if is_video(pad)), key=lambda pad: pad.get_stream_id() or "")
        self.count = len(pads)
        linked = next((pad for pad in pads if pad.is_linked()), None)
        if self.is_missing:
            tracks = "1 video track" if self.count == 1 else f"{self.count} video tracks"
            sentence = f"there is no track {self.wanted}: it has {tracks}"
            error = GLib.Error.new_literal(Gst.stream_error_quark(), sentence, Gst.StreamError.FAILED)
            decoder.post_message(Gst.Message.new_error(decoder, error, ""))
        elif linked and linked is not pads[self.wanted - 1]:
            sink = linked.get_peer()
            linked.unlink(sink)
            pads[self.wanted - 1].link(sink)

    def sentence(self):
        """A readable sentence if there are several tracks; otherwise an empty text."""
        if self.count < 2:
            return ""
        others = [str(number) for number in range(1, self.count + 1) if number != self.wanted]
        return f"track {self.wanted} of {self.count}; --track={others[0]} analyses " + (
            "the other one" if len(others) == 1 else "another one")


def is_video(pad):
    caps = pad.get_current_caps() or pad.query_caps(None)
    return caps.get_size() > 0 and caps.to_string().startswith("video/")
