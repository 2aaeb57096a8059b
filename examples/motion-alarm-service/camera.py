# SPDX-License-Identifier: LGPL-2.1-or-later
"""A camera: its pipeline, and the findings of cudadiff.

    source ! queue ! videoconvert ! cudadiff ! appsink          frames stay in the memory to which
                                                                the decoder writes them
With watch = true, a cudahistogram before cudadiff also analyses each frame. Frames beyond `fps` do not reach the queue
(sampling.py).

Messages of both elements are handled in the thread that posts them, before their frame reaches the appsink, so the
frame after `begin` is the first snapshot of a motion. Better views follow (best_view.py): about ten times a second,
look() takes the newest frame. No other frame costs time in Python, unless the wall shows it or cudadiff draws into
it."""

import collections
import datetime
import logging
import os
import threading

import advice
import clip_facts
import common
import inputs
import upright
import uris
from best_view import BestView, Inputs
from checks import text_of
from common import Gst
from pace import Pace
from recorder import Recorder
from sampling import Sampling
from supervised import Supervised

log = logging.getLogger("motion-alarm")
SOURCE_DEFAULTS = {
    "rtspsrc": {"latency": 200},  # milliseconds; GStreamer's default of 2000 delays an alarm
    "souphttpsrc": {"timeout": 0},  # only `timeout` of [reconnect] decides when a silent camera is lost
}


def now() -> str:
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="milliseconds")


def timestamp_of(event, name) -> int:
    """The timestamp of an earlier frame, from the field of a message that has its stream time."""
    timestamp, stream_time, earlier = (event.get_value(each) for each in ("timestamp", "stream-time", name))
    return (
        timestamp - max(0, stream_time - earlier)
        if Gst.CLOCK_TIME_NONE not in (timestamp, stream_time, earlier)
        else timestamp
    )


class Camera(Supervised):
    """`listener` has the methods event(camera, line), state(camera), snapshot(camera, sample) and clip(camera, row).
    `show` gets the name and the sample of each frame. `recording`: a config.Recording, or None."""

    def __init__(self, settings, reconnect, listener, show=None, recording=None):
        super().__init__(settings.key, reconnect)
        self.settings, self.listener, self.show = settings, listener, show
        self.motion, self.visits = (
            False,
            set(),
        )  # visits: (id, zone) of the visible objects; the zone is None without zones
        self.conditions = set()  # the current conditions of the picture, see config.CONDITIONS
        self.events = collections.Counter()  # the number of each event since the start of the service
        self.begins = self.ends = False  # whether motion begins or ended with the next frame
        self.best, self.inputs = BestView(lambda sample: listener.snapshot(self, sample)), None
        self.best_lock = threading.Lock()
        self.diff = self.first = self.sink = None  # first: the first of the elements that look at frames
        self.counted, self.every = 0, False  # frames in this attempt; whether on_frame() gets all
        self.live, self.last_pts, self.gap = False, Gst.CLOCK_TIME_NONE, None  # gap: the thread that sends a GAP event
        self.pace = Pace(self.name, lambda: listener.state(self))
        self.interval = inputs.interval_of(settings.uri)
        self.recorder = Recorder(self.name, recording, self.on_clip) if settings.recording else None

    @property
    def objects(self) -> int:
        return len({number for number, _ in list(self.visits)})

    def occupied(self, zone: str) -> bool:
        return any(place == zone for _, place in list(self.visits))

    def hide(self, text):
        uri = self.settings.uri
        return uris.hide(text.replace(uri, self.name).replace(uris.opened(uri), self.name), uri)

    def advice_about(self, kind, came):
        uri = self.settings.uri
        if kind == "end":
            return self.missing() or advice.about_end(uri)
        return advice.about_silence(uri, came) if kind == "silence" else advice.about_error(kind, uri)

    def missing(self) -> str:
        """A sentence about a file that ends before the length that its container declares; otherwise an empty text."""
        path = uris.path_of(self.settings.uri)
        facts = clip_facts.facts_of(path) if path is not None and os.path.isfile(path) else None
        return facts.missing(self.last_pts / Gst.SECOND) if facts and self.last_pts != Gst.CLOCK_TIME_NONE else ""

    def switch(self, on):
        super().switch(on)
        self.listener.state(self)

    def setting(self, text):
        return f"[camera.{self.name}.cudadiff]: {text}"

    def build(self):
        self.live, self.last_pts, self.counted = False, Gst.CLOCK_TIME_NONE, 0
        description, values = inputs.source_of(self.settings.uri)
        watches = self.settings.watch
        pipeline = common.parse(
            f"{description} ! queue name=queue ! videoconvert name=shown ! {'cudahistogram name=watch ! ' * watches}"
            "cudadiff name=diff ! appsink name=sink max-buffers=1 drop=true wait-on-eos=false",
            source=values,
            **({"watch": {"watch": True, "post-messages": False}} if watches else {}),
            diff={"message-interval": 2**63, "output": "passthrough"},
        )
        self.diff, self.sink, source = (pipeline.get_by_name(name) for name in ("diff", "sink", "source"))
        upright.keep(pipeline.get_by_name("shown").get_static_pad("sink"))
        self.first = pipeline.get_by_name("watch") if watches else self.diff
        for element, table in ((self.diff, self.settings.cudadiff), (self.first, self.settings.cudahistogram)):
            for name, value in table.items():
                inputs.set_property(element, text_of(name, value))
        self.inputs = Inputs(self.diff)
        self.every = bool(self.show) or self.inputs.tapped
        if source.find_property("uri"):
            source.connect("source-setup", lambda _, element: self.set_up(element))
        else:
            self.set_up(source)
        inputs.prepare(pipeline, self.settings.uri, lambda: self.is_live(pipeline))
        if self.recorder:
            self.recorder.attach(pipeline)  # before the pace, so that it also gets the dropped frames
        self.pace.attach(pipeline, pipeline.get_by_name("queue"), self.diff.get_static_pad("src"))
        self.sink.connect("new-sample", self.on_frame)
        self.sink.set_property("emit-signals", self.every)
        bus = pipeline.get_bus()
        bus.enable_sync_message_emission()
        bus.connect("sync-message::element", self.on_message)
        return pipeline

    def is_silent(self, seconds):
        """Called when the camera stalls or is slow. A GAP event makes cudadiff post messages that are due. A
        separate thread sends it, because the event waits for the thread that delivers frames."""
        if self.live and self.last_pts != Gst.CLOCK_TIME_NONE and not (self.gap and self.gap.is_alive()):
            event = Gst.Event.new_gap(self.last_pts, int(seconds * Gst.SECOND))
            self.gap = threading.Thread(target=self.diff.get_static_pad("sink").send_event, args=(event,), daemon=True)
            self.gap.start()

    def is_live(self, pipeline):  # drops frames instead of falling behind, and does not delay them
        queue = pipeline.get_by_name("queue")
        if not self.live:
            Sampling(self.settings.fps).attach(queue.get_static_pad("sink"))
        self.live = self.pace.live = True
        Gst.util_set_object_arg(queue, "leaky", "downstream")
        for name, value in {"max-size-buffers": 2, "max-size-bytes": 0, "max-size-time": 0}.items():
            queue.set_property(name, value)
        self.sink.set_property("sync", False)

    def set_up(self, source):
        for name, value in {**SOURCE_DEFAULTS.get(source.get_factory().get_name(), {}), **self.settings.source}.items():
            if not inputs.set_property(source, text_of(name, value)):
                log.warning(
                    "%s: %s has no property %s, or it cannot have this value", self.name,
                    source.get_factory().get_name(), name
                )

    def drain(self, pipeline):
        self.first.get_static_pad("sink").send_event(Gst.Event.new_eos())

    def on_message(self, _, message):
        event = message.get_structure()
        if event.get_name() == "cudahistogram-watch":
            self.on_condition(event)
        if event.get_name() != "cudadiff":
            return
        name = event.get_value("event")
        if name not in common.CHANGES:
            return
        # The frame has not reached the appsink yet, but listeners that receive an event must know that the camera is
        # connected.
        self.seen(0)
        if name in ("begin", "end"):
            self.motion = name == "begin"
        if name in ("enter", "leave"):
            visit = (event.get_value("id"), event.get_value("zone") if event.has_field("zone") else None)
            (self.visits.add if name == "enter" else self.visits.discard)(visit)
        if name in ("begin", "end"):
            self.begins, self.ends = name == "begin", self.ends or name == "end"
            self.sink.set_property("emit-signals", True)
        self.events[name] += 1
        line = {"camera": self.name, **inputs.line_of(event), "at": now()}
        if self.recorder:
            self.record(event, line)
        log.info(
            "%s: %s",
            self.name,
            " ".join([name, *(f"{key} {line[key]}" for key in ("id", "zone", "line", "direction") if key in line)]),
        )
        self.listener.event(self, line)
        self.listener.state(self)

    def on_condition(self, event):
        """Called when a condition of the picture begins or ends."""
        name, state = event.get_value("condition"), event.get_value("event")
        self.seen(0)
        (self.conditions.add if state == "begin" else self.conditions.discard)(name)
        self.events[name] += state == "begin"
        log.info("%s: %s %s", self.name, name, state)
        values = {key: event.get_value(key) for key in ("value", "limit")}
        time = inputs.seconds_of(event.get_value("stream-time"))
        self.listener.event(
            self, {"camera": self.name, "event": name, "state": state, "time": time, **values, "at": now()}
        )
        self.listener.state(self)

    def record(self, event, line):
        """Tells the recorder when motion, or a visit of a recorded zone, begins and ends."""
        name, visit, zones = line["event"], (line.get("id"), line.get("zone")), self.settings.recorded_zones
        if name in ("begin", "end"):
            self.recorder.note(name, line["at"])
        if name == "begin" and not zones:
            self.recorder.begin("motion", event.get_value("timestamp"))
        if name == "end" and not zones:
            self.recorder.end("motion", timestamp_of(event, "last-motion"))
        if name == "enter" and line.get("zone") in zones:
            self.recorder.begin(visit, timestamp_of(event, "entered"))
        if name == "leave" and line.get("zone") in zones:
            self.recorder.end(visit, timestamp_of(event, "left"))

    def on_frame(self, sink):
        """Called for the frame after `begin` or `end`, or for every frame."""
        sample = sink.emit("pull-sample")
        with self.best_lock:
            if self.ends:
                self.ends = False
                self.best.finish()
            if self.begins:
                self.begins = False
                self.best.begin()
            self.best.look(sample, self.inputs.of(sample))
        if self.show:
            self.show(self.name, sample)
        if not self.every:
            sink.set_property("emit-signals", self.begins or self.ends)
        return Gst.FlowReturn.OK

    def look(self):
        """Counts the frames since the last call, and takes the newest one."""
        rendered = self.sink.get_property("stats").get_value("rendered")
        sample = self.sink.get_property("last-sample") if rendered > self.counted else None
        if sample:
            self.last_pts = sample.get_buffer().pts
            with self.best_lock:
                if self.best.on and not self.begins and not self.every:  # not between `begin` and its frame
                    self.best.look(sample, sample)
            self.pace.look(self.last_pts)
            self.seen(rendered - self.counted)
            self.counted = rendered
        self.pace.report(self.frames)

    def on_clip(self, row):
        """Called when a clip is written (`row`), or when it becomes possible or impossible to write clips (None)."""
        if row:
            log.info("%s: the clip %s", self.name, row["file"])
            self.listener.clip(self, {"camera": self.name, "event": "clip", **row, "at": now()})
        self.listener.state(self)

    @property
    def trouble(self) -> str:
        """Why no frames arrive, why they are not recorded, why some are dropped, or what is wrong with the picture."""
        watched = f"the picture is {' and '.join(sorted(self.conditions))}" if self.conditions else ""
        return self.problem or (self.recorder.problem if self.recorder else "") or self.pace.problem or watched

    def came(self):
        self.listener.state(self)

    def lost(self):
        self.begins = self.ends = False  # cudadiff ended motion and visits when it stopped
        with self.best_lock:
            self.best.finish()
        if self.recorder:
            self.recorder.close()
        self.conditions.clear()
        self.listener.state(self)
