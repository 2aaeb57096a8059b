#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Analyses many clips in one process, which opens GStreamer and the GPU once. It uses only the messages of
cudahistogram and cudadiff; frames stay where the decoder writes them.

Reads requests from stdin and writes results to stdout, each as a line of JSON, until stdin ends. Each request starts
immediately, in parallel with earlier ones, so the writer of the requests decides how many run at a time.
  request   number (repeated in the result), uri (null: two synthetic frames, which try the settings), track (the
            number of a video track; 1 if it is missing), settings
            {property of cudadiff: value}, backend, timeout (seconds), threads (of a decoder on the CPU; 0: the decoder
            decides), part (of the clip: the result of part.Part.as_texts(); {} is the whole clip), min_event (the
            shortest motion or visit, a text for part.time_of(), or null)
  result    status: ok; failed (the clip is at fault; error has the reason); timeout; setup (this machine or a setting
            is at fault). After failed and timeout, the other fields have the results so far:
            frames, motion_frames, width, height (pixels), duration (seconds of video), backend, cpu_seconds,
            memory_mib, began (the clock time of the beginning in the clip, ISO 8601, or null),
            complete (whether the whole clip was read, and is as long as its container says),
            incomplete (a sentence that explains why it is not, or an empty text), lost (the number of unreadable
            frames), track (a sentence about the analysed track if there are several, or an empty text)
            profile  a row for each second of video: second, frames, motion_frames, changed_mean, changed_max (shares
                     of pixels), brightness, dark, bright (mean, 1st and 99th percentile of luma, in percent; null
                     without a measurement)
            events   motion, light, cross and lost: event, begin, end, duration (seconds), changed_ratio, objects (their
                     number), picture (of motion: JPEG in base64, or null), line, direction, id, frames (lost)
            objects  visits: id, zone, entered, left, seconds, path_length (pixels), and the last box: x, y, width,
                     height

A request with `cut` decodes nothing: it cuts clips of events out of a file that was analysed earlier.
  request   number, uri, timeout, cut {events: a list of [begin, end, number of the object or null], folder (for the
            clips), before, after (seconds), joined (whether to write all clips as one file, too)}
  result    status: ok or failed, error; rows: for each event its row in clips.csv, or {} if it was not cut out; remark:
            a sentence about omitted sound, or an empty text
A request without uri may have `shared`, a file that this machine must see, in a folder where it can write.
"""
import contextlib
import json
import os
import pathlib
import resource
import sys
import threading
import time

sys.path.insert(1, str(pathlib.Path(__file__).resolve().parent.parent))  # on other machines all files are in one folder
import clip_facts  # noqa: E402
import clip_formats  # noqa: E402
import clips_of_events  # noqa: E402
import common  # noqa: E402
import containers  # noqa: E402
import inputs  # noqa: E402
import joined_clips  # noqa: E402
import losses  # noqa: E402
import part  # noqa: E402
import recorder  # noqa: E402
import stills  # noqa: E402
import tracks  # noqa: E402
import upright  # noqa: E402
import uris  # noqa: E402
from common import Gst  # noqa: E402

TRIAL = "videotestsrc num-buffers=2 ! video/x-raw,width=320,height=240"
# Demuxers of containers that declare their length. Other demuxers estimate it.
DECLARING = ("asfdemux", "flvdemux", "matroskademux", "qtdemux")
contexts = {}  # GPU contexts by type; all pipelines of this process share them


class TimeUp(Exception):
    """The time for the clip has run out."""


def make(request):
    """The pipeline of a request. Raises a Failure that does not depend on the clip."""
    source = f"{common.DECODER} name=clip" if request["uri"] else TRIAL
    # No queue: a clip takes about one core, and other cores work on other clips.
    backend = request["backend"]
    pipeline = common.parse(f"""{source} ! videoconvert name=decoded ! cudahistogram name=brightness backend={backend} !
                            cudadiff name=motion output=passthrough attach-roi=false gap=1 backend={backend} !
                            fakesink sync=false""")
    motion = pipeline.get_by_name("motion")
    for name, value in request["settings"].items():
        if not inputs.set_property(motion, f"{name}={value}"):
            raise common.Failure(f"cudadiff has no such property or value: {name}={value}")
    motion.set_property("message-interval", Gst.SECOND)
    for context in list(contexts.values()):
        pipeline.set_context(context)
    return pipeline


class Job:
    """A clip and its pipeline. Messages are read in the threads that post them."""

    def __init__(self, request):
        self.request, self.pipeline, self.demuxers, self.broken = request, make(request), [], None
        self.losses = self.tracks = None
        self.motion, self.brightness = (self.pipeline.get_by_name(name) for name in ("motion", "brightness"))
        least = request.get("min_event") and part.time_of(request["min_event"])
        self.recorder = recorder.Recorder(stills.Best(self.motion.get_static_pad("src")), least)
        self.gate = part.Gate(self.pipeline.get_by_name("decoded").get_static_pad("sink"),
                              part.of_texts(request.get("part") or {}))
        self.found = {"width": None, "height": None, "backend": None, "began": None}
        upright.keep(self.pipeline.get_by_name("decoded").get_static_pad("sink"))
        self.bus = self.pipeline.get_bus()
        self.bus.enable_sync_message_emission()
        self.handlers = [(self.bus, self.bus.connect("sync-message::element", self.on_element)),
                         (self.bus, self.bus.connect("sync-message::tag", self.on_tag)),
                         (self.bus, self.bus.connect("sync-message::have-context", self.on_context))]
        if request["uri"]:
            clip = self.pipeline.get_by_name("clip")
            clip.set_property("uri", request["uri"])
            self.handlers.append((clip, clip.connect("deep-element-added", self.on_added)))
            self.losses = losses.Losses(self.pipeline, clip, single=request["threads"] == 1)
            self.tracks = tracks.Tracks(clip, request.get("track", 1))

    def on_added(self, _, __, element):
        name = element.get_factory().get_name()
        if name in DECLARING:
            self.demuxers.append(element)
        if name.startswith("avdec_") and element.find_property("max-threads"):
            element.set_property("max-threads", 1 if losses.others(self.losses) else self.request["threads"])

    def on_context(self, _, message):
        context = message.parse_have_context()
        contexts.setdefault(context.get_context_type(), context)

    def on_tag(self, _, message):
        began = clip_facts.began_of(message.parse_tag())
        if began and not self.found["began"]:
            self.found["began"] = began.isoformat()

    def on_element(self, _, message):
        try:
            self.read(message.get_structure())
        except Exception as error:  # an exception would be lost in GStreamer's thread
            self.broken = error

    def read(self, structure):
        if structure.get_name() == "cudahistogram":
            # The brightness is measured once a second, in the frame after each message of cudadiff.
            self.recorder.on_brightness(structure)
            self.brightness.set_property("post-messages", False)
        elif structure.get_name() == "cudadiff":
            self.recorder.on_motion(structure)
            self.brightness.set_property("post-messages", True)
            if not self.found["backend"] and (caps := self.motion.get_static_pad("sink").get_current_caps()):
                self.found["width"], self.found["height"] = common.size_of_caps(caps)
                self.found["backend"] = self.motion.get_property("active-backend").value_nick

    def declared(self):
        """The length in seconds that the container declares, or 0."""
        answers = [demuxer.query_duration(Gst.Format.TIME) for demuxer in self.demuxers]
        return max((length / Gst.SECOND for known, length in answers if known), default=0)

    def file(self):
        """The path of the clip if it is a file here; otherwise None."""
        path = uris.path_of(self.request["uri"] or "test://")
        return path if path and os.path.isfile(path) else None

    def play(self):
        """Runs the pipeline to its end. Returns the length that the container declares. Raises a Failure or TimeUp."""
        path = uris.path_of(self.request["uri"] or "test://")
        if path and (fault := common.fault_of(path)):
            raise common.Failure(fault)
        ends = time.monotonic() + self.request["timeout"]
        with self.losses or contextlib.nullcontext():
            return self.play_until(ends)

    def play_until(self, ends):
        try:
            self.pipeline.set_state(Gst.State.PLAYING)
            while True:
                message = self.bus.timed_pop_filtered(Gst.SECOND // 10, Gst.MessageType.ERROR | Gst.MessageType.EOS)
                common.check(message)
                if message:
                    return self.declared()
                if time.monotonic() >= ends:
                    raise TimeUp
        finally:
            self.pipeline.set_state(Gst.State.NULL)  # posts the last messages

    def missing(self, found, spans, promised):
        """A sentence about what is missing from a clip that was read to its end, or an empty text."""
        lost = losses.sentence(spans, found["frames"])
        if self.gate.ended:
            return lost
        end = max([found["duration"], self.gate.reached, *(span.end for span in spans)])
        cut = self.file() and containers.cut_of(self.file())
        return "; ".join(filter(None, (lost, cut or clip_facts.missing(end, promised, self.gate.part.until))))

    def close(self):
        """Breaks the reference cycles that would keep the pipeline alive."""
        for sender, handler in self.handlers:
            sender.disconnect(handler)
        if self.tracks:
            self.tracks.close()
        self.bus.disable_sync_message_emission()
        self.handlers.clear()


def seconds_used():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def check_shared(file):
    """Raises a Failure if a file does not exist, or no files can be written beside it."""
    folder = os.path.dirname(file)
    if not os.path.exists(file):
        raise common.Failure(f"clips are written by the machines that analyse, and here {folder} is not the folder of "
                             "--out: it must be "
                             "shared, with the same path everywhere")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise common.Failure(f"cannot write into the folder {folder}: permission denied")


def cut(request):
    """The result of a request with `cut`, see above."""
    wanted, path = request["cut"], uris.path_of(request["uri"])
    events = [clips_of_events.Event(*each) for each in wanted["events"]]
    facts = clip_facts.facts_of(path) if path and os.path.isfile(path) else None
    error, unheard, until = None, "", time.monotonic() + request["timeout"]
    try:
        if not path or not os.path.isfile(path):
            raise common.Failure("it is not a file")
        if not clip_formats.can_cut(facts):
            clips_of_events.forget_listed(wanted["folder"], path)
            raise common.Failure(clip_formats.why_not(facts))
        rows = clips_of_events.cut(path, facts, events, wanted["folder"], wanted["before"], wanted["after"],
                                   facts.began, until=until)
        if wanted["joined"]:
            unheard = joined_clips.join(rows, wanted["folder"], until)[1]
    except common.Failure as failure:
        error = str(failure).removeprefix(uris.name_of(request["uri"]) + ": ")
    remark = "; ".join(filter(None, (clip_formats.left_out(facts), unheard)))
    return {"status": "failed" if error else "ok", "error": error, "remark": remark,
            "rows": [event.row for event in events]}


def analyse(request):
    """The result of a request, see above."""
    error, status, promised, before = None, "ok", 0, seconds_used()
    try:
        if request.get("shared"):
            check_shared(request["shared"])
        job = Job(request)
    except common.Failure as failure:
        return {"status": "setup", "error": str(failure)}
    try:
        promised = job.play()
    except TimeUp:
        status, error = "timeout", f"the clip did not end within {request['timeout']:g} seconds"
    except common.Failure as failure:
        status = "failed" if request["uri"] else "setup"
        error = str(failure).removeprefix(uris.name_of(request["uri"] or "") + ": ")
    finally:
        job.close()
    if job.broken:
        raise job.broken
    spans = job.losses.result(status == "ok" and job.gate.part.is_whole, job.gate.over) if job.losses else []
    found = job.recorder.result(spans)
    if status == "ok" and not found["frames"]:
        status, error = "failed", job.gate.why_nothing() or "there is no frame in it"
    missing = job.missing(found, spans, promised) if status == "ok" else error
    return {"status": status, "error": error, **found, **job.found, "complete": not missing, "incomplete": missing,
            "track": job.tracks.sentence() if job.tracks else "",
            "cpu_seconds": seconds_used() - before,
            "memory_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def serve(requests, results):
    lock = threading.Lock()

    def work(request):
        try:
            result = cut(request) if "cut" in request else analyse(request)
        except BaseException:
            sys.excepthook(*sys.exc_info())
            os._exit(1)  # a crash, which the worker reports with the last line of stderr
        with lock:
            print(json.dumps({**result, "number": request["number"]}), file=results, flush=True)

    for line in requests:
        threading.Thread(target=work, args=(json.loads(line),), daemon=True).start()
    os._exit(0)  # the writer of the requests is gone: nobody reads a result


def run():
    results = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # output of a decoder must not spoil the results
    serve(sys.stdin, results)


if __name__ == "__main__":
    common.main(run)
