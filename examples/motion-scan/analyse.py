#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Analyses one clip in a process of its own: cudahistogram and cudadiff, messages only; frames stay where the decoder leaves them.

Reads a request from stdin and writes a result to stdout, both JSON.
  request   uri (null: two synthetic frames, which try the settings), settings {property of cudadiff: value}, backend,
            timeout (seconds), parent (the process that started this one)
  result    status: ok; failed (the clip is at fault: error says why); timeout; setup (this machine or a setting is at fault).
            After failed and timeout, the other fields say what was found until then:
            frames, motion_frames, width, height (pixels), duration (seconds of video), backend, cpu_seconds, memory_mib,
            profile  a row for each second of video: second, frames, motion_frames, changed_mean, changed_max (shares of pixels),
                     brightness, dark, bright (mean, 1st and 99th percentile of luma, in percent; null without a measurement)
            events   begin, end, light and cross: event, time (seconds), changed_ratio, line, direction, id
            objects  visits: id, zone, entered, left, seconds, path_length (pixels), and the last box: x, y, width, height
"""
import ctypes
import json
import os
import pathlib
import resource
import signal
import sys
import time

sys.path.insert(1, str(pathlib.Path(__file__).resolve().parent.parent))  # elsewhere all files are in one folder
import common  # noqa: E402
import inputs  # noqa: E402
import uris  # noqa: E402
from common import Gst  # noqa: E402

PR_SET_PDEATHSIG = 1
FRAME_RATE = 25  # of frames without times, as in cudadiff
TRIAL = "videotestsrc num-buffers=2 ! video/x-raw,width=320,height=240"


class TimeUp(Exception):
    """The time for the clip is over."""


class Recorder:
    """Collects the messages of a pipeline."""

    def __init__(self):
        self.frames = self.motion_frames = 0
        self.duration, self.last = 0.0, None
        self.seconds, self.events, self.objects = {}, [], []

    def time_of(self, structure):
        """The stream time of a message in seconds."""
        time = structure["stream-time"]
        return time / Gst.SECOND if time != Gst.CLOCK_TIME_NONE else max(0, self.frames - 1) / FRAME_RATE

    def second(self, time):
        return self.seconds.setdefault(int(time), {"frames": 0, "motion_frames": 0, "changed": 0.0, "changed_max": 0.0, "lit": 0,
                                                   "light": [0.0, 0.0, 0.0]})

    def on_message(self, message):
        structure = message.get_structure()
        if structure.get_name() == "cudahistogram":
            self.on_brightness(structure)
        elif structure.get_name() == "cudadiff" and structure.has_field("id"):
            self.on_object(structure)
        elif structure.get_name() == "cudadiff":
            self.on_frame(structure)

    def on_brightness(self, structure):
        luma, percent, count = structure["channels"][0], 100 / (2 ** structure["depth"] - 1), structure["frames"]
        row = self.second(self.time_of(structure))
        row["lit"] += count
        row["light"] = [old + count * percent * luma[key] for old, key in zip(row["light"], ("mean", "p01", "p99"))]

    def on_frame(self, structure):
        event, ratio = structure["event"], structure["changed-ratio"]
        # The message `light` comes beside that of its frame; the `end` after the last frame repeats it.
        again = event == "light" or (event == "end" and structure["timestamp"] in (self.last, Gst.CLOCK_TIME_NONE))
        self.frames += not again
        time, self.last = self.time_of(structure), structure["timestamp"]
        if event in ("begin", "end", "light"):
            self.events.append({"event": event, "time": time, "changed_ratio": ratio})
        if again:
            return
        moving = event in ("begin", "motion")
        duration = structure["duration"]
        self.duration = max(self.duration, time + (duration / Gst.SECOND if duration != Gst.CLOCK_TIME_NONE else 0))
        self.motion_frames += moving
        row = self.second(time)
        row["frames"] += 1
        row["motion_frames"] += moving
        row["changed"] += ratio
        row["changed_max"] = max(row["changed_max"], ratio)

    def on_object(self, structure):
        event = structure["event"]
        if event == "cross":
            self.events.append({"event": event, "time": self.time_of(structure),
                                **{key: structure[key] for key in ("id", "line", "direction")}})
        elif event == "leave":
            self.objects.append({"zone": structure["zone"] if structure.has_field("zone") else None,
                                 **{key: structure[key] / Gst.SECOND for key in ("entered", "left")},
                                 **{key: structure[key] for key in ("id", "seconds", "x", "y", "width", "height")},
                                 "path_length": structure["path-length"]})

    def profile(self):
        rows = []
        for second, row in sorted(self.seconds.items()):
            light = [value / row["lit"] for value in row["light"]] if row["lit"] else [None] * 3
            rows.append({"second": second, "frames": row["frames"], "motion_frames": row["motion_frames"],
                         "changed_mean": row["changed"] / max(1, row["frames"]), "changed_max": row["changed_max"],
                         **dict(zip(("brightness", "dark", "bright"), light))})
        return rows


def use_one_thread(_, __, element):
    """One thread for each decoder, because many clips are decoded at a time."""
    if element.get_name().startswith("avdec_") and element.find_property("max-threads"):
        element.set_property("max-threads", 1)


def make(request):
    """The pipeline of a request. Raises a Failure that does not depend on the clip."""
    source = f"{common.DECODER} name=clip" if request["uri"] else TRIAL
    # No queue: a clip takes about one core, and the next core takes the next clip.
    backend = request["backend"]
    pipeline = common.parse(f"""{source} ! videoconvert ! cudahistogram name=brightness interval={Gst.SECOND} backend={backend} !
                            cudadiff name=motion output=passthrough attach-roi=false gap=1 backend={backend} !
                            fakesink sync=false""")
    pipeline.set_property("auto-flush-bus", False)  # the last messages come when the pipeline stops
    for name, value in request["settings"].items():
        if not inputs.set_property(pipeline.get_by_name("motion"), f"{name}={value}"):
            raise common.Failure(f"cudadiff has no such property or value: {name}={value}")
    if request["uri"]:
        clip = pipeline.get_by_name("clip")
        clip.set_property("uri", request["uri"])
        clip.connect("deep-element-added", use_one_thread)
    return pipeline


def analyse(request):
    """The result of a request, see above."""
    ends = time.monotonic() + request["timeout"]

    def check_time(_):
        if time.monotonic() >= ends:
            raise TimeUp

    try:
        pipeline = make(request)
    except common.Failure as error:
        return {"status": "setup", "error": str(error)}
    motion, recorder, error, status = pipeline.get_by_name("motion"), Recorder(), None, "ok"
    found = {"width": None, "height": None, "backend": None}

    def on_message(message):
        recorder.on_message(message)
        if not found["backend"] and (caps := motion.get_static_pad("sink").get_current_caps()):
            found["width"], found["height"] = common.size_of(Gst.Sample.new(None, caps, None, None))
            found["backend"] = motion.get_property("active-backend").value_nick

    try:
        common.play(pipeline, on_message, check_time)
    except TimeUp:
        status, error = "timeout", f"the clip did not end within {request['timeout']:g} seconds"
    except common.Failure as failure:
        status = "failed" if request["uri"] else "setup"
        error = str(failure).removeprefix(uris.name_of(request["uri"] or "") + ": ")
    while message := pipeline.get_bus().pop_filtered(Gst.MessageType.ELEMENT):
        on_message(message)
    if status == "ok" and not recorder.frames:
        status, error = "failed", "there is no frame in it"
    used = resource.getrusage(resource.RUSAGE_SELF)
    return {"status": status, "error": error, "frames": recorder.frames, "motion_frames": recorder.motion_frames,
            **found, "duration": recorder.duration,
            "cpu_seconds": used.ru_utime + used.ru_stime, "memory_mib": used.ru_maxrss / 1024,
            "profile": recorder.profile(), "events": recorder.events,
            "objects": sorted(recorder.objects, key=lambda visit: (visit["entered"], visit["id"]))}


def run():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # whoever kills the worker ends its clip, too
    output = os.dup(1)
    os.dup2(2, 1)  # a decoder that prints does not spoil the result
    request = json.load(sys.stdin)
    if os.getppid() != request["parent"]:
        return
    with os.fdopen(output, "w") as stream:
        json.dump(analyse(request), stream)


if __name__ == "__main__":
    common.main(run)
