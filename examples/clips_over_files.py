# SPDX-License-Identifier: LGPL-2.1-or-later
"""Reads the encoded streams of a recording of several files as if it were one file, so that an event that spans two
files becomes one clip.

Samples of two files can be in one clip only if their decoders are set up in the same way, which is usual for files of
one recorder. Otherwise the samples come from a file with the whole recording, such as the video of a report."""
import time
from dataclasses import dataclass
from typing import Optional

import clip_facts
import clip_formats
import common
from clip_streams import COPIED, Reader, stream_time
from common import Gst

BIAS = 3600 * Gst.SECOND  # added to the times of pads, which cannot be below 0


@dataclass
class Part:
    """A file of a recording. It covers `begin` to `end` on the timeline, in seconds. `first` is the time in the file
    at which it begins."""
    path: str
    facts: Optional[clip_facts.Facts]
    begin: float
    end: float
    first: float = 0

    @property
    def setup(self):
        """The facts that two files must share to be in one clip."""
        facts = self.facts
        return facts.codec, facts.width, facts.height, facts.setup, [*map(clip_formats.plain, facts.sounds)]


def moved(sample, shift):
    """A sample whose stream times are `shift` ns later."""
    buffer = sample.get_buffer()
    copy = buffer.copy_region(COPIED, 0, buffer.get_size())
    for name in "pts", "dts":
        when = getattr(buffer, name)
        if when != Gst.CLOCK_TIME_NONE:
            setattr(copy, name, max(stream_time(sample, when) + shift + BIAS, 0))
    segment = Gst.Segment()
    segment.init(Gst.Format.TIME)
    segment.start = segment.position = BIAS
    segment.time = 0
    return Gst.Sample.new(copy, sample.get_caps(), segment, None)


class Readers:
    """Like a clip_streams.Reader, for the Parts of a recording in order of time. `whole` is a Part with the whole
    recording, or None. Use it in a `with` block. `until`: the value of time.monotonic() at which it gives up, or None.
    """

    def __init__(self, parts, whole=None, until=None, silent=False):
        self.parts, self.whole, self.until, self.opened = parts, whole, until, None
        if silent:
            for part in parts:
                part.facts.sounds = ()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.open(None)

    def open(self, part):
        """The reader of a part. Only the reader of the last part is kept."""
        if self.opened and self.opened[0] is not part:
            self.opened[1].__exit__()
            self.opened = None
        if part and not self.opened:
            self.opened = part, Reader(part.path, part.facts, self.until).__enter__()
        return self.opened and self.opened[1]

    def between(self, begin, end):
        """The parts of a clip between two times in seconds. Raises a Failure if there is none."""
        found = [part for part in self.parts if part.begin < end and part.end > begin]
        fits = (all(clip_formats.can_cut(part.facts) and part.facts.codec not in clip_facts.OLD for part in found)
                and found and all(part.setup == found[0].setup for part in found))
        if not fits and self.whole:
            return [self.whole]
        if not fits:
            raise common.Failure("its video cannot be cut, because its files differ, and there is no other video")
        return found

    def facts_for(self, begin, end):
        return self.between(begin, end)[0].facts

    def key_before(self, when):
        """See Reader.key_before()."""
        part = self.between(when, when + 1e-3)[0]
        return self.open(part).key_before(when - part.begin + part.first) + part.begin - part.first

    def samples(self, begin, end):
        """See Reader.samples(), which has times in ns."""
        parts = self.between(begin / Gst.SECOND, end / Gst.SECOND)
        count = 1 + len(clip_formats.sounds_of(parts[0].facts))
        for part in parts:
            shift = round((part.begin - part.first) * Gst.SECOND)
            first, last = round(part.first * Gst.SECOND), round((part.end - part.begin + part.first) * Gst.SECOND)
            reader = self.open(part)
            for number, sample in reader.samples(max(begin - shift, first), min(end - shift, last)):
                if self.until is not None and time.monotonic() > self.until:
                    raise common.Failure("its video could not be cut in time")
                if sample:
                    yield number, moved(sample, shift)
        yield from ((number, None) for number in range(count))
