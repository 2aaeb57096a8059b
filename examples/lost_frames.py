# SPDX-License-Identifier: LGPL-2.1-or-later
"""Counts the unreadable frames of one decoder: compares its input samples with its output frames, by their times. See
losses.py."""
import collections
import statistics
from dataclasses import dataclass

import common
from common import Gst

VP8_SHOWN = 0x10  # a bit in the first byte of a VP8 sample: whether its frame is shown
FIELDS = ("interleaved", "mixed", "fields", "alternate")  # modes in which a sample may be half a frame
# A sample of MPEG-4 part 2 with fewer bytes contains no frame, unless it is a B-frame that repeats its neighbours.
EMPTY = {"video/mpeg": 9, "video/x-divx": 9, "video/x-xvid": 9}
PICTURE, B_FRAME = b"\0\0\1\xb6", 2  # the start code of a picture; its type is in the next two bits
AHEAD = 1000  # a demuxer may be this many samples ahead of the decoder when it skips something
REORDERED = 8  # a sample may be this many frames ahead of the previous one, in any clip
# Each lookup of a name in Gst costs as much as a call.
NONE, DELTA, HIDDEN = Gst.CLOCK_TIME_NONE, Gst.BufferFlags.DELTA_UNIT, Gst.BufferFlags.DECODE_ONLY
EXACT = Gst.MSECOND  # times of a sample and its frame are equal
LONGEST = 3600 * Gst.SECOND  # a longer hole means a damaged timestamp
INEXACT = 0.5  # a container without an index misjudges its length by this many seconds


@dataclass
class Span:
    """A time without frames, in seconds. `about`: the number is an estimate."""
    begin: float
    end: float
    frames: int
    about: bool = False


class Stream:
    """The stream through one decoder. All times are pad times, in ns. `ordered`: samples have the times at which
    their frames are shown. In AVI they do not, so only the numbers of frames are compared."""

    def __init__(self, ordered, skips):
        self.ordered, self.matched, self.least_size, self.hides = ordered, None, 1, False
        self.samples = self.good = self.dropped = 0  # dropped: the number since the last good frame
        self.pending, self.first = [], None  # first: the time of the first key frame
        self.opened = self.last = None  # times of the first and the last good frame
        self.head = 0  # frames lost before the first good one
        self.bad, self.good_from = False, None  # whether frames are damaged; the time of the next key frame
        self.skips, self.watch = skips, AHEAD if skips else 0  # number of remaining samples in which to look for a hole
        # The latest time of a sample, the time of the previous sample, and the largest and the smallest distance
        # between them.
        self.latest, self.before, self.jump, self.least = None, None, 0, 0
        self.steps, self.usual = collections.deque(maxlen=63), 0  # between good frames; their approximate median
        self.start, self.stop = 0, None  # the start and the stop of the segment
        self.timeless, self.parsed, self.used = False, False, True
        self.spans, self.segment, self.ended, self.declared = [], None, False, 0

    def step(self):
        """The usual time between two frames so far."""
        if self.steps:
            self.usual = statistics.median(self.steps)
        return self.usual or self.least

    def on_first(self, pad):
        """Determines whether each sample is one frame that is shown."""
        if not (caps := pad.get_current_caps()):
            return  # the pad is being stopped
        name, mode, version, self.parsed = common.fields_of(caps, "name", "interlace-mode", "mpegversion", "parsed")
        self.matched, self.hides = mode not in FIELDS, name == "video/x-vp8"
        self.least_size = EMPTY.get(name, 1) if version in (None, 4) else 1

    def on_segment(self, segment):
        if segment.format == Gst.Format.TIME:
            self.start, self.stop = segment.start, None if segment.stop == NONE else segment.stop
            if self.segment and (segment.start, segment.base) != (self.segment.start, self.segment.base):
                self.pending, self.latest, self.first = [], None, None  # a seek, or the next part of an edit list
            self.segment = segment

    def on_sample(self, pad, buffer):
        time = buffer.pts
        if time == NONE or time in self.pending:
            self.ordered, self.pending = False, []
            time = buffer.dts
        key = not buffer.has_flags(DELTA)
        if self.matched is None:
            self.on_first(pad)
        if (self.is_empty(buffer) or buffer.has_flags(HIDDEN)
                or (self.first is None and not key)
                or (self.hides and not buffer.extract_dup(0, 1)[0] & VP8_SHOWN)):
            return
        if time == NONE:
            self.on_timeless(key)
            return
        if self.first is None:
            self.first = time
        if self.latest is not None:
            ahead = time - self.latest
            # The order of frames determines how far a sample may be ahead. The first few frames show it.
            most = self.jump if self.samples > REORDERED else REORDERED * self.least
            if self.watch and self.least and ahead > most + self.least / 2:
                if not key:
                    self.damage()
            else:
                self.jump = max(self.jump, ahead)
                self.least = min(self.least or ahead, abs(time - self.before) or ahead)
            self.watch = max(0, self.watch - 1)
        self.latest, self.before = time if self.latest is None else max(self.latest, time), time
        if key and self.bad and self.good_from is None:
            self.good_from = time
        # Frames of an open group that are shown before its key frame need frames from before the group. An edit list
        # may hide samples.
        if time < self.first or time < self.start or (self.stop is not None and time >= self.stop):
            return
        self.samples += 1
        if self.ordered:
            self.pending.append(time)

    def is_empty(self, buffer):
        """Whether a sample contains no frame. A sample whose picture cannot be found may be damaged, so it counts."""
        size = buffer.get_size()
        if size >= self.least_size:
            return False
        _, _, picture = buffer.extract_dup(0, size).partition(PICTURE)
        return picture[0] >> 6 != B_FRAME if picture else size <= len(PICTURE)

    def on_timeless(self, key):
        """Counts a sample of a stream without a container. Only the numbers of samples and frames are known."""
        self.timeless = True
        self.first = self.first or 0
        self.samples += 1
        if key:
            self.bad = False

    def damage(self):
        if self.first is not None:
            self.bad, self.good_from = True, None

    def on_frame(self, time):
        """Whether a frame is good."""
        if self.bad and self.first is not None:
            if self.good_from is None or time < self.good_from:
                self.dropped += 1
                return False
            self.bad = False
        self.good += 1
        if time == NONE:
            return True
        before, self.last = self.last, time
        lost = max(self.dropped, sum(each < time - EXACT for each in self.pending))
        self.pending = [each for each in self.pending if each > time + EXACT]
        self.dropped = 0
        if before is None:
            self.opened, self.head = time, lost
            return True
        if time < before and self.spans and self.spans[-1].about:
            before -= self.back()
        passed = time - before
        if passed <= 1.5 * self.usual and not lost:
            self.note(passed)
        else:
            self.judge(before, time, lost)
        return True

    def back(self):
        """Removes a loss whose timestamp was itself damaged. Returns its length in ns."""
        span = self.spans.pop()
        return int((span.end - span.begin) * Gst.SECOND + self.usual)

    def note(self, passed):
        """Counts a step between two frames without a loss."""
        if passed > 0:
            self.steps.append(passed)
            if len(self.steps) in (1, 3) or not self.good % 32:
                self.step()

    def judge(self, before, time, lost):
        """Adds the frames lost between two good frames, if any."""
        passed = time - before
        step = self.step() or passed
        slots = round(passed / step) - 1 if passed < LONGEST else 0
        if self.watch and slots > lost:
            self.add(before + step, time, slots, True)
            self.watch = min(self.watch, 2 * REORDERED)  # a frame from the other side may be in the hole
        elif lost or (slots > 0 and not self.ordered):
            self.add(before + step if slots > 0 else before, time, lost if self.ordered else max(lost, slots))
        else:
            self.note(passed)

    def seconds(self, time):
        """The stream time for a time of the pads, in seconds."""
        if self.segment:
            time = self.segment.to_stream_time(Gst.Format.TIME, int(time))
        return 0 if time == NONE else time / Gst.SECOND

    def add(self, begin, end, frames, about=False):
        if self.matched or about:
            self.spans.append(Span(self.seconds(begin), self.seconds(end), frames, about))

    def add_head(self, step):
        """Adds the frames lost before the first good frame."""
        slots = round((self.opened - self.first) / step) if step else 0
        if not self.ordered:
            self.head = max(self.head, slots)
        about = self.skips and slots > self.head
        if self.head or about:
            self.add(self.first, self.opened, max(self.head, slots) if about else self.head, about)
            self.spans.insert(0, self.spans.pop())

    def finish(self, indexed):
        """The spans, in order. `indexed`: the container has an entry for each frame."""
        step = self.step()
        if self.timeless:
            lost = self.samples - self.good
            return [Span(0, 0, lost)] if self.ended and self.matched and self.parsed and lost > 1 else []
        if self.opened is None or not self.matched:
            return self.spans
        if self.first is not None:
            self.add_head(step)
        if not self.ended:
            return self.spans
        lost = len(self.pending)
        if not self.ordered:  # a hole may be intended, so count frames
            lost = max(0, self.samples - self.good)
            for span in self.spans:
                span.frames = min(span.frames, lost)
                lost -= span.frames
        if lost and not self.ordered and self.spans and self.latest - self.last < 3.5 * step:
            self.spans[-1].frames += lost  # it has the decoding times
        elif lost > (0 if indexed else 1):  # the last frame of a stream is often truncated
            self.add(self.last + step, max(self.last, self.latest) + step, lost)
        else:
            begin, short = self.seconds(self.last + step), 1.5 * step / Gst.SECOND + (0 if indexed else INEXACT)
            if self.skips and step and self.declared - begin > short:
                frames = round((self.declared - begin) * Gst.SECOND / step)
                self.spans.append(Span(begin, self.declared, frames, True))
        for span in self.spans:  # times may also be damaged
            span.end = min(span.end, max(span.begin, self.declared)) if indexed and self.declared else span.end
        return [span for span in self.spans if span.frames]


def joined(spans):
    """The spans, with touching spans joined."""
    made = []
    for span in spans:
        if made and span.begin <= made[-1].end + 1e-3:
            made[-1] = Span(made[-1].begin, max(made[-1].end, span.end), made[-1].frames + span.frames,
                            made[-1].about or span.about)
        else:
            made.append(span)
    return made


def sentence(spans, frames):
    """A readable sentence: `frames` could be read, and these spans could not. An empty text without spans."""
    if not spans:
        return ""
    lost = sum(span.frames for span in spans)
    about = "about " if any(span.about for span in spans) else ""
    places = [f"{span.begin:.1f} to {span.end:.1f} s" for span in spans[:3]]
    if len(spans) > 3:
        places.append(f"{len(spans) - 3} more place{'s' if len(spans) > 4 else ''}")
    if not any(span.end for span in spans):  # the stream has no times
        return f"{about}{lost} of {frames + lost} frames could not be read"
    where = places[0] if len(places) == 1 else f"{', '.join(places[:-1])} and {places[-1]}"
    return f"{about}{lost} of {frames + lost} frames could not be read, {where}"
