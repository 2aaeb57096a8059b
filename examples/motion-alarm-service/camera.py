# SPDX-License-Identifier: LGPL-2.1-or-later
"""A camera: its pipeline, and what cudadiff found in it.

    source ! queue ! videoconvert ! cudadiff ! appsink          frames stay in the memory in which the decoder makes them

Messages of cudadiff are handled in the thread that posts them, before their frame comes to the appsink, so the frame after `begin`
is its snapshot."""

import collections
import datetime
import logging

import common
import inputs
import uris
from common import Gst
from kept import Kept

log = logging.getLogger("motion-alarm")
SOURCE_DEFAULTS = {"rtspsrc": {"latency": 200}}  # milliseconds; GStreamer's default of 2000 delays an alarm


def text_of(name, value) -> str:
    """NAME=VALUE, as GStreamer reads values."""
    return f"{name}={str(value).lower() if isinstance(value, bool) else value}"


def check(settings):
    """Raises a Failure if cudadiff has no such property or value, or if the input is a file that cannot be read."""
    diff = common.parse("cudadiff name=diff ! fakesink").get_by_name("diff")
    for name, value in settings.cudadiff.items():
        if not inputs.set_property(diff, text_of(name, value)):
            raise common.Failure(
                f"[camera.{settings.key}.cudadiff]: cudadiff has no such property or value: {text_of(name, value)}"
            )
    inputs.source_of(settings.uri)


class Camera(Kept):
    """`listener` has the methods event(camera, line), state(camera) and snapshot(camera, sample); `show` takes the name and the
    sample of each frame."""

    def __init__(self, settings, reconnect, listener, show=None):
        super().__init__(settings.key, reconnect)
        self.settings, self.listener, self.show = settings, listener, show
        self.motion, self.visits = (
            False,
            set(),
        )  # visits: (id, zone) of the objects that are in view; the zone is None without zones
        self.events = collections.Counter()  # by name, since the start of the service
        self.begins = False  # whether motion begins in the next frame
        self.diff = None

    @property
    def objects(self) -> int:
        return len({number for number, _ in list(self.visits)})

    def occupied(self, zone: str) -> bool:
        return any(place == zone for _, place in list(self.visits))

    def hide(self, text):
        uri = self.settings.uri
        return uris.hide(text.replace(uri, self.name).replace(uris.opened(uri), self.name), uri)

    def build(self):
        description, values = inputs.source_of(self.settings.uri)
        pipeline = common.parse(
            f"{description} ! queue name=queue ! videoconvert ! cudadiff name=diff "
            "! appsink name=sink max-buffers=1 emit-signals=true",
            source=values,
            diff={"message-interval": 2**63, "output": "passthrough"},
        )
        self.diff, source = pipeline.get_by_name("diff"), pipeline.get_by_name("source")
        for name, value in self.settings.cudadiff.items():
            inputs.set_property(self.diff, text_of(name, value))
        if source.find_property("uri"):
            source.connect("source-setup", lambda _, element: self.set_up(element))
        else:
            self.set_up(source)
        pipeline.get_by_name("sink").connect("new-sample", self.on_frame)
        bus = pipeline.get_bus()
        bus.enable_sync_message_emission()
        bus.connect("sync-message::element", self.on_message)
        return pipeline

    def is_live(self, pipeline):  # drop frames instead of falling behind, and do not delay them
        Gst.util_set_object_arg(pipeline.get_by_name("queue"), "leaky", "downstream")
        pipeline.get_by_name("queue").set_property("max-size-buffers", 2)
        pipeline.get_by_name("sink").set_property("sync", False)

    def set_up(self, source):
        for name, value in {**SOURCE_DEFAULTS.get(source.get_factory().get_name(), {}), **self.settings.source}.items():
            if not inputs.set_property(source, text_of(name, value)):
                log.warning("%s: %s has no property %s, or not this value", self.name, source.get_factory().get_name(), name)

    def drain(self, pipeline):
        self.diff.get_static_pad("sink").send_event(Gst.Event.new_eos())

    def on_message(self, _, message):
        event = message.get_structure()
        if event.get_name() != "cudadiff":
            return
        name = event.get_value("event")
        if name not in ("begin", "end", "enter", "leave", "cross", "light"):
            return
        if name in ("begin", "end"):
            self.motion = name == "begin"
        if name in ("enter", "leave"):
            visit = (event.get_value("id"), event.get_value("zone") if event.has_field("zone") else None)
            (self.visits.add if name == "enter" else self.visits.discard)(visit)
        if name == "begin":
            self.begins = True
        self.events[name] += 1
        line = inputs.line_of(event)
        line = {"camera": self.name, **line, "at": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="milliseconds")}
        log.info(
            "%s: %s",
            self.name,
            " ".join([name, *(f"{key} {line[key]}" for key in ("id", "zone", "line", "direction") if key in line)]),
        )
        self.listener.event(self, line)
        self.listener.state(self)

    def on_frame(self, sink):
        sample = sink.emit("pull-sample")
        self.seen()
        if self.begins:
            self.begins = False
            self.listener.snapshot(self, sample)
        if self.show:
            self.show(self.name, sample)
        return Gst.FlowReturn.OK

    def came(self):
        self.listener.state(self)

    def lost(self):
        self.begins = False  # cudadiff ended motion and visits when it stopped
        self.listener.state(self)
