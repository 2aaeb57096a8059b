# SPDX-License-Identifier: LGPL-2.1-or-later
"""Pipelines that are kept running. Each one has a thread, which rebuilds the pipeline if it fails, ends or outputs no
frame for a while, unless it is switched off."""

import logging
import random
import threading
import time

import advice
import common
import troubles
from common import Gst

log = logging.getLogger("motion-alarm")
SILENCE = 0.4  # seconds without a frame


def gpu_contexts() -> list:
    """The context in which cudadiff uses the GPU; none on the CPU. All pipelines share it, because each CUDA context
    takes hundreds of megabytes."""
    pipeline = common.parse("cudadiff name=diff ! fakesink")
    pipeline.set_state(Gst.State.READY)
    found = pipeline.get_by_name("diff").get_contexts()
    pipeline.set_state(Gst.State.NULL)
    return found


class Backoff:
    """The times to wait between attempts: they double from `first` to `most` seconds. Each one is shortened by a random
    part of up to a half, so that cameras that are lost together (a switch was restarted) do not return at the same
    moment."""

    def __init__(self, first: float, most: float, uniform=random.uniform):
        self.first, self.most, self.uniform, self.tries = first, most, uniform, 0

    def after(self, ran: float) -> float:
        """Returns the seconds to wait after an attempt with frames for `ran` seconds. An attempt that ran longer than
        the longest previous wait counts as a success, and the times restart."""
        if ran > self.limit(self.tries):
            self.tries = 0
        delay = self.limit(self.tries) * self.uniform(0.5, 1)
        self.tries += 1
        return delay

    def limit(self, tries: int) -> float:
        return min(self.most, self.first * 2 ** min(tries, 64))


class Wrong(common.Failure):
    """A setting of the configuration is wrong; the camera is not lost."""


class Supervised(threading.Thread):
    """Derive from this class: `build` returns a pipeline, and `seen` must be called for new frames."""

    contexts = []  # GstContexts that all pipelines share

    def __init__(self, name: str, reconnect):
        super().__init__(name=name, daemon=True)
        self.reconnect, self.backoff = reconnect, Backoff(reconnect.first, reconnect.most)
        self.stopping, self.enabled = threading.Event(), True
        self.changed = threading.Event()  # `stopping` or `enabled` changed
        self.frames = self.reconnects = 0  # since the start of the service
        self.fps, self.up = 0.0, False  # up: frames arrive
        self.problem = ""  # why no frames arrive, and what a person can do; without secrets
        self.interval = 0.0  # seconds between frames unless more frames are requested
        self.first_frame = self.last_frame = 0.0  # times of this attempt, in seconds on the monotonic clock

    def build(self) -> Gst.Pipeline:
        raise NotImplementedError

    def is_live(self, pipeline):
        """Called before a pipeline with a live source plays."""

    def look(self):
        """Called about ten times a second while the pipeline runs, and once at its end."""

    def is_silent(self, seconds):
        """Called about ten times a second if frames have arrived before, but none for a while. Must not block."""

    def drain(self, pipeline):
        """Ends the stream, so that frames in progress are output."""
        raise NotImplementedError

    def came(self):
        """Called with the first frame of each attempt."""

    def lost(self):
        """Called when the pipeline is gone, with or without an earlier call of `came`."""

    def hide(self, text: str) -> str:
        """Removes secrets, which must not appear in the log."""
        return text

    def advice_about(self, kind: str, came: bool) -> str:
        """Advice for a person. `kind` is "end", "silence" or the kind of an error (troubles.py); `came`: there were
        frames."""
        return ""

    def setting(self, text: str) -> str:
        """A sentence of an element about one of its settings, with the place of the setting in the configuration."""
        return text

    def seen(self, count=1):
        self.frames += count
        self.last_frame = time.monotonic()
        if not self.up and not self.stopping.is_set():
            self.up = True
            self.first_frame, self.problem = self.last_frame, ""
            log.info("%s: the first frame arrived", self.name)
            self.came()

    def stop(self):
        self.stopping.set()
        self.changed.set()

    def switch(self, on: bool):
        """Stops the pipeline until it is switched on again. Returns immediately."""
        if on != self.enabled:
            self.enabled = on
            self.changed.set()

    def run(self):
        while True:
            self.changed.clear()  # before `stopping` and `enabled` are read
            if self.stopping.is_set():
                break
            if not self.enabled:
                self.problem = "switched off"
                log.info("%s: %s", self.name, self.problem)
                self.lost()
                self.changed.wait()
                self.problem = ""
                continue
            what = "lost"
            try:
                reason = self.play()
            except Wrong as error:
                reason, what = str(error), "wrong configuration"
            except common.Failure as error:
                reason = str(error)
            except Exception as error:  # an error in this program must not end the watch over a camera
                reason = f"{type(error).__name__}: {error}"
            ran, self.up, self.fps = self.last_frame - self.first_frame if self.up else 0, False, 0.0
            if self.running():
                self.problem = self.hide(f"{what}: {reason}")
            self.lost()
            if not self.running():
                continue
            # Without a restart of the service, only a change of the picture size can correct a wrong setting.
            delay = self.reconnect.most if what != "lost" else self.backoff.after(ran)
            log.warning("%s: %s; the next attempt is in %.1f s", self.name, self.problem, delay)
            self.changed.wait(delay)
            self.reconnects += self.running()

    def running(self) -> bool:
        return self.enabled and not self.stopping.is_set()

    def why(self, message) -> str:
        """A sentence about the message with which a pipeline ended; None: it was silent for too long. Raises Wrong."""
        if message and message.type == Gst.MessageType.ERROR:
            kind, text = troubles.trouble_of(message)
            if kind == advice.SETTINGS:
                raise Wrong(self.setting(text))
        elif message:
            kind, text = "end", "the stream ended"
        else:
            kind, text = "silence", f"no frame arrived for {self.reconnect.timeout + self.interval:g} s"
        hint = self.advice_about(kind, self.up)
        return f"{text.rstrip('.')}: {hint}" if hint else text

    def play(self) -> str:
        """Runs the pipeline to its end. Returns why it ended."""
        pipeline = self.build()
        for context in self.contexts:
            pipeline.set_context(context)
        bus, ends = pipeline.get_bus(), Gst.MessageType.ERROR | Gst.MessageType.EOS
        measured = self.last_frame = time.monotonic()
        counted = self.frames
        try:
            if pipeline.set_state(Gst.State.PAUSED) == Gst.StateChangeReturn.NO_PREROLL:
                self.is_live(pipeline)
            pipeline.set_state(Gst.State.PLAYING)
            while self.running():
                message = bus.timed_pop_filtered(Gst.SECOND // 10, ends)
                self.look()
                if message:
                    return self.why(message)
                now = time.monotonic()
                if now - self.last_frame > self.reconnect.timeout + self.interval:
                    return self.why(None)
                if self.up and now - self.last_frame > SILENCE:
                    self.is_silent(now - self.last_frame)
                if now - measured >= 1:
                    self.fps = (self.frames - counted) / (now - measured)
                    measured, counted = now, self.frames
            if self.up:  # otherwise no frame can come out
                self.drain(pipeline)
                bus.timed_pop_filtered(2 * Gst.SECOND, ends)
                self.look()
            return "stopped"
        finally:
            pipeline.set_state(Gst.State.NULL)
