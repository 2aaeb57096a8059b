# SPDX-License-Identifier: LGPL-2.1-or-later
"""Which frames of a clip could not be read, for the Python programs.

  samples → parser → decoder → frames       Losses compares what goes in with what comes out, by their times
               log of demuxer and decoder    says where a file is damaged

A decoder fills what is damaged in a picture with something else, and so does each frame that depends on it. This would
be motion. So after damage frames are dropped until the next key frame. They count as lost, like those that the decoder
does not give, and those that a demuxer skipped: there a time is missing, of which the number of frames follows.

No loss is: what comes before the first key frame, what an edit list hides, and a pause in a clip without damage.
libav sets no flag for a damaged frame, and output-corrupt=false changes nothing (GStreamer 1.22), so its log is read.
H.265 and JPEG have no check of their data: damage that a decoder does not notice there is not seen here, either."""
import collections
import os
import re
import statistics
import threading
from dataclasses import dataclass

import common
from common import Gst

# Containers whose index has an entry for each frame: what their demuxers emit are frames. Others emit packets.
INDEXED = ("asfdemux", "avidemux", "flvdemux", "matroskademux", "qtdemux")
VP8_SHOWN = 0x10  # in the first byte of a sample of VP8, whose frames need not be shown
FIELDS = ("interleaved", "mixed", "fields", "alternate")  # modes in which a sample may be half a frame
# Bytes below which a sample of MPEG-4 part 2 says that there is no frame.
EMPTY = {"video/mpeg": 9, "video/x-divx": 9, "video/x-xvid": 9}
# The log of decoders: a part of a picture is damaged, or the frame on which it depends is missing.
DAMAGED = re.compile("conceal|damaged|error while decoding|Error at MB|Error splitting|Could not find ref with POC|"
                     "CABAC_MAX_BIN|outside the valid range|overread|first frame is no keyframe")
# The log of demuxers: a part of the file was skipped.
SKIPPED = re.compile("parse error|Invalid EBML|CONTINUITY: Mismatch|section discontinuity")
CATEGORIES = {"libav": Gst.DebugLevel.INFO, "ebmlread": Gst.DebugLevel.ERROR,
              "matroskademux": Gst.DebugLevel.WARNING, "tsdemux": Gst.DebugLevel.WARNING,
              "mpegtspacketizer": Gst.DebugLevel.WARNING}
AHEAD = 1000  # samples by which a demuxer may be ahead of the decoder when it skips something
REORDERED = 8  # frames by which a sample may be ahead of the one before, in any clip
EXACT = Gst.MSECOND  # times of a sample and its frame are equal
LONGEST = 3600 * Gst.SECOND  # a hole that is longer is a damaged time
INEXACT = 0.5  # seconds by which a container without an index misjudges its length
listeners, lock = [], threading.Lock()  # the Losses that hear the log


@dataclass
class Span:
    """A time without frames, in seconds. `about`: the number is an estimate."""
    begin: float
    end: float
    frames: int
    about: bool = False


def hear(category, _, __, ___, ____, source, message, *_____):
    """A line of GStreamer's log, in any thread."""
    if category.get_name() not in CATEGORIES:
        return
    text = message.get()
    with lock:
        heard = list(listeners)
    if category.get_name() == "libav":
        if not DAMAGED.search(text):
            return
        # A decoder with one thread works in that of its pipeline; others have threads that nobody knows.
        thread = threading.get_ident()
        for each in [one for one in heard if thread in one.threads] or [one for one in heard if not one.single]:
            each.damaged()
    elif SKIPPED.search(text):
        while isinstance(source, Gst.Object) and source.get_parent():
            source = source.get_parent()
        for each in heard:
            if source is each.pipeline or not isinstance(source, Gst.Object):  # who says it is not always known
                each.skipped()


def listen():
    """Lets GStreamer call hear(). Its own output goes on only if somebody asked for it."""
    if not hasattr(listen, "done"):
        listen.done = True
        if "GST_DEBUG" not in os.environ:
            Gst.debug_remove_log_function(None)
        Gst.debug_add_log_function(hear, None)
        for name, level in CATEGORIES.items():
            Gst.debug_set_threshold_for_name(name, level)
        Gst.debug_set_active(True)


def others(own):
    """Whether other pipelines than that of `own` play now: their logs would be taken for each other's, unless each
    decoder has one thread."""
    with lock:
        return any(each is not own for each in listeners)


class Stream:
    """What goes through one decoder. Times are those of its pads, in ns. `ordered`: samples have the times at which
    their frames are shown; in AVI they do not, and the numbers alone count."""

    def __init__(self, ordered, skips):
        self.ordered, self.matched, self.least_size, self.hides = ordered, None, 1, False
        self.samples = self.good = self.dropped = 0  # dropped: since the last good frame
        self.pending, self.first = [], None  # first: the time of the first key frame
        self.opened = self.last = None  # times of the first and the last good frame
        self.head = 0  # frames that were lost before the first good one
        self.bad, self.good_from = False, None  # whether frames are damaged; the time of the next key frame
        self.skips, self.watch = skips, AHEAD if skips else 0  # samples left to look for a hole
        # The latest time of a sample, that of the one before, how far they may be apart, and how far they are at least.
        self.latest, self.before, self.jump, self.least = None, None, 0, 0
        self.steps, self.usual = collections.deque(maxlen=63), 0  # between good frames; about their median
        self.start, self.stop = 0, None  # of the segment
        self.timeless, self.parsed, self.used = False, False, True
        self.spans, self.segment, self.ended, self.declared = [], None, False, 0

    def step(self):
        """The time between two frames, as usual until now."""
        if self.steps:
            self.usual = statistics.median(self.steps)
        return self.usual or self.least

    def on_first(self, pad):
        """Finds out whether each sample is one frame that is shown."""
        name, mode, version, self.parsed = common.fields_of(pad.get_current_caps(), "name", "interlace-mode",
                                                            "mpegversion", "parsed")
        self.matched, self.hides = mode not in FIELDS, name == "video/x-vp8"
        self.least_size = EMPTY.get(name, 1) if version in (None, 4) else 1

    def on_segment(self, segment):
        if segment.format == Gst.Format.TIME:
            self.start, self.stop = segment.start, None if segment.stop == Gst.CLOCK_TIME_NONE else segment.stop
            if self.segment and (segment.start, segment.base) != (self.segment.start, self.segment.base):
                self.pending, self.latest, self.first = [], None, None  # a seek, or the next part of an edit list
            self.segment = segment

    def on_sample(self, pad, buffer):
        time = buffer.pts
        if time == Gst.CLOCK_TIME_NONE or time in self.pending:
            self.ordered, self.pending = False, []
            time = buffer.dts
        key = not buffer.has_flags(Gst.BufferFlags.DELTA_UNIT)
        if self.matched is None:
            self.on_first(pad)
        if (buffer.get_size() < self.least_size or buffer.has_flags(Gst.BufferFlags.DECODE_ONLY)
                or (self.first is None and not key)
                or (self.hides and not buffer.extract_dup(0, 1)[0] & VP8_SHOWN)):
            return
        if time == Gst.CLOCK_TIME_NONE:
            self.on_timeless(key)
            return
        if self.first is None:
            self.first = time
        if self.latest is not None:
            ahead = time - self.latest
            # How far a sample may be ahead depends on the order of frames; the first few tell.
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
        # Frames of an open group, before its key frame, need those before it. An edit list may hide samples.
        if time < self.first or time < self.start or (self.stop is not None and time >= self.stop):
            return
        self.samples += 1
        if self.ordered:
            self.pending.append(time)

    def on_timeless(self, key):
        """A sample of a stream without a container: the numbers of samples and frames are all there is."""
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
        if time == Gst.CLOCK_TIME_NONE:
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
        """Takes back what was said of a time that was damaged itself. Returns its length in ns."""
        span = self.spans.pop()
        return int((span.end - span.begin) * Gst.SECOND + self.usual)

    def note(self, passed):
        """Counts a step between two frames without a loss."""
        if passed > 0:
            self.steps.append(passed)
            if len(self.steps) in (1, 3) or not self.good % 32:
                self.step()

    def judge(self, before, time, lost):
        """Adds what was lost between two good frames, if something was."""
        passed = time - before
        step = self.step() or passed
        slots = round(passed / step) - 1 if passed < LONGEST else 0
        if self.watch and slots > lost:
            self.add(before + step, time, slots, True)
            self.watch = min(self.watch, 2 * REORDERED)  # a frame of the other side may lie in the hole
        elif lost or (slots > 0 and not self.ordered):
            self.add(before + step if slots > 0 else before, time, lost if self.ordered else max(lost, slots))
        else:
            self.note(passed)

    def seconds(self, time):
        """The stream time of a time of the pads, in seconds."""
        if self.segment:
            time = self.segment.to_stream_time(Gst.Format.TIME, int(time))
        return 0 if time == Gst.CLOCK_TIME_NONE else time / Gst.SECOND

    def add(self, begin, end, frames, about=False):
        if self.matched or about:
            self.spans.append(Span(self.seconds(begin), self.seconds(end), frames, about))

    def add_head(self, step):
        """Adds what was lost before the first good frame."""
        slots = round((self.opened - self.first) / step) if step else 0
        if not self.ordered:
            self.head = max(self.head, slots)
        about = self.skips and slots > self.head
        if self.head or about:
            self.add(self.first, self.opened, max(self.head, slots) if about else self.head, about)
            self.spans.insert(0, self.spans.pop())

    def finish(self, indexed):
        """The spans, in order. `indexed`: the container knows its frames."""
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
        if not self.ordered:  # a hole may be one on purpose, and the numbers tell
            lost = max(0, self.samples - self.good)
            for span in self.spans:
                span.frames = min(span.frames, lost)
                lost -= span.frames
        if lost and not self.ordered and self.spans and self.latest - self.last < 3.5 * step:
            self.spans[-1].frames += lost  # its times are those of decoding
        elif lost > (0 if indexed else 1):  # the last frame of a stream is often cut off
            self.add(self.last + step, max(self.last, self.latest) + step, lost)
        else:
            begin, short = self.seconds(self.last + step), 1.5 * step / Gst.SECOND + (0 if indexed else INEXACT)
            if self.skips and step and self.declared - begin > short:
                frames = round((self.declared - begin) * Gst.SECOND / step)
                self.spans.append(Span(begin, self.declared, frames, True))
        for span in self.spans:  # times may be damaged, too
            span.end = min(span.end, max(span.begin, self.declared)) if indexed and self.declared else span.end
        return [span for span in self.spans if span.frames]


class Losses:
    """Watches the decoders in an element such as a uridecodebin, in a `with` block around the time in which the
    pipeline plays. Use result() behind it."""

    def __init__(self, pipeline, decoders, single=False):
        """`single`: decoders in software have one thread each, which is needed if several pipelines play at a time."""
        self.pipeline, self.decoders, self.single = pipeline, decoders, single
        self.threads, self.streams, self.parsers = set(), [], {}
        self.indexed, self.ordered, self.skips = False, True, False

    def __enter__(self):
        listen()
        self.handler = self.decoders.connect("deep-element-added", self.on_added)
        with lock:
            listeners.append(self)
        return self

    def __exit__(self, *_):
        with lock:
            listeners.remove(self)
        self.decoders.disconnect(self.handler)

    def damaged(self):
        for stream in self.streams:
            stream.damage()

    def skipped(self):
        self.skips = True  # also for decoders that come later
        for stream in self.streams:
            stream.watch, stream.skips = AHEAD, True

    def on_added(self, _, __, element):
        factory = element.get_factory()
        kind, pads = factory.get_metadata("klass"), [element.get_static_pad(name) for name in ("sink", "src")]
        if factory.get_name() in INDEXED:
            self.indexed, self.ordered = True, factory.get_name() != "avidemux"
        elif "Parser" in kind and all(pads):
            self.watch_parser(pads[0])
        elif "Decoder" in kind and ("Video" in kind or "Image" in kind) and all(pads):
            if self.single and factory.get_name().startswith("avdec_") and element.find_property("max-threads"):
                element.set_property("max-threads", 1)
            self.watch_decoder(*pads)

    def watch_parser(self, sink):
        """Keeps what comes into a parser until its decoder has a frame, and then gives it to the Stream."""
        early = self.parsers[sink.get_parent()] = []
        events = Gst.PadProbeType.EVENT_DOWNSTREAM

        def on_event(pad, info):
            event = info.get_event()
            if event.type == Gst.EventType.SEGMENT:
                target = early[0] if early and isinstance(early[0], Stream) else None
                if target:
                    target.on_segment(event.parse_segment())
            return Gst.PadProbeReturn.OK

        def on_buffer(pad, info):
            if early and isinstance(early[0], Stream):
                early[0].on_sample(pad, info.get_buffer())
            elif self.indexed:
                early.append(info.get_buffer())
            else:
                return Gst.PadProbeReturn.REMOVE  # packets, and not frames
            return Gst.PadProbeReturn.OK

        sink.add_probe(Gst.PadProbeType.BUFFER, on_buffer)
        sink.add_probe(events, on_event)

    def parser_of(self, sink):
        """The parser before a decoder, if the container knows its frames."""
        pad = sink.get_peer()
        while self.indexed and pad:
            element = pad.get_parent_element()
            if element in self.parsers:
                return element
            pad = element.get_static_pad("sink") if element else None
            pad = pad and pad.get_peer()
        return None

    def watch_decoder(self, sink, src):
        stream = Stream(self.ordered, self.skips)
        self.streams.append(stream)

        def on_first(pad, _):
            """Decides where samples are counted: before the parser, which drops damaged ones, or behind it."""
            self.threads.add(threading.get_ident())
            segment = pad.get_sticky_event(Gst.EventType.SEGMENT, 0)
            if segment:
                stream.on_segment(segment.parse_segment())
            parser = self.parser_of(sink)
            if parser is None:
                # It gets this sample, too.
                pad.add_probe(Gst.PadProbeType.BUFFER | Gst.PadProbeType.EVENT_DOWNSTREAM, on_sample)
            else:
                early = self.parsers[parser]
                for buffer in early:
                    stream.on_sample(parser.get_static_pad("sink"), buffer)
                early[:] = [stream]
            return Gst.PadProbeReturn.REMOVE

        def on_sample(pad, info):
            if info.type & Gst.PadProbeType.BUFFER:
                stream.on_sample(pad, info.get_buffer())
            elif info.get_event().type == Gst.EventType.SEGMENT:
                stream.on_segment(info.get_event().parse_segment())
            return Gst.PadProbeReturn.OK

        def on_frame(pad, info):
            if stream.good < 8 and pad.get_last_flow_return() == Gst.FlowReturn.NOT_LINKED:
                stream.used = False  # the frames of another track than that which is analysed go nowhere
            return Gst.PadProbeReturn.OK if stream.on_frame(info.get_buffer().pts) else Gst.PadProbeReturn.DROP

        def on_end(_, info):
            if info.get_event().type == Gst.EventType.EOS:
                known, length = sink.peer_query_duration(Gst.Format.TIME)
                stream.ended, stream.declared = True, length / Gst.SECOND if known else 0
            return Gst.PadProbeReturn.OK

        sink.add_probe(Gst.PadProbeType.BUFFER, on_first)
        src.add_probe(Gst.PadProbeType.BUFFER, on_frame)
        src.add_probe(Gst.PadProbeType.EVENT_DOWNSTREAM, on_end)

    @property
    def good(self):
        """How many frames could be read."""
        return sum(stream.good for stream in self.streams if stream.used)

    def result(self, whole=True, until=None):
        """What was lost, as spans in the order of their times. `whole`: the clip was played to its end. `until`: the
        stream time in seconds from which on nobody takes frames, so that demuxers skip them; None: to the end."""
        spans = []
        for stream in self.streams:
            stream.ended &= whole
            spans += stream.finish(self.indexed) if stream.used else []
        return joined(sorted((span for span in spans if until is None or span.begin < until),
                             key=lambda span: span.begin))


def joined(spans):
    """Spans without those that touch each other."""
    made = []
    for span in spans:
        if made and span.begin <= made[-1].end + 1e-3:
            made[-1] = Span(made[-1].begin, max(made[-1].end, span.end), made[-1].frames + span.frames,
                            made[-1].about or span.about)
        else:
            made.append(span)
    return made


def sentence(spans, frames):
    """What people read: `frames` could be read, and these spans could not. An empty text without spans."""
    if not spans:
        return ""
    lost = sum(span.frames for span in spans)
    about = "about " if any(span.about for span in spans) else ""
    places = [f"{span.begin:.1f} to {span.end:.1f} s" for span in spans[:3]]
    if len(spans) > 3:
        places.append(f"{len(spans) - 3} more place{'s' if len(spans) > 4 else ''}")
    if not any(span.end for span in spans):  # of a stream without times
        return f"{about}{lost} of {frames + lost} frames could not be read"
    where = places[0] if len(places) == 1 else f"{', '.join(places[:-1])} and {places[-1]}"
    return f"{about}{lost} of {frames + lost} frames could not be read, {where}"
