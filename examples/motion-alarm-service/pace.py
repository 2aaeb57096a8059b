# SPDX-License-Identifier: LGPL-2.1-or-later
"""Drops frames of a live camera if the machine is too slow for all of them, so that messages are not late.

    source ! … ! decoder ! … ! queue ! cudadiff
                 |             `-- the queue is leaky: it drops the oldest decoded frame if cudadiff is still busy
                 |                 with earlier ones
                 `-- if even decoding is too slow, encoded frames would wait in the source without limit. Once the
                     output frames are LATE, encoded frames are dropped here, up to a key frame that is on time.
                     If even this is too slow (FLOODED), the jitter buffer of rtspsrc drops packets meanwhile

Both kinds are counted, and their numbers are logged once a minute. If there are many, `problem` also has them."""

import collections
import logging
import time

from common import Gst

log = logging.getLogger("motion-alarm")
LATE = 1.0  # a frame is late if it comes out this many seconds later than others did
SETTLED = 3.0  # seconds after which frames from before a drop have left the decoder
FLOODED = 5.0  # seconds by which even dropped frames are late
DRIFT = 0.0002  # drift of a camera's clock against this machine's clock, in seconds per second
OFTEN = 0.4  # seconds between two checks of the time of frames
REPORT = 60  # seconds between two reports
MANY = 0.02  # share of the frames that is reported as a problem


def on_elements(pipeline, found):
    """Calls found(element) for each element that is in a pipeline, or is added to it."""
    pipeline.connect("deep-element-added", lambda _, __, element: found(element))
    pipeline.iterate_recurse().foreach(found)


def on_decoders(pipeline, found):
    """Calls found(sink pad) for each video decoder that is in a pipeline, or is added to it."""

    def on_element(element):
        factory = element.get_factory()
        kind = factory.get_metadata("klass") if factory and not isinstance(element, Gst.Bin) else ""
        if "Decoder" in kind and ("Video" in kind or "Image" in kind) and (pad := element.get_static_pad("sink")):
            found(pad)

    on_elements(pipeline, on_element)


class Pace:
    """The pace of a camera, across its successive pipelines. `told` is called when `problem` changes."""

    def __init__(self, name, told=lambda: None, clock=time.monotonic):
        self.name, self.told, self.clock = name, told, clock
        self.dropped = collections.Counter()  # "encoded" and "decoded" frames, since the start of the service
        self.problem = ""
        self.reported, self.before = clock(), (0, 0)  # the time, and the received and dropped frames by then
        self.pipeline = self.pad = None

    def attach(self, pipeline, queue, output):
        """`queue`: the queue before cudadiff; `output`: a pad after cudadiff."""
        self.pipeline, self.output, self.pad = pipeline, output, None
        self.live = self.dropping = False
        # usual: seconds from the time of a frame until it comes out; judged: when this was measured.
        self.usual, self.judged = None, 0.0
        # The timestamp of the key frame with which decoding resumed, and the time of resuming.
        self.resumed, self.resumed_at = 0, 0.0
        self.jitter_buffers, self.changed, self.flooded = [], [], False  # changed: the buffers that drop packets now
        self.last, self.step = 0, 0  # the last timestamp of dropped frames, and the step between them
        queue.connect("overrun", self.on_overrun)
        on_decoders(pipeline, self.on_decoder)
        on_elements(pipeline, self.on_element)

    def on_decoder(self, pad):
        self.pad = pad

    def on_element(self, element):
        if element.find_property("drop-on-latency") and element.find_property("latency"):
            self.jitter_buffers.append(element)

    def on_overrun(self, _):
        self.dropped["decoded"] += self.live

    def behind(self, pad, pts):
        """Seconds since the time of a frame that is at a pad; None if unknown."""
        event, now = pad.get_sticky_event(Gst.EventType.SEGMENT, 0), self.pipeline.get_current_running_time()
        if not event or Gst.CLOCK_TIME_NONE in (pts, now):
            return None
        running = event.parse_segment().to_running_time(Gst.Format.TIME, pts)
        return None if running == Gst.CLOCK_TIME_NONE else (now - running) / Gst.SECOND

    def look(self, pts):
        """Judges the time of the newest frame since the last call. Called about ten times a second."""
        now = self.clock()
        # Frames from before the key frame that are still in the pipeline give no new information. But timestamps may go
        # back: on a machine that is too slow, the jitter buffer mistakes its own delay for a network delay, and
        # corrects it.
        old = pts < self.resumed and now - self.resumed_at < SETTLED
        if (self.dropping or not self.live or old or now - self.judged < OFTEN
            or (behind := self.behind(self.output, pts)) is None):
            return
        self.usual = behind if self.usual is None else min(behind, self.usual + DRIFT * (now - self.judged))
        self.judged = now
        if behind - self.usual > LATE and self.pad:
            self.dropping, self.last = True, 0
            self.pad.add_probe(Gst.PadProbeType.BUFFER, self.on_encoded)

    def on_encoded(self, pad, info):
        buffer = info.get_buffer()
        behind = self.behind(pad, buffer.pts)
        key = not buffer.has_flags(Gst.BufferFlags.DELTA_UNIT)
        if key and (behind is None or behind - self.usual < LATE / 2):
            self.resumed, self.resumed_at, self.dropping = buffer.pts, self.clock(), False
            self.flood(False)
            return Gst.PadProbeReturn.REMOVE
        if behind is not None and behind - self.usual > FLOODED:
            self.flood(True)
        self.dropped["encoded"] += self.steps_to(buffer.pts)
        return Gst.PadProbeReturn.DROP

    def flood(self, on):
        """Lets jitter buffers drop packets that exceed their latency, or restores their former behaviour."""
        if on != self.flooded:
            self.flooded, self.last = on, 0
            if on:
                self.changed = [each for each in self.jitter_buffers if not each.get_property("drop-on-latency")]
            for each in self.changed:
                each.set_property("drop-on-latency", on)

    def steps_to(self, pts):
        """The number of frames since the last dropped one: more than 1 if packets were dropped in between."""
        step = pts - self.last if 0 < self.last < pts != Gst.CLOCK_TIME_NONE else 0
        self.last = pts if pts != Gst.CLOCK_TIME_NONE else 0
        if step and (not self.step or step < self.step):
            self.step = max(step, Gst.SECOND // 60)  # packets that arrive in bursts have times that are close together
        return max(1, round(step / self.step)) if self.flooded and step else 1

    def report(self, frames):
        """`frames`: the number received since the start of the service. Called about ten times a second."""
        if (now := self.clock()) - self.reported < REPORT:
            return
        came, dropped = (count - before for count, before in zip((frames, sum(self.dropped.values())), self.before))
        self.before, problem = (frames, sum(self.dropped.values())), ""
        if dropped:
            log.warning("%s: %d of %d frames were skipped in %.0f s: this machine is too slow for all of them",
                        self.name, dropped, came + dropped, now - self.reported)
        if dropped > MANY * (came + dropped):
            problem = (f"too slow: {100 * dropped / (came + dropped):.0f} % of the frames are skipped: "
                       "let the camera send fewer or smaller ones, or use fewer cameras")
        self.reported = now
        if problem != self.problem:
            self.problem = problem
            self.told()
