# SPDX-License-Identifier: LGPL-2.1-or-later
"""Reads encoded samples of a part of a file, and writes them as a separate clip."""
import collections
import time

import clip_formats
import common
from clip_formats import made, plain, sounds_of
from common import Gst

import gi
gi.require_version("GstApp", "1.0")
from gi.repository import GstApp  # noqa: E402, F401: gives appsrc and appsink their signals

QUEUED = 8 * 2 ** 20  # maximum number of bytes of a clip that wait to be written
GAP = 2 * Gst.SECOND  # see gap_of()
FAR = 24 * 3600 * Gst.SECOND  # where to look for a key frame after a gap
PATIENCE = 60 * Gst.SECOND  # time limit for opening a file, and for finishing one

COPIED = (Gst.BufferCopyFlags.FLAGS | Gst.BufferCopyFlags.TIMESTAMPS | Gst.BufferCopyFlags.META
          | Gst.BufferCopyFlags.MEMORY)


def wait(pipeline, kind, sentence):
    """Waits for a message. Raises a Failure after an error, or with this sentence after a timeout."""
    message = pipeline.get_bus().timed_pop_filtered(PATIENCE, kind | Gst.MessageType.ERROR)
    if not message:
        raise common.Failure(f"{sentence} within {PATIENCE // Gst.SECOND} s")
    common.check(message)


class Reader:
    """Reads the encoded streams of a file between two times: 0 is the video, 1 and more are the streams of sounds_of().
    Use it in a `with` block. `until`: the value of time.monotonic() at which it gives up, or None."""

    def __init__(self, path, facts, until=None):
        sounds, self.facts, self.codec, self.until = sounds_of(facts), facts, facts.codec, until
        caps = Gst.Caps.from_string(";".join([facts.codec, *map(plain, sounds)]))
        sinks = [f"appsink name=sink{number} sync=false max-buffers=64 async={'false' if number else 'true'}"
                 for number in range(len(sounds) + 1)]
        self.pipeline = common.parse(f"uridecodebin name=clip expose-all-streams=false {' '.join(sinks)}",
                                     clip={"uri": common.uri_of(path), "caps": caps})
        self.sinks, self.bus = ([self.pipeline.get_by_name(f"sink{number}") for number in range(len(sinks))],
                                self.pipeline.get_bus())
        self.pipeline.get_by_name("clip").connect("pad-added", self.on_pad)

    def facts_for(self, *_):
        return self.facts

    def on_pad(self, _, pad):
        name, = common.fields_of(pad.get_current_caps() or pad.query_caps(None), "name")
        inputs = [sink.get_static_pad("sink") for sink in (self.sinks[:1] if name == self.codec else self.sinks[1:])]
        if free := next((each for each in inputs if not each.is_linked()), None):
            pad.link(free)

    def __enter__(self):
        try:
            self.pipeline.set_state(Gst.State.PAUSED)
            wait(self.pipeline, Gst.MessageType.ASYNC_DONE, "its video cannot be cut: it did not open")
            self.pipeline.set_state(Gst.State.PLAYING)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.pipeline.set_state(Gst.State.NULL)

    def key_before(self, when):
        """The time in seconds of the key frame at which a clip from this time on would begin; the time itself if there
        is none."""
        begin = int(max(when, 0) * Gst.SECOND)
        for number, sample in self.samples(begin, begin + FAR):
            if number == 0 and sample and is_key(sample):
                return shown_at(sample) / Gst.SECOND
        return when

    def samples(self, begin, end):
        """Yields pairs of a stream number and a sample, from the last key frame before `begin` (ns) up to `end`. If
        there is a gap before `begin`, they begin with the key frame after the gap. None instead of a sample marks the
        end of a stream. Streams are interleaved in any order."""
        return after_gap(self.all_samples(begin, end), begin, gap_of(self.facts))

    def all_samples(self, begin, end):
        """The same, always from the last key frame before `begin` on."""
        flags = Gst.SeekFlags.FLUSH | Gst.SeekFlags.KEY_UNIT | Gst.SeekFlags.SNAP_BEFORE
        if not self.pipeline.seek(1, Gst.Format.TIME, flags, Gst.SeekType.SET, begin, Gst.SeekType.SET, end):
            raise common.Failure("its video cannot be cut, because GStreamer cannot seek in it")
        running = {number for number, sink in enumerate(self.sinks) if sink.get_static_pad("sink").is_linked()}
        yield from ((number, None) for number in range(len(self.sinks)) if number not in running)
        while running:
            if self.until is not None and time.monotonic() > self.until:
                raise common.Failure("its video could not be cut in time")
            came = False
            # This includes streams at their end, because they would block the demuxer otherwise.
            for number, sink in enumerate(self.sinks):
                sample = sink.emit("try-pull-sample", 0)
                came = came or bool(sample)
                if number in running and (is_after(sample, end) if sample else sink.get_property("eos")):
                    running.remove(number)
                    yield number, None
                elif sample and number in running:
                    yield number, sample
            common.check(self.bus.timed_pop_filtered(0 if came else Gst.SECOND // 100, Gst.MessageType.ERROR))


def stream_time(sample, when):
    """The stream time for a time of a sample; below 0 if it is before the beginning."""
    sign, found = sample.get_segment().to_stream_time_full(Gst.Format.TIME, when)
    return sign * found


def gap_of(facts):
    """Pictures that are further apart, in ns, have a gap between them."""
    return max(GAP, 10 * Gst.SECOND / (facts.rate or 25))


def shown_at(sample):
    """The stream time of a picture."""
    buffer = sample.get_buffer()
    return stream_time(sample, buffer.pts if buffer.pts != Gst.CLOCK_TIME_NONE else buffer.dts)


def is_key(sample):
    return not sample.get_buffer().has_flags(Gst.BufferFlags.DELTA_UNIT)


def after_gap(samples, begin, gap):
    """Pairs of a stream number and a sample, without those before the last gap that ends with a key frame, unless a
    picture from `begin` on is before it."""
    held, last = [], None
    for number, sample in samples:
        if held is None:
            yield number, sample
            continue
        if number == 0 and sample:
            when = shown_at(sample)
            if last is not None and when - last > gap and is_key(sample):
                held = [each for each in held if not each[1] or (each[0] and shown_at(each[1]) >= when)]
            last = max(when, last or 0)
        held.append((number, sample))
        if last is not None and last >= begin:
            yield from held
            held = None
    yield from held or ()


def is_after(sample, end):
    """Whether a sample is after a stream time. Some demuxers continue past the end of a seek."""
    times = [when for when in (sample.get_buffer().dts, sample.get_buffer().pts) if when != Gst.CLOCK_TIME_NONE]
    return bool(times) and stream_time(sample, min(times)) > end


class Writer:
    """Writes a clip to an open file. Its times begin at 0 with the first picture, or with the time at which this
    picture is decoded. Sound before the first picture and after the last one is omitted. No picture is shown after
    `latest` (ns). Use it in a `with` block."""

    def __init__(self, facts, stream, muxer=None, latest=float("inf")):
        self.stream, self.muxer, self.pipeline, self.latest = stream, muxer or made(facts)[1], None, latest
        self.parsers = [clip_formats.format_of(facts.codec)[0], *map(clip_formats.parser_of, sounds_of(facts))]
        # Samples that the muxer cannot accept yet.
        self.waiting = [collections.deque() for _ in self.parsers]
        self.ended = [False] * len(self.parsers)
        self.sources = {}  # number of the stream → its appsrc; removed at the end of the stream
        self.first = self.shown = None  # times at which the first key frame is decoded and shown
        self.zero = None  # the stream time at which it is shown
        self.begin = self.end = None  # stream times of the pictures so far
        self.gap, self.count = gap_of(facts), 0
        self.durations = collections.deque()  # of the pictures that wait

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.pipeline:
            self.pipeline.set_state(Gst.State.NULL)

    def add(self, number, sample):
        """Accepts a sample of a stream, or None at its end."""
        if not sample:
            self.ended[number] = True
        elif number or self.look(sample):
            self.waiting[number].append(sample)
        if self.first is not None:
            self.move()

    def look(self, sample):
        """Notes the times of a picture. Returns False if it is decoded or shown before the key frame, because it needs
        earlier frames. With sound, qtdemux of GStreamer 1.22 begins before the key frame."""
        pts, dts = sample.get_buffer().pts, sample.get_buffer().dts
        if self.first is None:
            if not is_key(sample):
                return False
            self.first, self.shown = min(pts, dts), pts if pts != Gst.CLOCK_TIME_NONE else dts
            self.zero = self.begin = self.end = stream_time(sample, self.shown)
        if pts < self.first:
            return False
        when, duration = shown_at(sample), sample.get_buffer().duration
        if duration != Gst.CLOCK_TIME_NONE:
            # The last picture before a gap lasts as long as the gap.
            usual = (when - self.begin) / self.count if self.count else duration
            duration = usual if duration > self.gap and duration > 10 * usual else duration
            duration = max(int(min(duration, self.latest - when)), 0)
        self.count += 1
        self.durations.append(duration)
        self.begin, self.end = (min(when, self.begin),
                                max(when + (duration if duration != Gst.CLOCK_TIME_NONE else 0), self.end))
        return True

    def since(self, sample):
        """The time from the first picture to a sample of sound; below 0 if the sample is earlier or has no time."""
        pts = sample.get_buffer().pts
        return -1 if pts == Gst.CLOCK_TIME_NONE else stream_time(sample, pts) - self.zero

    def move(self):
        """Gives the muxer the samples that it can accept."""
        for sound in self.waiting[1:]:
            while sound and self.since(sound[0]) < 0:
                sound.popleft()
            while self.ended[0] and sound and self.since(sound[-1]) >= self.end - self.zero:
                sound.pop()
        if not self.pipeline:
            # A stream without a sample would spoil the file, so it must be known which streams have samples.
            if not all(ended or self.is_due(sound) for sound, ended in list(zip(self.waiting, self.ended))[1:]):
                return
            self.open()
        for number, waiting in enumerate(self.waiting):
            while number in self.sources and (waiting if number == 0 else self.is_due(waiting)):
                self.push(number, waiting.popleft())
            if self.ended[number] and not waiting and number in self.sources:
                self.sources.pop(number).emit("end-of-stream")

    def is_due(self, sound):
        """Whether the first sample of a sound stream is not after the last picture so far."""
        return bool(sound) and self.since(sound[0]) < max(self.end - self.zero, 1)

    def open(self):
        used = [number for number, waiting in enumerate(self.waiting) if number == 0 or waiting]
        chains = [f"appsrc name=in{number} format=time ! {self.parsers[number]} ! "
                  f"file.{f'audio_{place - 1}' if number else 'video_0'}"
                  for place, number in enumerate(used)]
        self.pipeline = common.parse(f"{self.muxer} name=file ! filesink name=out {' '.join(chains)}",
                                     out={"location": common.location_of(self.stream)},
                                     **{f"in{number}": {"caps": self.waiting[number][0].get_caps()} for number in used})
        self.sources = {number: self.pipeline.get_by_name(f"in{number}") for number in used}
        self.pipeline.set_state(Gst.State.PLAYING)

    def push(self, number, sample):
        """Gives the muxer a sample. Waits while too much is queued, unless the muxer waits for another stream. (appsrc
        block=true would wait forever after an error.)"""
        buffer = sample.get_buffer()
        copy = buffer.copy_region(COPIED, 0, buffer.get_size())
        if number:
            copy.pts, copy.dts = self.since(sample) + self.shown - self.first, Gst.CLOCK_TIME_NONE
        else:
            if buffer.pts != Gst.CLOCK_TIME_NONE:
                copy.pts = buffer.pts - self.first
            if buffer.dts != Gst.CLOCK_TIME_NONE:
                copy.dts = max(buffer.dts - self.first, 0)
            copy.duration = self.durations.popleft()
        source, bus = self.sources[number], self.pipeline.get_bus()
        source.emit("push-buffer", copy)
        common.check(bus.pop_filtered(Gst.MessageType.ERROR))
        others = [each for each in self.sources.values() if each is not source]
        while self.queued(source) > QUEUED and all(map(self.queued, others)):
            common.check(bus.timed_pop_filtered(Gst.SECOND // 100, Gst.MessageType.ERROR))

    @staticmethod
    def queued(source):
        return source.get_property("current-level-bytes")

    def finish(self):
        """Ends the file. Returns the stream times in ns at which its pictures begin and end; None if it has no
        pictures."""
        for number in range(len(self.ended)):
            self.add(number, None)
        if self.first is None:
            return None
        wait(self.pipeline, Gst.MessageType.EOS, "a clip was not written to its end")
        return self.begin, self.end


def write(samples, facts, stream, muxer=None, latest=float("inf")):
    """Writes samples (see Reader.samples()) to an open file, with this muxer or the usual one of the codec. No
    picture is shown after `latest` (ns). Returns the result of Writer.finish()."""
    with Writer(facts, stream, muxer, latest) as writer:
        for number, sample in samples:
            writer.add(number, sample)
        return writer.finish()
