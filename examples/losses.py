# SPDX-License-Identifier: LGPL-2.1-or-later
"""Finds the unreadable frames of a clip, for the Python programs.

  samples → parser → decoder → frames       Losses compares the input with the output, by their times
               log of demuxer and decoder    tells where a file is damaged

A decoder fills damaged parts of a picture with other content, and each frame that depends on the picture repeats it.
This would look like motion. Therefore, after damage, frames are dropped until the next key frame. They count as lost,
like frames that the decoder does not output and frames that a demuxer skipped. Where a demuxer skips, there is a gap in
time, whose length gives the number of frames.

These are not losses: frames before the first key frame, frames that an edit list hides, and a pause in a clip without
damage. libav sets no flag for a damaged frame, and output-corrupt=false changes nothing (GStreamer 1.22), so its log is
read. The data of H.265 and JPEG has no checksum: damage that a decoder does not notice there is not found here either.
"""
import os
import re
import threading

from common import Gst
from lost_frames import AHEAD, Span, Stream, joined, sentence  # noqa: F401: Span and sentence are for others

# Containers whose index has an entry for each frame: their demuxers output frames. Other demuxers output packets.
INDEXED = ("asfdemux", "avidemux", "flvdemux", "matroskademux", "qtdemux")
# The log of decoders: a part of a picture is damaged, or a frame on which it depends is missing.
DAMAGED = re.compile("conceal|damaged|error while decoding|Error at MB|Error splitting|Could not find ref with POC|"
                     "CABAC_MAX_BIN|outside the valid range|overread|first frame is no keyframe")
# The log of demuxers: a part of the file was skipped.
SKIPPED = re.compile("parse error|Invalid EBML|CONTINUITY: Mismatch|section discontinuity")
CATEGORIES = {"libav": Gst.DebugLevel.INFO, "ebmlread": Gst.DebugLevel.ERROR,
              "matroskademux": Gst.DebugLevel.WARNING, "tsdemux": Gst.DebugLevel.WARNING,
              "mpegtspacketizer": Gst.DebugLevel.WARNING}
listeners, lock = [], threading.Lock()  # the Losses that get the log
OK = Gst.PadProbeReturn.OK  # each lookup of a name in Gst costs as much as a call


def hear(category, _, __, ___, ____, source, message, *_____):
    """Handles a line of GStreamer's log, in any thread."""
    if category.get_name() not in CATEGORIES:
        return
    text = message.get()
    with lock:
        heard = list(listeners)
    if category.get_name() == "libav":
        if not DAMAGED.search(text):
            return
        # A decoder with one thread works in the thread of its pipeline. The threads of other decoders are unknown.
        thread = threading.get_ident()
        for each in [one for one in heard if thread in one.threads] or [one for one in heard if not one.single]:
            each.damaged()
    elif SKIPPED.search(text):
        while isinstance(source, Gst.Object) and source.get_parent():
            source = source.get_parent()
        for each in heard:
            if source is each.pipeline or not isinstance(source, Gst.Object):  # the source is not always known
                each.skipped()


def listen():
    """Makes GStreamer call hear(). GStreamer still prints its log only if GST_DEBUG is set."""
    if not hasattr(listen, "done"):
        listen.done = True
        if "GST_DEBUG" not in os.environ:
            Gst.debug_remove_log_function(None)
        Gst.debug_add_log_function(hear, None)
        for name, level in CATEGORIES.items():
            Gst.debug_set_threshold_for_name(name, level)
        Gst.debug_set_active(True)


def others(own):
    """Whether pipelines other than the pipeline of `own` are playing. Their logs would be mixed up, unless each decoder
    has one thread."""
    with lock:
        return any(each is not own for each in listeners)


class Losses:
    """Watches the decoders in an element such as a uridecodebin, in a `with` block around the time in which the
    pipeline plays. Call result() after the block."""

    def __init__(self, pipeline, decoders, single=False):
        """`single`: software decoders have one thread each, which is necessary if several pipelines play at the same
        time."""
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
        # Otherwise probes of these elements would keep them alive forever.
        self.decoders = self.pipeline = None
        self.parsers.clear()

    def damaged(self):
        for stream in self.streams:
            stream.damage()

    def skipped(self):
        self.skips = True  # this also applies to decoders that are added later
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
        """Keeps the input of a parser until its decoder outputs a frame, and then passes it to the Stream."""
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
                return Gst.PadProbeReturn.REMOVE  # these are packets, not frames
            return OK

        sink.add_probe(Gst.PadProbeType.BUFFER, on_buffer)
        sink.add_probe(events, on_event)

    def parser_of(self, sink):
        """The parser before a decoder, if the container has an entry for each frame."""
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
            """Decides where samples are counted: before the parser, which drops damaged samples, or after it."""
            self.threads.add(threading.get_ident())
            segment = pad.get_sticky_event(Gst.EventType.SEGMENT, 0)
            if segment:
                stream.on_segment(segment.parse_segment())
            parser = self.parser_of(sink)
            if parser is None:
                # The first of these probes also gets the current sample.
                pad.add_probe(Gst.PadProbeType.BUFFER, on_sample)
                pad.add_probe(Gst.PadProbeType.EVENT_DOWNSTREAM, on_event)
            else:
                early = self.parsers[parser]
                for buffer in early:
                    stream.on_sample(parser.get_static_pad("sink"), buffer)
                early[:] = [stream]
            return Gst.PadProbeReturn.REMOVE

        def on_sample(pad, info):
            stream.on_sample(pad, info.get_buffer())
            return OK

        def on_event(_, info):
            event = info.get_event()
            if event.type == Gst.EventType.SEGMENT:
                stream.on_segment(event.parse_segment())
            return OK

        def on_frame(pad, info):
            if stream.good < 8 and pad.get_last_flow_return() == Gst.FlowReturn.NOT_LINKED:
                stream.used = False  # the track is not analysed, so its frames are not used
            return OK if stream.on_frame(info.get_buffer().pts) else Gst.PadProbeReturn.DROP

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
        """The number of readable frames."""
        return sum(stream.good for stream in self.streams if stream.used)

    def result(self, whole=True, until=None):
        """The losses, as spans in chronological order. `whole`: the clip was played to its end. `until`: the stream
        time in seconds after which no frames are taken, so that demuxers skip them; None: to the end."""
        spans = []
        for stream in self.streams:
            stream.ended &= whole
            spans += stream.finish(self.indexed) if stream.used else []
        return joined(sorted((span for span in spans if until is None or span.begin < until),
                             key=lambda span: span.begin))
