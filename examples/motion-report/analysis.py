# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs a clip once through cudahistogram and cudadiff, and collects the data of the report:

    source → upright ┬→ cudahistogram → cudadiff output=mask → pictures.py: masks
                     │      │               │ metas of objects → pictures.py: their places and pictures
                     │      └── messages ───┴→ Findings, frames.csv, motion.jsonl
                     └→ (a clip that browsers do not play) encoder → video

The elements after each queue run in their own thread, so cudahistogram's messages may precede cudadiff's. Data that
grow with the length of the clip are written to files immediately. All times are stream times in seconds, and all boxes
are x, y, width, height in pixels of the clip's picture.
"""
import collections
import dataclasses
import json
import time

from gi.repository import GObject

import common
import inputs
import part
import upright
from common import Gst
from shortest import Shortest, lasts

import feeds
import media
import pictures
import playlist
import recording
import tables
from findings import Findings, Frame

GAP = 1  # seconds without motion after which motion ends
GATHER = 0.02  # seconds for which messages are collected
NONE, SECOND = Gst.CLOCK_TIME_NONE, Gst.SECOND  # each lookup of a name in Gst costs as much as a call

# The settings of cudadiff for the synthetic scene and for a clip. The preset is for a camera whose picture is empty at
# first.
SETTINGS = "min-area=2 min-motion-frames=2 region-distance=2", "preset=outdoor"

# Two balls over colour bars. One of them moves back and forth.
SYNTHETIC = """
  videotestsrc pattern=smpte75 num-buffers={n} ! video/x-raw,width=640,height=480,framerate=30/1 ! scene.sink_0
  videotestsrc pattern=ball background-color=0 num-buffers={n} !
  video/x-raw,format=AYUV,width=640,height=480,framerate=30/1 ! scene.sink_1
  videotestsrc pattern=ball motion=sweep background-color=0 num-buffers={n} !
  video/x-raw,format=AYUV,width=240,height=240,framerate=30/1 ! scene.sink_2
  compositor name=scene sink_2::xpos=360 sink_2::ypos=60 ! videoconvert ! video/x-raw,format=I420"""

OBJECT_FIELDS = "id", "x", "y", "width", "height", "zone", "line", "direction", "crossed-left", "crossed-right"
END = {"began": "began", "last": "last-motion"}  # arguments of Shortest.add(), and fields of `end`
REGION_FIELDS = "x", "y", "width", "height", "area", "score"

TIMELESS = "the frames of the clip have no times; set its frames per second, such as --rate=25"

BRIGHTNESS = Gst.SECOND // 10  # time over which cudahistogram sums

HIDDEN = "name", "parent", "backend", "output", "post-messages", "attach-roi"  # not settings of the analysis


def seconds_of(structure, name):
    """The time in a field, in seconds. Raises a Failure if the time is unknown."""
    time = structure[name]
    if time == NONE:
        raise common.Failure(TIMELESS)
    return time / SECOND


def require_times(pad):
    """Posts an error for a frame without a time among the first ones at a sink pad, before an encoder complains."""
    left = 30  # frames; of a clip without times, at most the first one has a time

    def on_buffer(pad, info):
        nonlocal left
        left -= 1
        if info.get_buffer().pts != NONE:
            return Gst.PadProbeReturn.OK if left else Gst.PadProbeReturn.REMOVE
        part.complain(pad, TIMELESS)
        return Gst.PadProbeReturn.DROP

    pad.add_probe(Gst.PadProbeType.BUFFER, on_buffer)


class Collector:
    """Turns the messages of a pipeline into Findings, and writes events as JSON lines and frames as CSV lines to open
    files."""

    def __init__(self, events, frames, findings, least=None, hold=1.0):
        self.events, self.frames, self.findings, self.least = events, frames, findings, least
        self.shortest = Shortest(least, hold)
        self.waiting = collections.deque()  # frames whose brightness is unknown so far
        self.lights = collections.deque()  # begin, end and brightness of times whose frames have not arrived
        self.light, self.lit = (0, 0, 0), 0  # the brightness up to the time `lit`
        self.drawn = self.last = None
        self.frames.write(tables.line_of(tables.FRAMES))

    def write(self, event, **times):
        for each in self.shortest.add(event, self.findings.frame_time, **times):
            self.events.write((json.dumps(each) + "\n").encode())

    def finish_frames(self, left=0, end=False):
        """Finishes the frames whose brightness is known, except the last `left` frames. At the end, finishes all
        frames."""
        while len(self.waiting) > left:
            time = self.waiting[0].time
            while self.lights and self.lights[0][0] <= time:
                _, self.lit, self.light = self.lights.popleft()
            if not self.lights and time >= self.lit and not end:
                return
            frame = self.waiting.popleft()
            frame.brightness, frame.dark, frame.bright = self.light
            self.findings.add(frame)
            self.frames.write(tables.frame_line(frame))

    def on_histogram(self, structure):
        luma, percent, when = (structure["channels"][0], 100 / (2 ** structure["depth"] - 1),
                               seconds_of(structure, "stream-time"))
        duration = structure["duration"]
        self.lights.append((when, when if duration == NONE else when + duration / SECOND,
                            [luma[key] * percent for key in ("mean", "p01", "p99")]))
        self.finish_frames()
        if self.drawn is None or not 0 <= when - self.drawn < 1:
            self.drawn = when
            self.findings.recording.histogram(when, luma["counts"])

    def on_object(self, structure):
        event = {"event": structure["event"], "time": seconds_of(structure, "stream-time")}
        event.update({key.replace("-", "_"): structure[key] for key in OBJECT_FIELDS if structure.has_field(key)})
        event.update({key: seconds_of(structure, key) for key in ("entered", "left", "since")
                      if structure.has_field(key)})
        if event["event"] == "leave":
            event.update(seconds=round(structure["seconds"], 3), path_length=round(structure["path-length"], 1),
                         best_time=seconds_of(structure, "best-time"),
                         best_box=[structure[f"best-{key}"] for key in ("x", "y", "width", "height")])
            if lasts(event["seconds"], self.least, self.findings.frame_time):
                self.findings.visits.append(event)
        elif event["event"] == "cross":
            self.findings.crossings.append(event)
        elif event["event"] != "enter":
            self.findings.notes.append(event)
        self.write(event)

    def on_motion(self, structure):
        when, event, ratio = seconds_of(structure, "stream-time"), structure["event"], structure["changed-ratio"]
        regions = structure["regions"] if event != "none" else []
        if event in common.CAMERA_EVENTS:
            if event != "moved":  # `moved` follows `moves`, which is noted
                self.findings.lights.append(when)
        else:
            # The `end` after the last frame repeats that frame.
            frame = next((one for one in reversed(self.waiting) if one.time == when), None)
            if not frame and (event != "end" or not self.findings.count or when > self.findings.end):
                frame = Frame(when)
                self.waiting.append(frame)
            if frame:
                if (duration := structure["duration"]) != NONE:
                    self.findings.frame_time = duration / SECOND
                elif self.last is not None and when > self.last:
                    self.findings.frame_time = when - self.last
                self.last = when
                frame.changed, frame.regions = 100 * ratio, max(frame.regions, len(regions))
                frame.moving |= event in ("begin", "motion")
                self.finish_frames(1)  # an `end` may repeat the last one
        if event != "none":
            self.write({"event": event, "time": when, "changed_ratio": round(ratio, 6),
                        **({"x": structure["x"], "y": structure["y"]} if event == "moved" else {}),
                        "mean_difference": round(structure["mean-difference"], 4),
                        "regions": [{key: region[key] for key in REGION_FIELDS} for region in regions]},
                       **{name: seconds_of(structure, key) for name, key in END.items()
                          if event == "end" and structure[key] not in (None, NONE)})

    def on_lost(self, spans):
        """Writes the unreadable frames. They come last, because they are known only at the end."""
        for span in spans:
            self.write({"event": "lost", "time": round(span.begin, 6), "until": round(span.end, 6),
                        "frames": span.frames, "estimated": span.about})

    def on_holes(self, holes):
        for hole in holes:
            self.write({"event": "hole", "time": round(hole.begin, 6), "until": round(hole.end, 6),
                        "files": hole.files})

    def on_message(self, structure):
        name = structure.get_name()
        if name == "cudahistogram":
            self.on_histogram(structure)
        elif name == "cudadiff" and structure.has_field("id"):
            self.on_object(structure)
        elif name == "cudadiff":
            self.on_motion(structure)


def build(args, encoding, video):
    """Makes the pipeline for a clip, or for the synthetic scene without a clip. `encoding` is the description from
    media.encoder() for the open file `video`, or empty."""
    source, values, fitted = f"{SYNTHETIC.format(n=args.frames)} !", {}, ""
    if args.recording:
        source, fitted = "", f"! {playlist.FITTED}"
    elif args.clip:
        source, values = inputs.source_of(args.clip)
        source += " !"
    encode = (f"tee name=split ! queue name=encoding ! {encoding} ! filesink name=out async=false split." if encoding
              else "identity silent=true")
    pipeline = common.parse(
        f"""{source} queue name=decoded ! videoconvert name=shown {fitted} ! video/x-raw ! {encode} !
        queue name=analysis ! cudahistogram name=brightness interval={BRIGHTNESS} backend={args.backend} !
        queue ! cudadiff name=motion {SETTINGS[bool(args.clip)]} output=mask gap={GAP} backend={args.backend} !
        video/x-raw ! fakesink name=masks sync=false""",
        **({"out": {"location": common.location_of(video)}} if encoding else {}),
        **({"source": values} if values else {}))
    if args.clip and not args.recording:
        inputs.prepare(pipeline, args.clip)
    if encoding:
        media.begin_at_zero(pipeline.get_by_name("encoding"))
        media.end_quietly(pipeline.get_by_name("encoder"))
    if not args.recording:  # each file of a recording has its own
        upright.keep(pipeline.get_by_name("shown").get_static_pad("sink"))
    pipeline.set_property("auto-flush-bus", False)  # the last messages are posted when the pipeline stops
    motion = pipeline.get_by_name("motion")
    for text in args.settings:
        inputs.set_property(motion, text)
    for name in ("zones", "lines"):
        if getattr(args, name):
            motion.set_property(name, getattr(args, name))
    return pipeline


def settings_of(motion):
    """The properties of a cudadiff that differ from their defaults, in the form of a gst-launch-1.0 line."""
    found = []
    for spec in motion.list_properties():
        if spec.owner_type.name == "GstObject" or not spec.flags & GObject.ParamFlags.WRITABLE or spec.name in HIDDEN:
            continue
        value = motion.get_property(spec.name)
        if value not in (spec.default_value, None, ""):
            found.append(f"{spec.name}={getattr(value, 'value_nick', value)}")
    return " ".join(found)


def analyse(args, encoding, video, folder, events, frames):
    """Analyses one clip. Writes the video, events and frames to these open files, and the data of the page to unnamed
    files in `folder`. Returns the Findings. A clip that ends with an error after its first frames is incomplete."""
    pipeline = build(args, encoding, video)
    findings = Findings(recording=recording.Recorder(folder))
    motion = pipeline.get_by_name("motion")
    collector = Collector(events, frames, findings, args.min_event, motion.get_property("track-hold"))
    chosen = dataclasses.replace(args.part, rate=None) if args.recording else args.part  # the Playlist gives times
    gate = part.Gate(pipeline.get_by_name("decoded").get_static_pad("sink"), chosen, skip=False)
    require_times(gate.pad)
    part.skip_frames(pipeline.get_by_name("analysis").get_static_pad("sink"), args.part.skip)

    def progress(_):
        if findings.incomplete:  # see on_error
            pipeline.set_state(Gst.State.PLAYING)
        position = max(pipeline.query_position(Gst.Format.TIME)[1], 0) / Gst.SECOND
        findings.declared = args.length or pipeline.query_duration(Gst.Format.TIME)[1] / Gst.SECOND
        most = min(findings.declared, args.part.until or findings.declared)
        share = f" of {most:.1f}" if findings.declared > 0 else ""
        print(f"  {position:.1f}{share} s, {findings.count} frames, motion in {findings.moving}", flush=True)

    def on_message(message):
        structure = message.get_structure()
        if not feed.on_message(structure):
            findings.backend = findings.backend or motion.get_property("active-backend").value_nick
            collector.on_message(structure)

    def on_error(message):
        common.check_disk(message, folder)
        if not feed.on_error(message):
            return False
        pipeline.set_state(Gst.State.PLAYING)  # once more, because an error during preroll ends the change of state
        return True

    feed = (feeds.Recording if args.recording else feeds.Clip)(pipeline, args, findings, gate)
    began = time.monotonic()
    pads = (pipeline.get_by_name("brightness").get_static_pad("sink"),
            pipeline.get_by_name("masks").get_static_pad("sink"))
    with pictures.Tracker(*pads, findings.recording, folder) as tracker:
        with feed.watch():
            findings.stopped = common.play(pipeline, on_message, progress, on_error, feed.stop, GATHER)
        while message := pipeline.get_bus().pop_filtered(Gst.MessageType.ELEMENT):
            if message.get_structure().get_name() != playlist.DONE:
                on_message(message)
        collector.finish_frames(end=True)
        feed.finish()
        collector.on_lost(findings.lost)
        collector.on_holes(findings.holes)
        tracker.develop()
        findings.poster, findings.size, findings.pictures = tracker.poster(), tracker.size, tracker.pictures
        findings.heat_map = tracker.heat_map() if findings.moving else b""
    if not findings.count:
        raise common.Failure(findings.incomplete or gate.why_nothing() or "there is no frame in the clip")
    findings.runs = [run for run in findings.runs if run[0] not in collector.shortest.dropped]
    findings.reached, findings.at_end = max(gate.reached, findings.end + findings.frame_time), gate.ended
    findings.recording.finish()
    findings.seconds, findings.settings = time.monotonic() - began, settings_of(motion)
    findings.visits.sort(key=lambda visit: (visit["entered"], visit["id"]))
    return findings
