# SPDX-License-Identifier: LGPL-2.1-or-later
"""Cuts events out of a video file at its key frames, without encoding: each event becomes a file of its own, with the
sound that its container can hold.

A clip begins at the last key frame before the wanted time, so it may begin earlier than asked for. The list of clips,
clips.csv and clips.json, says where each one really begins and ends."""
import collections
import contextlib
import csv
import datetime
import io
import json
import os
import re
import time
from dataclasses import dataclass, field
from typing import Optional

import clip_facts
import common
import edl
from common import Gst

import gi
gi.require_version("GstApp", "1.0")
gi.require_version("GstPbutils", "1.0")
from gi.repository import GstApp, GstPbutils  # noqa: E402, F401: GstApp gives appsrc and appsink their signals

KINDS = "motions", "visits"  # of events, for --clips
FORMATS = {**clip_facts.PLAYED, **clip_facts.KEPT}  # also for recordings; clip_facts.OLD can be cut, too
LISTS = "clips.csv", "clips.json"
EDL = "clips.edl"  # for editors
MATROSKA = "matroskamux"  # holds sound that the container of a codec does not, such as G.711 and PCM
COLUMNS = "file", "begin_s", "end_s", "event_begin_s", "event_end_s", "begin_clock", "object"
NAME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d|\d+h\d\dm\d\d\.\ds)_\d{4,}(_object-\d+)?\.(mp4|webm|avi|mkv)")

QUEUED = 8 * 2 ** 20  # bytes of a clip that wait to be written, at most
PATIENCE = 60 * Gst.SECOND  # for a file that opens, and for one that is finished

COPIED = (Gst.BufferCopyFlags.FLAGS | Gst.BufferCopyFlags.TIMESTAMPS | Gst.BufferCopyFlags.META
          | Gst.BufferCopyFlags.MEMORY)


def with_kinds(texts):
    """A command line in which --clips has a value, because argparse would take a clip after it for that."""
    return [f"{text}=motions" if text == "--clips" and after not in KINDS else text
            for text, after in zip(texts, [*texts[1:], None])]


@dataclass
class Event:
    """A motion, or a visit of an object if it has a number. Times are stream times in seconds."""
    begin: float
    end: float
    number: Optional[int] = None
    row: dict = field(default_factory=dict)  # of its clip


def format_of(codec):
    """Elements between a demuxer and the muxer, the muxer and the suffix for a codec that can be cut."""
    return FORMATS.get(codec) or clip_facts.OLD[codec]


def can_cut(facts):
    """Whether the video of a file with these facts can be cut: its times are exact, and a container takes it."""
    return bool(facts) and (facts.codec in FORMATS or facts.codec in clip_facts.OLD) and facts.container in (
        "video/quicktime,iso", "video/quicktime", "video/x-matroska", "video/webm", "video/x-msvideo")


def why_not(facts):
    """A sentence about a file that cannot be cut."""
    if not facts:
        return "there is no video in it, or it cannot be read"
    return f"{facts.codec} in {facts.container.partition(',')[0]} cannot be cut without encoding"


def name_of(index, event, begin, began, suffix):
    """The name of a clip that begins at `begin` in seconds; `began` is the clock time of the beginning of the whole
    file, or None."""
    if began:
        when = (began + datetime.timedelta(seconds=begin)).strftime("%Y-%m-%dT%H-%M-%S")
    else:
        tenths = int(begin * 10)
        when = f"{tenths // 36000:02}h{tenths // 600 % 60:02}m{tenths // 10 % 60:02}.{tenths % 10}s"
    return f"{when}_{index:04}{'' if event.number is None else f'_object-{event.number}'}.{suffix}"


def wait(pipeline, kind, sentence):
    """Waits for a message. Raises a Failure after an error, and with this sentence if nothing comes."""
    message = pipeline.get_bus().timed_pop_filtered(PATIENCE, kind | Gst.MessageType.ERROR)
    if not message:
        raise common.Failure(f"{sentence} within {PATIENCE // Gst.SECOND} s")
    common.check(message)


def plain(caps):
    """What a stream of sound is, without the way in which its container has it."""
    name, version = common.fields_of(caps, "name", "mpegversion")
    return f"{name},mpegversion={version}" if version else name


def held(muxer, caps):
    """Whether the container of a muxer holds this sound."""
    muxer = Gst.ElementFactory.find(muxer.split()[0])
    wanted = Gst.Caps.from_string(plain(caps))
    return bool(muxer) and any(each.name_template.startswith("audio") and each.get_caps().can_intersect(wanted)
                               for each in muxer.get_static_pad_templates())


def made(facts):
    """As format_of(), for clips of a file with these facts: Matroska, if that holds sound which would be lost."""
    parser, muxer, suffix = format_of(facts.codec)
    lost = any(held(MATROSKA, caps) and not held(muxer, caps) for caps in facts.sounds)
    return (parser, MATROSKA, "mkv") if lost else (parser, muxer, suffix)


def sounds_of(facts):
    """The caps of the streams of sound that clips of a file with these facts have."""
    return [caps for caps in facts.sounds if held(made(facts)[1], caps)]


def left_out(facts):
    """A sentence about the sound and the turn that clips of a file with these facts do not have; empty if
    they have all."""
    if not can_cut(facts):
        return ""
    turn = "the clips are not turned, as players turn the file" if facts.turned else ""  # no muxer writes that
    names = [GstPbutils.pb_utils_get_codec_description(caps) or plain(caps)
             for caps in facts.sounds if not held(made(facts)[1], caps)]
    if facts.unheard:
        return "; ".join(filter(None, (f"sound is left out: {facts.unheard}", turn)))
    sound = (f"sound is left out, because .{made(facts)[2]} cannot hold it: {', '.join(names)}"
             if names else "")
    return "; ".join(filter(None, (sound, turn)))


def parser_of(caps):
    """The element between a demuxer and the muxer for a stream of sound."""
    kind = plain(caps)
    return {"audio/mpeg,mpegversion=1": "mpegaudioparse", "audio/x-ac3": "ac3parse", "audio/x-flac": "flacparse"}.get(
        kind, "aacparse" if kind.startswith("audio/mpeg") else "identity")


class Reader:
    """Reads the encoded streams of a file between two times: 0 is the video, 1 and more are those of sounds_of(). Use
    it in a `with` block. `until`: the time of time.monotonic() at which it gives up, or None."""

    def __init__(self, path, facts, until=None):
        sounds, self.codec, self.until = sounds_of(facts), facts.codec, until
        caps = Gst.Caps.from_string(";".join([facts.codec, *map(plain, sounds)]))
        sinks = [f"appsink name=sink{number} sync=false max-buffers=64 async={'false' if number else 'true'}"
                 for number in range(len(sounds) + 1)]
        self.pipeline = common.parse(f"uridecodebin name=clip expose-all-streams=false {' '.join(sinks)}",
                                     clip={"uri": common.uri_of(path), "caps": caps})
        self.sinks, self.bus = ([self.pipeline.get_by_name(f"sink{number}") for number in range(len(sinks))],
                                self.pipeline.get_bus())
        self.pipeline.get_by_name("clip").connect("pad-added", self.on_pad)

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
        """The time in seconds of the last key frame before a time, at which a clip would begin; that time itself if
        there is none."""
        begin = int(max(when, 0) * Gst.SECOND)
        for number, sample in self.samples(begin, begin + 1):
            if number == 0 and sample and not sample.get_buffer().has_flags(Gst.BufferFlags.DELTA_UNIT):
                buffer = sample.get_buffer()
                return stream_time(sample, buffer.pts if buffer.pts != Gst.CLOCK_TIME_NONE else buffer.dts) / Gst.SECOND
        return when

    def samples(self, begin, end):
        """Yields pairs of a stream and a sample of it, from the last key frame before `begin` (ns) up to `end`; None
        instead of a sample is the end of a stream. Streams come in any order."""
        flags = Gst.SeekFlags.FLUSH | Gst.SeekFlags.KEY_UNIT | Gst.SeekFlags.SNAP_BEFORE
        if not self.pipeline.seek(1, Gst.Format.TIME, flags, Gst.SeekType.SET, begin, Gst.SeekType.SET, end):
            raise common.Failure("its video cannot be cut, because it cannot be searched")
        running = {number for number, sink in enumerate(self.sinks) if sink.get_static_pad("sink").is_linked()}
        yield from ((number, None) for number in range(len(self.sinks)) if number not in running)
        while running:
            if self.until is not None and time.monotonic() > self.until:
                raise common.Failure("its video could not be cut in time")
            came = False
            # Also those that are at their end, because they hold the demuxer otherwise.
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
    """The stream time of a time of a sample; below 0 if it is before the beginning."""
    sign, found = sample.get_segment().to_stream_time_full(Gst.Format.TIME, when)
    return sign * found


def is_after(sample, end):
    """Whether a sample is after a stream time. Some demuxers go on there."""
    times = [when for when in (sample.get_buffer().dts, sample.get_buffer().pts) if when != Gst.CLOCK_TIME_NONE]
    return bool(times) and stream_time(sample, min(times)) > end


class Writer:
    """Writes a clip to an open file. Its times begin at 0 with the first picture, or with the time at which that is
    decoded. Sound before the first picture and after the last one is left out. Use it in a `with` block."""

    def __init__(self, facts, stream, muxer=None):
        self.stream, self.muxer, self.pipeline = stream, muxer or made(facts)[1], None
        self.parsers = [format_of(facts.codec)[0], *map(parser_of, sounds_of(facts))]
        # Samples for which the muxer is not open, or which come too early.
        self.waiting = [collections.deque() for _ in self.parsers]
        self.ended = [False] * len(self.parsers)
        self.sources = {}  # stream: appsrc, until its end
        self.first = self.shown = None  # times of the first key frame: when it is decoded, and when it is shown
        self.zero = None  # the stream time at which it is shown
        self.begin = self.end = None  # stream times of the pictures until now

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.pipeline:
            self.pipeline.set_state(Gst.State.NULL)

    def add(self, number, sample):
        """Takes a sample of a stream, or None at its end."""
        if not sample:
            self.ended[number] = True
        elif number or self.look(sample):
            self.waiting[number].append(sample)
        if self.first is not None:
            self.move()

    def look(self, sample):
        """Notes the times of a picture. Returns False if it is decoded or shown before the key frame, because it needs
        frames before that. (Beside sound, qtdemux of GStreamer 1.22 begins before the key frame.)"""
        pts, dts, duration = sample.get_buffer().pts, sample.get_buffer().dts, sample.get_buffer().duration
        if self.first is None:
            if sample.get_buffer().has_flags(Gst.BufferFlags.DELTA_UNIT):
                return False
            self.first, self.shown = min(pts, dts), pts if pts != Gst.CLOCK_TIME_NONE else dts
            self.zero = self.begin = self.end = stream_time(sample, self.shown)
        if pts < self.first:
            return False
        when = stream_time(sample, pts if pts != Gst.CLOCK_TIME_NONE else dts)
        self.begin, self.end = (min(when, self.begin),
                                max(when + (duration if duration != Gst.CLOCK_TIME_NONE else 0), self.end))
        return True

    def since(self, sample):
        """How long after the first picture a sound is; below 0 if it is before, or has no time."""
        pts = sample.get_buffer().pts
        return -1 if pts == Gst.CLOCK_TIME_NONE else stream_time(sample, pts) - self.zero

    def move(self):
        """Gives the muxer what it can take."""
        for sound in self.waiting[1:]:
            while sound and self.since(sound[0]) < 0:
                sound.popleft()
            while self.ended[0] and sound and self.since(sound[-1]) >= self.end - self.zero:
                sound.pop()
        if not self.pipeline:
            # A stream without a sample would spoil the file, so it must be known which ones have some.
            if not all(ended or self.is_due(sound) for sound, ended in list(zip(self.waiting, self.ended))[1:]):
                return
            self.open()
        for number, waiting in enumerate(self.waiting):
            while number in self.sources and (waiting if number == 0 else self.is_due(waiting)):
                self.push(number, waiting.popleft())
            if self.ended[number] and not waiting and number in self.sources:
                self.sources.pop(number).emit("end-of-stream")

    def is_due(self, sound):
        """Whether the first sample of a stream of sound is not after the last picture until now."""
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
        """Gives the muxer a sample, and waits while too much is queued, unless the muxer waits for another stream.
        (appsrc block=true would wait for ever after an error.)"""
        buffer = sample.get_buffer()
        copy = buffer.copy_region(COPIED, 0, buffer.get_size())
        if number:
            copy.pts, copy.dts = self.since(sample) + self.shown - self.first, Gst.CLOCK_TIME_NONE
        else:
            if buffer.pts != Gst.CLOCK_TIME_NONE:
                copy.pts = buffer.pts - self.first
            if buffer.dts != Gst.CLOCK_TIME_NONE:
                copy.dts = max(buffer.dts - self.first, 0)
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
        """Ends the file. Returns the stream times in ns at which its pictures begin and end; None if there is none."""
        for number in range(len(self.ended)):
            self.add(number, None)
        if self.first is None:
            return None
        wait(self.pipeline, Gst.MessageType.EOS, "a clip was not written to its end")
        return self.begin, self.end


def write(samples, facts, stream, muxer=None):
    """Writes samples, see Reader.samples(), to an open file, with the muxer of the codec or another one. Returns what
    Writer.finish() returns."""
    with Writer(facts, stream, muxer) as writer:
        for number, sample in samples:
            writer.add(number, sample)
        return writer.finish()


def forget(folder, path):
    """Removes the clips of an earlier run, except for `path`, which may be one of them."""
    for name in filter(NAME.fullmatch, os.listdir(folder)):
        if os.path.realpath(os.path.join(folder, name)) != os.path.realpath(path):
            os.unlink(os.path.join(folder, name))


def forget_listed(folder, path):
    """Removes the lists of an earlier run, and the clips that they name, except for `path`, which may be one of them.
    Leaves what is not as an earlier run wrote it."""
    lists = [os.path.join(folder, name) for name in (*LISTS, EDL)]
    try:
        with open(lists[0], encoding="utf-8", newline="") as table, open(lists[1], encoding="utf-8") as rows:
            ours, names = table.readline() == ",".join(COLUMNS) + "\r\n", [row["file"] for row in json.load(rows)]
    except (OSError, ValueError, TypeError, KeyError):  # there are none, or they are somebody else's
        return
    files = [os.path.join(folder, name) for name in names if isinstance(name, str) and NAME.fullmatch(name)]
    for file in files + lists if ours else ():
        if not (path and os.path.realpath(file) == os.path.realpath(path)):
            with contextlib.suppress(OSError):
                os.unlink(file)
    with contextlib.suppress(OSError):  # it has other files
        os.rmdir(folder)


def cut(path, facts, events, folder, before=2, after=2, began=None, offset=0, until=None, name=None):
    """Writes a clip of each event into a folder, with `before` and `after` seconds around it, and the lists. Events
    whose clips would overlap have one clip, unless they are visits of different objects. Returns the rows of the lists.
    `offset` is the stream time of the events' clock at which the file begins, `until` the time
    of time.monotonic() at which it gives up, `name` the clip in the list for editors. Raises a Failure; then the lists
    have the clips until then, and their events have their rows."""
    rows = []
    try:
        os.makedirs(folder, exist_ok=True)
        forget(folder, path)
        try:
            cut_each(path, facts, events, folder, before, after, began, offset, until, rows)
        finally:
            write_lists(rows, folder, name or os.path.basename(path), facts.rate)
    except OSError as error:
        raise common.Failure(f"cannot write to {folder}: {error.strerror}") from error
    return rows


def cut_each(path, facts, events, folder, before, after, began, offset, until, rows):
    """As cut(), but without the lists: `rows` gets their rows. If that fails with sound, it is done again without."""
    if sounds_of(facts):
        try:
            cut_all(path, facts, events, folder, before, after, began, offset, until, rows)
            return
        except common.Failure as failure:
            facts.sounds, facts.unheard = (), str(failure)
            rows.clear()
            forget(folder, path)
            for event in events:
                event.row = {}
    cut_all(path, facts, events, folder, before, after, began, offset, until, rows)


def cut_all(path, facts, events, folder, before, after, began, offset, until, rows):
    """As cut_each(), once."""
    suffix = made(facts)[2]
    with Reader(path, facts, until) as reader:
        for group in together(events, before, after, lambda when: reader.key_before(when - offset) + offset):
            event = Event(group[0].begin, max(each.end for each in group), group[0].number)
            wanted = max(event.begin - before - offset, 0), event.end + after - offset
            with common.Unfinished(folder) as file:
                found = write(reader.samples(*(int(time * Gst.SECOND) for time in wanted)), facts, file.stream)
                if not found:
                    continue
                begin, end = (time / Gst.SECOND + offset for time in found)
                name = name_of(len(rows) + 1, event, begin, began, suffix)
                file.become(os.path.join(folder, name))
            clock = (began + datetime.timedelta(seconds=begin)).isoformat(timespec="milliseconds") if began else ""
            row = dict(zip(COLUMNS, (name, round(begin, 3), round(end, 3), round(event.begin, 3),
                                     round(event.end, 3), clock, "" if event.number is None else event.number)))
            for each in group:
                each.row = row
            rows.append(row)


def together(events, before, after, key_before):
    """Lists of events that have one clip, in the order of their first events: those whose clips would overlap, which
    begin at the last key frame before the wanted time. Visits of different objects stay apart."""
    groups, last = [], {}
    for event in sorted(events, key=lambda each: each.begin):
        group, begin = last.get(event.number), max(event.begin - before, 0)
        end = max(each.end for each in group) + after if group else None
        if group and (begin <= end or key_before(begin) <= end):
            group.append(event)
        else:
            last[event.number] = [event]
            groups.append(last[event.number])
    places = {id(event): place for place, event in enumerate(events)}
    return sorted(groups, key=lambda group: min(places[id(event)] for event in group))


def write_lists(rows, folder, name, rate):
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS)
    writer.writeheader()
    writer.writerows(rows)
    parts = [(row["begin_s"], row["end_s"]) for row in rows]
    contents = text.getvalue(), json.dumps(rows, indent=1) + "\n", edl.text_of(name, parts, rate)
    for file, content in zip((*LISTS, EDL), contents):
        with common.whole(os.path.join(folder, file)) as stream:
            stream.write(content.encode())
