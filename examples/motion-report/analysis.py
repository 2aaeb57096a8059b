# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs a clip once through cudahistogram and cudadiff, and collects what the report shows:

    source → upright → cudahistogram → cudadiff output=overlay → cudahistogram overlay=true → VP9 in WebM
                           │               │ metas of objects → tracks.py: their ways and snapshots
                           └── messages ───┴→ Findings

All times are stream times in seconds, all boxes x, y, width, height in pixels of the clip's picture.
"""
import json
import time
from dataclasses import dataclass, field

import common
import inputs
from common import Gst

import media
import tracks

GAP = 1  # seconds without motion after which motion ends

# Of cudadiff, for the synthetic scene and for a clip. The preset is for a camera whose picture is empty for a while at first.
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
REGION_FIELDS = "x", "y", "width", "height", "area", "score"

FULL = "motion-report-full"  # the message that ends the analysis after --seconds


@dataclass
class Frame:
    """Brightness is the mean of the luma, dark and bright are its 1st and 99th percentiles, in percent of the range. `changed` is
    in percent of the picture."""
    time: float
    brightness: float = 0
    dark: float = 0
    bright: float = 0
    changed: float = 0
    regions: int = 0
    moving: bool = False


@dataclass
class Findings:
    """`visits` are the events `leave` and `crossings` the events `cross` as in motion.jsonl, `lights` times. `tracks` has for each
    object a list of (time, x, y, width, height), `snapshots` its JPEG. `poster` is a JPEG of the frame in which most moves."""
    frames: list = field(default_factory=list)
    visits: list = field(default_factory=list)
    crossings: list = field(default_factory=list)
    lights: list = field(default_factory=list)
    tracks: dict = field(default_factory=dict)
    snapshots: dict = field(default_factory=dict)
    poster: bytes = b""
    size: tuple = (0, 0)
    backend: str = ""
    seconds: float = 0  # that the analysis took

    @property
    def runs(self):
        """The runs of frames with motion, as pairs of times."""
        found, before = [], False
        for frame in self.frames:
            if frame.moving and before:
                found[-1][1] = frame.time
            elif frame.moving:
                found.append([frame.time, frame.time])
            before = frame.moving
        return found


def seconds_of(structure, name):
    """A field with a time, in seconds. Raises a Failure if the time is not known."""
    if structure[name] == Gst.CLOCK_TIME_NONE:
        raise common.Failure("the frames of the clip have no times; put the clip into a container such as MP4 or Matroska first")
    return structure[name] / Gst.SECOND


class Collector:
    """Turns the messages of a pipeline into Findings, and writes events as JSON lines to an open file."""

    def __init__(self, events):
        self.events, self.findings, self.frames, self.times = events, Findings(), {}, {}

    def write(self, event):
        self.events.write((json.dumps(event) + "\n").encode())

    def frame_of(self, structure):
        """The frame that a message describes. Messages of the two elements about a frame can come in any order."""
        when = seconds_of(structure, "stream-time")
        self.times[structure["timestamp"]] = when
        return self.frames.setdefault(when, Frame(when))

    def on_histogram(self, structure):
        luma, percent, frame = structure["channels"][0], 100 / (2 ** structure["depth"] - 1), self.frame_of(structure)
        frame.brightness, frame.dark, frame.bright = (luma[key] * percent for key in ("mean", "p01", "p99"))

    def on_object(self, structure):
        event = {"event": structure["event"], "time": seconds_of(structure, "stream-time")}
        event.update({key.replace("-", "_"): structure[key] for key in OBJECT_FIELDS if structure.has_field(key)})
        event.update({key: seconds_of(structure, key) for key in ("entered", "left") if structure.has_field(key)})
        if event["event"] == "leave":
            event.update(seconds=round(structure["seconds"], 3), path_length=round(structure["path-length"], 1))
            self.findings.visits.append(event)
        elif event["event"] == "cross":
            self.findings.crossings.append(event)
        self.write(event)

    def on_motion(self, structure):
        frame, event = self.frame_of(structure), structure["event"]
        if event == "light":  # which comes beside the message of its frame
            self.findings.lights.append(frame.time)
        else:
            frame.changed, frame.regions = 100 * structure["changed-ratio"], len(structure["regions"])
            frame.moving |= event in ("begin", "motion")
        if event != "none":
            self.write({"event": event, "time": frame.time, "changed_ratio": round(structure["changed-ratio"], 6),
                        "mean_difference": round(structure["mean-difference"], 4),
                        "regions": [{key: region[key] for key in REGION_FIELDS} for region in structure["regions"]]})

    def on_message(self, structure):
        if structure.get_name() == "cudahistogram":
            self.on_histogram(structure)
        elif structure.get_name() == "cudadiff" and structure.has_field("id"):
            self.on_object(structure)
        elif structure.get_name() == "cudadiff":
            self.on_motion(structure)


def build(args, video):
    """Makes the pipeline for a clip, or for the synthetic scene if there is no clip. `video` is an open file for WebM."""
    source, values = inputs.source_of(args.clip) if args.clip else (SYNTHETIC.format(n=args.frames), {})
    pipeline = common.parse(
        f"""webmmux name=file offset-to-zero=true ! filesink name=out
        {source} ! queue ! videoconvert ! videoflip video-direction=auto ! video/x-raw !
        cudahistogram name=brightness backend={args.backend} !
        cudadiff name=motion {SETTINGS[bool(args.clip)]} output=overlay gap={GAP} backend={args.backend} !
        cudahistogram name=histogram overlay=true post-messages=false backend={args.backend} ! {media.ENCODER} ! file.""",
        out={"location": common.location_of(video)}, **{"source": values} if values else {})
    motion = pipeline.get_by_name("motion")
    for text in args.settings:
        inputs.set_property(motion, text)
    for name in ("zones", "lines"):
        if getattr(args, name):
            motion.set_property(name, getattr(args, name))
    return pipeline


def end_after(pipeline, seconds):
    """Lets frames pass up to this stream time only, and then posts the message FULL."""
    pad, posted = pipeline.get_by_name("brightness").get_static_pad("sink"), []

    def on_buffer(pad, info):
        segment = pad.get_sticky_event(Gst.EventType.SEGMENT, 0).parse_segment()
        when = segment.to_stream_time(Gst.Format.TIME, info.get_buffer().pts)
        if when == Gst.CLOCK_TIME_NONE or when < seconds * Gst.SECOND:
            return Gst.PadProbeReturn.OK
        if not posted:
            posted.append(True)
            pipeline.post_message(Gst.Message.new_element(pipeline, Gst.Structure.new_empty(FULL)))
        return Gst.PadProbeReturn.DROP

    pad.add_probe(Gst.PadProbeType.BUFFER, on_buffer)


def analyse(args, video, events):
    """Analyses one clip: writes the video and the events to these open files. Returns the Findings."""
    pipeline = build(args, video)
    motion, collector = pipeline.get_by_name("motion"), Collector(events)
    findings = collector.findings
    media.fit_histogram(pipeline.get_by_name("histogram"))
    if args.seconds:
        end_after(pipeline, args.seconds)

    def progress(_):
        position = pipeline.query_position(Gst.Format.TIME)[1] / Gst.SECOND
        length = pipeline.query_duration(Gst.Format.TIME)[1] / Gst.SECOND
        share = f" of {min(length, args.seconds or length):.1f}" if length > 0 else ""
        moving = sum(frame.moving for frame in collector.frames.values())
        print(f"  {position:.1f}{share} s, {len(collector.frames)} frames, motion in {moving}")

    def on_message(message):
        structure = message.get_structure()
        findings.backend = findings.backend or motion.get_property("active-backend").value_nick
        if structure.get_name() == FULL:
            pipeline.send_event(Gst.Event.new_eos())
        else:
            collector.on_message(structure)

    began = time.monotonic()
    pads = pipeline.get_by_name("brightness").get_static_pad("sink"), pipeline.get_by_name("histogram").get_static_pad("src")
    with tracks.Tracker(pads[0], motion, pads[1]) as tracker:
        common.play(pipeline, on_message, progress)
    if not collector.frames:
        raise common.Failure("there is no frame in the clip")
    findings.seconds = time.monotonic() - began
    findings.frames = sorted(collector.frames.values(), key=lambda frame: frame.time)
    findings.visits.sort(key=lambda visit: (visit["entered"], visit["id"]))
    findings.tracks = {number: [(collector.times[pts], *box) for pts, box in track if pts in collector.times]
                       for number, track in tracker.tracks.items()}
    findings.snapshots, findings.poster, findings.size = tracker.snapshots, tracker.poster, tracker.size
    return findings
