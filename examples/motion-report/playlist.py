# SPDX-License-Identifier: LGPL-2.1-or-later
"""Plays the files of a recording one after the other into one pipeline, as one stream on one timeline:

    uridecodebin → (upright) → identity ┐   a bin for each file, which is made when the previous one has ended
                                        ├→ queue … → videoconvert → videoscale → capsfilter → capssetter → …
    uridecodebin → (upright) → identity ┘

A new segment event puts the frames of each file at its part of the timeline. Downstream elements see a stream that
never changes: frames of another size or format are scaled and converted to the size and format of the first file, and
only their times show the rate. Therefore the background and objects persist. (splitmuxsrc needs files of one kind and
opens all of them first. With concat or a continuing uridecodebin3, an unreadable file ends the whole stream.)"""
from dataclasses import dataclass, field

import clip_facts
import clips_over_files
import common
import containers
import losses
import part
import time_line
import tracks
import upright
import uris
from common import Gst

NEAR = 2.0  # a file may be this many seconds longer than its container says
DONE = "file-ended"  # the name of a message on the bus, which the main thread handles in order
# Elements between the queue and the analysis; Playlist.keep_caps() sets the caps.
FITTED = "videoscale name=fitted add-borders=true ! capsfilter name=canvas ! capssetter name=steady replace=true"


@dataclass
class Result:
    """The results of playing the files. `faults` are pairs of the name of a file and a sentence, for unreadable and
    incomplete files; `unread` is the number of unreadable ones. `lost` are losses.Span of the timeline."""
    faults: list = field(default_factory=list)
    unread: int = 0
    read: int = 0
    lost: list = field(default_factory=list)


class Playlist:
    """Plays time_line.Segments into a sink pad of a pipeline. After each of them the pipeline posts the message DONE,
    and next() must be called. `track` is the number of the video track. The pipeline must be paused before it begins.
    Files that end before `start` seconds are not opened. `over` says whether the analysed part has ended. `rate`:
    frames per second of files without times."""

    def __init__(self, pipeline, pad, segments, track=1, start=0, over=lambda: False, rate=None):
        self.pipeline, self.pad, self.track = pipeline, pad, track
        self.waiting, self.line, self.result = list(segments), time_line.TimeLine(segments), Result()
        self.start, self.over, self.parts, self.rate = start, over, [], rate
        self.segment = self.bin = self.losses = self.tracks = None
        self.track_sentence, self.stopped = "", False
        # Of the current file: its start, the stream time of its first frame, the end of its last one, all in ns, and
        # whether it reached its end.
        self.begin, self.first, self.last, self.ended = 0, None, None, False
        self.keep_caps()

    def keep_caps(self):
        """Applies the caps of the first file to all files."""
        canvas, steady = (self.pipeline.get_by_name(name) for name in ("canvas", "steady"))
        done = []

        def on_event(_, info):
            event = info.get_event()
            if event.type == Gst.EventType.CAPS and not done:
                done.append(True)
                caps = event.parse_caps()
                names = "format", "width", "height", "colorimetry"
                fields = [f"{name}={value}" for name, value in zip(names, common.fields_of(caps, *names)) if value]
                steady.set_property("caps", caps)
                canvas.set_property("caps", Gst.Caps.from_string(",".join(["video/x-raw", *fields])))
            return Gst.PadProbeReturn.OK

        canvas.get_static_pad("sink").add_probe(Gst.PadProbeType.EVENT_DOWNSTREAM, on_event)

    def next(self):
        """Ends the current file, and begins the next one that can be opened. After the last one, the pipeline gets EOS.
        Returns False if there was no file with a picture."""
        self.stopped |= self.over()
        self.close()
        while self.waiting and not self.stopped:
            segment = self.waiting.pop(0)
            end = self.line.begin_of(segment) + (segment.length or float("inf"))
            if not segment.fault and end < self.start - NEAR:
                self.result.read += 1
                self.line.reach(self.line.place(segment) + segment.length)
            elif not segment.fault:
                self.open(segment)
                return True
            else:
                self.miss(segment, segment.fault)
        self.line.finish()
        self.stop()
        return self.result.read > 0

    def stop(self):
        """Opens no further file, and ends the analysed part here."""
        self.stopped = True
        self.pad.send_event(Gst.Event.new_eos())

    def owns(self, element):
        """Whether an element belongs to the current file."""
        while element and element is not self.bin:
            element = element.get_parent()
        return bool(element)

    def fail(self, sentence):
        """Called if the current file cannot be read to its end. Returns the result of next()."""
        self.error = sentence
        return self.next()

    def miss(self, segment, sentence):
        self.result.faults.append((segment.name, sentence))
        self.result.unread += 1
        self.line.miss(segment)

    def open(self, segment):
        self.segment, self.first, self.last, self.ended, self.error = segment, None, None, False, ""
        self.bin = Gst.parse_bin_from_description(
            f"{common.DECODER} name=source ! identity name=placed silent=true", False)
        source, out = self.bin.get_by_name("source"), self.bin.get_by_name("placed")
        source.set_property("uri", common.uri_of(segment.path))
        upright.keep(out.get_static_pad("sink"))
        if self.rate:
            part.give_times(out.get_static_pad("sink"), self.rate)
        pad = out.get_static_pad("src")
        self.bin.add_pad(Gst.GhostPad.new("src", pad))
        # The pipeline sometimes changes its state in its own thread. This must not affect the bin.
        self.bin.set_locked_state(True)
        pad.add_probe(Gst.PadProbeType.EVENT_DOWNSTREAM, self.on_event)
        pad.add_probe(Gst.PadProbeType.BUFFER, self.on_buffer)
        self.pipeline.add(self.bin)
        self.losses, self.tracks = losses.Losses(self.pipeline, source), tracks.Tracks(source, self.track)
        self.losses.__enter__()
        self.bin.get_static_pad("src").link(self.pad)
        self.bin.set_state(Gst.State.PLAYING)

    def on_event(self, pad, info):
        """Handles the segment of the file, see on_buffer(), and its end."""
        event = info.get_event()
        if event.type == Gst.EventType.SEGMENT:
            self.part = event.parse_segment().copy()
            if self.first is None:
                return Gst.PadProbeReturn.DROP
            self.send_segment(pad)
            return Gst.PadProbeReturn.DROP
        if event.type == Gst.EventType.EOS:
            self.ended = True
            structure = Gst.Structure.new_empty(DONE)
            self.pipeline.post_message(Gst.Message.new_element(self.pipeline, structure))
            return Gst.PadProbeReturn.DROP
        return Gst.PadProbeReturn.OK

    def on_buffer(self, pad, info):
        """Places the first frame: files cut out of a longer stream may continue its times."""
        buffer = info.get_buffer()
        when = self.stream_time(buffer.pts)
        if when is None:
            return Gst.PadProbeReturn.OK
        if self.first is None:
            self.first = when if when > clip_facts.LATE * Gst.SECOND else 0
            self.begin = round(self.line.place(self.segment) * Gst.SECOND)
            self.send_segment(pad)
        length = buffer.duration if buffer.duration != Gst.CLOCK_TIME_NONE else 0
        self.last = max(self.last or 0, when - self.first + length)
        return Gst.PadProbeReturn.OK

    def stream_time(self, time):
        """The time in the file for a time of the pads, in ns; None if it is unknown."""
        if time == Gst.CLOCK_TIME_NONE:
            return None
        sign, when = self.part.to_stream_time_full(Gst.Format.TIME, time)
        return max(when, 0) if sign > 0 else 0

    def send_segment(self, pad):
        """Sends the segment of the file with the times of the timeline."""
        made = self.part.copy()
        start = self.part.to_stream_time(Gst.Format.TIME, self.part.start)
        place = self.begin + start - self.first
        if place < 0:  # the first frame is after the start of the segment
            made.start, place = made.start - place, 0
        made.time = made.base = place
        pad.get_peer().send_event(Gst.Event.new_segment(made))

    def close(self):
        """Removes the current file, and notes its result."""
        if not self.bin:
            return
        self.bin.set_state(Gst.State.NULL)
        self.pipeline.remove(self.bin)
        self.losses.__exit__()
        self.tracks.close()
        segment, self.bin = self.segment, None
        self.track_sentence = self.track_sentence or self.tracks.sentence()
        if self.last is None:
            if not self.stopped:
                self.miss(segment, self.error or "there is no frame in it")
            return
        self.result.read += 1
        self.parts.append(clips_over_files.Part(segment.path, segment.facts, self.begin / Gst.SECOND,
                                                (self.begin + self.last) / Gst.SECOND, self.first / Gst.SECOND))
        begin, end = self.begin / Gst.SECOND, (self.begin + self.last) / Gst.SECOND
        spans = self.losses.result(self.ended and not self.error and not self.stopped)
        move = begin - self.first / Gst.SECOND
        self.result.lost += [losses.Span(span.begin + move, span.end + move, span.frames, span.about) for span in spans]
        if self.stopped:
            return
        fault = (f"it cannot be read to its end: {self.error}" if self.error
                 else containers.cut_of(segment.path) or segment.facts.missing(
                     max([end - move, *(span.end for span in spans)])))
        if fault:
            self.result.faults.append((segment.name, fault))
            if not segment.clock and segment.length and begin + segment.length > end:
                self.line.holes.append(time_line.Hole(end, begin + segment.length))
                end = begin + segment.length
        self.line.reach(end)

    def sentence(self):
        """A readable sentence about unreadable files; empty if there are none."""
        names = [f"{name} ({uris.hide(fault)})" for name, fault in self.result.faults[:time_line.LISTED]]
        more = len(self.result.faults) - len(names)
        if not names:
            return ""
        count = self.result.read + self.result.unread
        return (f"{len(self.result.faults)} of {count} files could not be read, or only in part: "
                + ", ".join(names) + (f" and {more} more" if more else ""))
