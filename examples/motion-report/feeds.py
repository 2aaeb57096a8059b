# SPDX-License-Identifier: LGPL-2.1-or-later
"""The sources of frames for the pipeline of a report: one clip (a file, a camera, a synthetic scene), or the files of a
recording. Both have the same methods:

    stop()       ends the analysis
    watch()      a context around the time in which the pipeline plays
    on_message() whether a message of the pipeline was for the feed
    on_error()   whether the analysis continues after an error
    finish()     adds unreadable parts to the findings"""
import contextlib
import os

import common
import losses
import tracks
import uris
from common import Gst

import playlist


def is_of(element, name):
    """Whether an element has this name, or is inside one that has it."""
    while element and element.get_name() != name:
        element = element.get_parent()
    return bool(element)


def is_in(element, pipeline):
    while element and element is not pipeline:
        element = element.get_parent()
    return bool(element)


class Clip:

    def __init__(self, pipeline, args, findings, gate):
        self.pipeline, self.findings, self.gate, self.part = pipeline, findings, gate, args.part
        is_file = bool(args.clip) and os.path.isfile(args.clip)  # frames of a camera may be missing
        source = pipeline.get_by_name("source")
        self.losses = losses.Losses(pipeline, source) if is_file else None
        self.tracks = tracks.Tracks(source, args.track) if is_file else None

    def stop(self):  # ends the stream at the decoder, because a source may wait for a camera
        self.pipeline.get_by_name("decoded").get_static_pad("sink").send_event(Gst.Event.new_eos())

    def watch(self):
        return self.losses or contextlib.nullcontext()

    def on_message(self, _):
        return False

    def on_error(self, message):
        """After an error of the source, the frames that it delivered are analysed. The source's own thread sets these
        caps before the error; frames may still be on their way to cudadiff."""
        if (not is_of(message.src, "source") or (self.tracks and self.tracks.is_missing)
            or not self.pipeline.get_by_name("decoded").get_static_pad("sink").get_current_caps()):
            return False
        if not self.findings.incomplete:  # a later error follows from the first one
            self.findings.incomplete = f"it cannot be read to its end: {uris.hide(common.text_of(message))}"
            self.stop()
        return True

    def finish(self):
        if self.tracks:
            self.tracks.close()
            self.findings.track = self.tracks.sentence()
        if self.losses:
            whole = self.part.is_whole and not (self.findings.stopped or self.findings.incomplete)
            self.findings.lose(self.losses.result(whole, self.gate.over))


class Recording:
    """The consecutive files in args.recording."""

    def __init__(self, pipeline, args, findings, gate):
        self.findings, self.gate, start = findings, gate, args.part.start
        self.start = start.time / Gst.SECOND if start and start.time else 0
        counted = args.part.end and args.part.end.time is None  # with an end in frames, every frame is needed
        self.files = playlist.Playlist(pipeline, pipeline.get_by_name("decoded").get_static_pad("sink"),
                                       args.recording, args.track, 0 if counted else self.start, lambda: gate.ended,
                                       args.part.rate)

    def stop(self):
        self.files.stop()

    @contextlib.contextmanager
    def watch(self):
        pipeline = self.files.pipeline
        try:
            pipeline.set_state(Gst.State.PAUSED)  # so that its pads accept frames
            self.check(self.files.next())
            yield
        finally:
            pipeline.set_state(Gst.State.NULL)
            self.files.stop()
            self.files.close()

    def check(self, has_frames):
        """Raises a Failure if there is no frame, because the pipeline would wait forever."""
        if not has_frames and not self.files.bin:
            raise common.Failure(self.files.sentence())

    def on_message(self, structure):
        if structure.get_name() != playlist.DONE:
            return False
        self.check(self.files.next())
        return True

    def on_error(self, message):
        if self.files.owns(message.src):
            self.check(self.files.fail(common.text_of(message)))
            return True
        return not is_in(message.src, self.files.pipeline)  # ignores errors of closed files

    def finish(self):
        result, line = self.files.result, self.files.line
        over = self.gate.over
        self.findings.track = self.files.track_sentence
        self.findings.lose([span for span in result.lost if over is None or span.begin < over])
        self.findings.parts = self.files.parts
        self.findings.set_line(line, self.start, over)
        self.findings.incomplete = self.files.sentence()
