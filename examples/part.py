# SPDX-License-Identifier: LGPL-2.1-or-later
"""Selects a part of a clip (--start, --end, --duration and --frame-skip), and sets the frame rate of a clip without
times (--rate).

A Gate lets only the frames of the part pass a pad, without further elements. It drops the frames before the part, sends
EOS at its end, and seeks to the key frame before the start if the container has an index. Times refer to the whole
clip."""
import argparse
import re
import threading
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Optional

import common
import upright
from common import GLib, Gst

FORMS = "frames (250), seconds (10.0 or 10s) or hh:mm:ss (00:00:10.5)"
RATES = "frames per second above 0, up to 1000, such as 25, 12.5 or 30000/1001"
# Times are often rounded to milliseconds, so a time means the frame whose rounded time it is.
ROUNDED = Gst.MSECOND // 2
# Demuxers that give the same times with and without a seek. avidemux does not, if there are B frames.
INDEXED = "qtdemux", "matroskademux"
NEAR = 2 * Gst.SECOND  # this close to the start, decoding is faster than a seek
# Some demuxers seek by decoding times, which precede the times of frames.
MARGIN = Gst.SECOND


@dataclass(frozen=True)
class Time:
    """A place in a clip, or a length: a number of frames, or a time in ns. The other member is None."""
    frames: Optional[int] = None
    time: Optional[int] = None

    def __str__(self):
        return str(self.frames) if self.time is None else f"{self.time // Gst.SECOND}.{self.time % Gst.SECOND:09}"

    @property
    def words(self):
        return f"frame {self.frames}" if self.time is None else f"{self.time / Gst.SECOND:g} s"

    @property
    def length(self):
        return f"{self.frames} frame{'s' * (self.frames != 1)}" if self.time is None else self.words

    def at_rate(self, frame_time):
        """The value in seconds, if a frame lasts `frame_time` seconds."""
        return self.frames * frame_time if self.time is None else self.time / Gst.SECOND


def _ns(hours, minutes, seconds):
    whole, _, rest = seconds.partition(".")
    return ((int(hours or 0) * 60 + int(minutes or 0)) * 60 + int(whole)) * Gst.SECOND + int(rest.ljust(9, "0"))


def time_of(text):
    """A type for argparse: a Time from frames, seconds or hh:mm:ss, in the forms of DVR-Scan."""
    if re.fullmatch("[0-9]{1,10}", text):
        return Time(frames=int(text))
    if match := re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)s|([0-9]{1,9}\.[0-9]{1,9})", text):
        return Time(time=_ns(0, 0, match[1] or match[2]))
    match = re.fullmatch(r"(?:([0-9]{1,5}):)?([0-9]{1,2}):([0-9]{2}(?:\.[0-9]{1,9})?)", text)
    if not match or int(match[2]) > 59 or float(match[3]) >= 60:
        raise argparse.ArgumentTypeError(f"{text} is not a time: it must be {FORMS}")
    return Time(time=_ns(*match.groups()))


def rate_of(text):
    """A type for argparse: frames per second."""
    rate = re.fullmatch(r"[0-9]{1,6}(\.[0-9]{1,6}|/[1-9][0-9]{0,5})?", text) and Fraction(text)
    if not rate or rate > 1000:
        raise argparse.ArgumentTypeError(f"{text} is not a frame rate: it must be {RATES}")
    return rate


@dataclass(frozen=True)
class Part:
    """The frames of a clip from `start` up to, but excluding, `end`, or for `duration`; None means no limit. After each
    selected frame, `skip` frames are omitted. `rate`: frames per second, for frames without times."""
    start: Optional[Time] = None
    end: Optional[Time] = None
    duration: Optional[Time] = None
    skip: int = 0
    rate: Optional[Fraction] = None

    def __post_init__(self):
        """Raises a ValueError with a sentence."""
        if self.end and self.duration:
            raise ValueError("--end and --duration exclude each other")
        for name in "end", "duration":
            value = getattr(self, name)
            if value and not (value.frames or value.time):
                raise ValueError(f"--{name} is 0: there is nothing before it")
        both = self.start and self.end and (self.start.time is None) == (self.end.time is None)
        if both and (self.start.frames or self.start.time or 0) >= (self.end.frames or self.end.time):
            raise ValueError(f"--start ({self.start.words}) must be before --end ({self.end.words})")

    @property
    def is_whole(self):
        return not (self.start or self.end or self.duration)

    @property
    def until(self):
        """The time in seconds at which the part ends, if it is known without a clip, otherwise None."""
        if self.end and self.end.time is not None:
            return self.end.time / Gst.SECOND
        if self.duration and self.duration.time is not None and (not self.start or self.start.time is not None):
            return ((self.start.time if self.start else 0) + self.duration.time) / Gst.SECOND
        return None

    @property
    def words(self):
        """A readable text about the analysed part."""
        texts = [f"{word} {value.words}" for word, value in (("from", self.start), ("to", self.end)) if value]
        if self.duration:
            texts.append(("" if self.start else "the first ") + self.duration.length)
        return ", ".join(texts + ([f"without {self.skip} frames after each"] if self.skip else []))

    def as_texts(self):
        """The values that differ from the defaults, for of_texts()."""
        return {name: str(getattr(self, name))
                for name in ("start", "end", "duration", "skip", "rate") if getattr(self, name)}


def of_texts(texts):
    """The Part for the result of Part.as_texts()."""
    return Part(**{name: {"skip": int, "rate": rate_of}.get(name, time_of)(text) for name, text in texts.items()})


def add_options(parser):
    """Adds the options of a part to a parser of argparse. DVR-Scan's names also work."""
    parser.add_argument("--start", "--start-time", type=time_of, metavar="TIME", help=f"where to begin: {FORMS}")
    parser.add_argument("--end", "--end-time", type=time_of, metavar="TIME", help="where to end, in the same forms")
    parser.add_argument("--duration", type=time_of, metavar="TIME", help="length of the part, instead of --end")
    parser.add_argument("--frame-skip", type=common.number(int, 0, 10000), default=0, metavar="N",
                        help="skip N frames after each analysed frame (0)")
    parser.add_argument("--min-event", "--min-event-length", type=time_of, metavar="TIME",
                        help="omit shorter motions and shorter visits of objects")
    parser.add_argument("--rate", type=rate_of, metavar="RATE",
                        help="frames per second of a clip without times, such as a raw .h264 file")


def of_options(parser, args):
    """The Part for the options. Ends the program if they are wrong."""
    try:
        return Part(args.start, args.end, args.duration, args.frame_skip, args.rate)
    except ValueError as error:
        parser.error(str(error))


def stream_time_of(pad, buffer):
    """The stream time of a buffer at a pad in ns, or None; below 0 if it is before the beginning."""
    event = pad.get_sticky_event(Gst.EventType.SEGMENT, 0)  # None if the pad is being stopped
    if not event or buffer.pts == Gst.CLOCK_TIME_NONE:
        return None
    sign, when = event.parse_segment().to_stream_time_full(Gst.Format.TIME, buffer.pts)
    return sign * when if sign else None


def factories_before(pad):
    """The factories of the elements in the source before a sink pad."""
    element = pad.get_peer() and pad.get_peer().get_parent_element()
    if element and element.get_name() == upright.NAME:  # keep() inserted it before the pad
        return factories_before(element.get_static_pad("sink"))
    if not isinstance(element, Gst.Bin):
        return []
    found, factories = element.iterate_recurse(), []
    found.foreach(lambda each: factories.append(each.get_factory()))
    return list(filter(None, factories))


def is_indexed(pad):
    """Whether the source before a sink pad has a demuxer that finds any time exactly."""
    return any(each.get_name() in INDEXED for each in factories_before(pad))


def is_raw(pad):
    """Whether the source before a sink pad reads a file without a container."""
    factories = factories_before(pad)
    return any(each.get_name() == "filesrc" for each in factories) and not any(
        "Demuxer" in each.get_metadata("klass") for each in factories)


def give_times(pad, rate):
    """Gives frames at a sink pad the times of a clip with this frame rate, if they have none or come from a file
    without a container. In such files, GStreamer gives H.265 times, but always for 25 frames per second."""
    start, count, raw, passing = 0, 0, None, False  # start: the time of a frame; count: the number of frames since then

    def on_buffer(pad, info):
        nonlocal start, count, raw, passing
        if passing:
            return Gst.PadProbeReturn.OK
        buffer = info.get_buffer()
        raw = is_raw(pad) if raw is None else raw
        if buffer.pts != Gst.CLOCK_TIME_NONE and not raw:
            start, count = buffer.pts, 1
            return Gst.PadProbeReturn.OK
        timed = common.without_times(buffer)
        timed.pts = start + count * Gst.SECOND * rate.denominator // rate.numerator
        timed.duration = Gst.SECOND * rate.denominator // rate.numerator
        count += 1
        passing = True
        pad.chain(timed)
        passing = False
        return Gst.PadProbeReturn.DROP

    pad.add_probe(Gst.PadProbeType.BUFFER, on_buffer)


def complain(pad, sentence):
    """Posts an error on behalf of the element of a pad."""
    element = pad.get_parent_element()
    error = GLib.Error.new_literal(Gst.stream_error_quark(), sentence, Gst.StreamError.FAILED)
    element.post_message(Gst.Message.new_error(element, error, ""))


class Gate:
    """Lets the frames of a part pass a sink pad. `reached` is the stream time in seconds up to which frames arrived,
    whether they passed or not. `skip`: whether the Gate also omits frames; otherwise skip_frames() must do so
    elsewhere."""

    def __init__(self, pad, part, skip=True):
        self.pad, self.part, self.skip = pad, part if skip else replace(part, skip=0), skip
        self.came = self.passed = 0
        self.began, self.end, self.reached, self.ended = None, None, 0.0, False
        self.lock, self.block, self.places = threading.Lock(), None, []
        if part.rate:
            give_times(pad, part.rate)
        if part.is_whole and not part.skip:
            return
        pad.add_probe(Gst.PadProbeType.BUFFER, self.on_buffer)
        start, end = part.start, part.end
        if start and start.time and (not end or end.frames is None):  # frame numbers are counted from the beginning
            self.places = [max(start.time - MARGIN, 0), 0]
            self.block = pad.add_probe(Gst.PadProbeType.BLOCK | Gst.PadProbeType.BUFFER, self.on_block)

    @property
    def over(self):
        """The stream time in seconds at which the part ended, or None if it did not."""
        return self.reached if self.ended else None

    def on_block(self, pad, info):
        """Seeks from the first frame, and again from the beginning if no frame before the start was found."""
        when = stream_time_of(pad, info.get_buffer())
        first = len(self.places) == 2
        if (when is None or not self.places or (first and not (when < self.part.start.time - NEAR and is_indexed(pad)))
                or (not first and when <= self.part.start.time)):
            with self.lock:
                self.block = None
            return Gst.PadProbeReturn.REMOVE
        # Another thread seeks, because the seek has to stop this one. Frames wait for the seek.
        threading.Thread(target=self.search, args=(self.places.pop(0),), daemon=True).start()
        return Gst.PadProbeReturn.OK

    def search(self, place):
        flags = Gst.SeekFlags.FLUSH | Gst.SeekFlags.KEY_UNIT | Gst.SeekFlags.SNAP_BEFORE
        event = Gst.Event.new_seek(1, Gst.Format.TIME, flags, Gst.SeekType.SET, place, Gst.SeekType.NONE, 0)
        if self.pad.push_event(event):
            return
        with self.lock:  # a seek is not possible: the earlier frames are decoded and dropped
            if self.block:
                self.pad.remove_probe(self.block)
                self.block = None

    def on_buffer(self, pad, info):
        buffer, part = info.get_buffer(), self.part
        when = stream_time_of(pad, buffer)
        needed = [each for each in (part.start, part.end, part.duration) if each and each.time is not None]
        if when is None and needed:
            complain(pad, "the frames of the clip have no times; set --rate, its frames per second, or give its part "
                     "in frames")
            return Gst.PadProbeReturn.DROP
        self.came += 1
        if when is not None:
            length = buffer.duration if buffer.duration != Gst.CLOCK_TIME_NONE else 0
            self.reached = max(self.reached, (when + length) / Gst.SECOND)
        if self.began is None:
            if part.start and (self.came <= part.start.frames if part.start.time is None
                               else when + ROUNDED < part.start.time):
                return Gst.PadProbeReturn.DROP
            self.began = when
            if part.end and part.end.time:
                self.end = part.end.time
            if part.duration and part.duration.time:
                start = (part.start.time if part.start.time is not None else when) if part.start else 0
                self.end = start + part.duration.time
        if self.is_over(when):
            if not self.ended:
                self.ended = True
                pad.send_event(Gst.Event.new_eos())
            return Gst.PadProbeReturn.DROP
        self.passed += 1
        return Gst.PadProbeReturn.DROP if (self.passed - 1) % (part.skip + 1) else Gst.PadProbeReturn.OK

    def is_over(self, when):
        part = self.part
        if self.end is not None:
            return when + ROUNDED >= self.end
        return ((part.end is not None and self.came > part.end.frames)
                or (part.duration is not None and self.passed >= part.duration.frames))

    def why_nothing(self):
        """A sentence if the clip has frames, but the part has none; otherwise an empty text."""
        if not self.came or self.passed:
            return ""
        ends = (f"{self.came} frames" if self.part.start and self.part.start.time is None
                else f"frames until {self.reached:.3f} s")
        return f"there is no frame in the part ({self.part.words}), because the clip has {ends}"


def skip_frames(pad, count):
    """Omits `count` frames after each one that passes a sink pad."""
    if count:
        Gate(pad, Part(skip=count))
