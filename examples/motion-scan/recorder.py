# SPDX-License-Identifier: LGPL-2.1-or-later
"""Makes the rows of a clip from the messages of cudahistogram and cudadiff."""
from common import CAMERA_EVENTS, Gst
from shortest import FRAME_TIME, lasts

FRAME_RATE = 25  # frames per second of frames without times, as in cudadiff


def times_of(structure, *names):
    """Times of a message in seconds; None where it has none."""
    return [None if structure[name] == Gst.CLOCK_TIME_NONE else structure[name] / Gst.SECOND for name in names]


class Recorder:
    """Collects the messages of a pipeline. `best` keeps the best frame of a motion, see stills.Best. `least` is the
    shortest motion or visit that counts, a part.Time or None."""

    def __init__(self, best, least=None):
        self.best, self.least, self.frame_time = best, least, FRAME_TIME
        self.frames = self.motion_frames = 0
        self.duration, self.last = 0.0, None  # `last` is the time of the last frame so far
        self.seconds, self.events, self.objects = {}, [], []
        self.first = {}  # the box of each object, in the frame or in a zone, when it entered

    def time_of(self, structure):
        """The stream time of a message in seconds."""
        time, = times_of(structure, "stream-time")
        return max(0, self.frames - 1) / FRAME_RATE if time is None else time

    def second(self, time):
        return self.seconds.setdefault(int(time), {"frames": 0, "motion_frames": 0, "changed": 0.0, "changed_max": 0.0,
                                                   "lit": 0, "light": [0.0, 0.0, 0.0]})

    def on_brightness(self, structure):
        luma, percent, count = structure["channels"][0], 100 / (2 ** structure["depth"] - 1), structure["frames"]
        row = self.second(self.time_of(structure))
        row["lit"] += count
        row["light"] = [old + count * percent * luma[key] for old, key in zip(row["light"], ("mean", "p01", "p99"))]

    def on_motion(self, structure):
        if structure.has_field("id"):
            self.on_object(structure)
        elif structure["event"] in CAMERA_EVENTS:
            if structure["event"] != "moves":  # `moved` follows
                self.add_event(structure["event"], self.time_of(structure), changed=structure["changed-ratio"])
        else:
            self.on_frames(structure)

    def on_frames(self, structure):
        """A message with the sums of the frames since the previous message, all from one second."""
        count, event = structure["frames"], structure["event"]
        self.frames += count
        self.motion_frames += structure["motion-frames"]
        time = self.time_of(structure)
        duration = times_of(structure, "duration")[0] or 0.0
        self.frame_time = duration or self.frame_time
        if count:
            # A frame without a duration lasts as long as the step from the previous frame.
            step = (0.0 if self.last is None or structure["duration"] != Gst.CLOCK_TIME_NONE
                    else (time - self.last) / count)
            self.duration, self.last = max(self.duration, time + duration + step), time
            row = self.second(time)
            row["frames"] += count
            row["motion_frames"] += structure["motion-frames"]
            row["changed"] += count * structure["changed-mean"]
            row["changed_max"] = max(row["changed_max"], structure["changed-max"])
        if event in ("begin", "motion"):
            self.best.look(structure)
        if event == "end":
            began, last = times_of(structure, "began", "last-motion")
            begin, end = time if began is None else began, (time if last is None else last) + duration
            picture = self.best.take()
            if lasts(end - begin, self.least, self.frame_time):
                self.add_event("motion", begin, end, structure["changed-ratio"], picture=picture)

    def add_event(self, event, begin, end=None, changed=None, **more):
        end = begin if end is None else end
        self.events.append({"event": event, "begin": begin, "end": end, "duration": end - begin,
                            "changed_ratio": changed, **more})

    def on_object(self, structure):
        event = structure["event"]
        key = structure["id"], structure["zone"] if structure.has_field("zone") else None
        if event == "enter":
            self.first[key] = [structure[name] for name in ("x", "y", "width", "height")]
        elif event == "cross":
            self.add_event("cross", self.time_of(structure),
                           **{key: structure[key] for key in ("id", "line", "direction")})
        elif event == "leave":
            first = self.first.pop(key, None)
            if not lasts(structure["seconds"], self.least, self.frame_time):
                return
            entered, left = times_of(structure, "entered", "left")
            self.objects.append({"zone": key[1], "first_box": first,
                                 "entered": entered or 0.0, "left": left or 0.0,
                                 **{key: structure[key] for key in ("id", "seconds", "x", "y", "width", "height")},
                                 "path_length": structure["path-length"]})

    def profile(self):
        """The rows of the seconds."""
        rows = []
        for second, row in sorted(self.seconds.items()):
            light = [value / row["lit"] for value in row["light"]] if row["lit"] else [None] * 3
            rows.append({"second": second, "frames": row["frames"], "motion_frames": row["motion_frames"],
                         "changed_mean": row["changed"] / max(1, row["frames"]), "changed_max": row["changed_max"],
                         **dict(zip(("brightness", "dark", "bright"), light))})
        return rows

    def result(self, lost=()):
        """The findings, as analyse.py describes them. `lost`: the times that could not be read, as losses.Span."""
        for span in lost:
            self.add_event("lost", span.begin, span.end, frames=span.frames)
        for event in self.events:
            seen = {each["id"] for each in self.objects
                    if each["entered"] <= event["end"] and each["left"] >= event["begin"]}
            event["objects"] = len(seen)
        return {"frames": self.frames, "motion_frames": self.motion_frames, "duration": self.duration,
                "lost": sum(span.frames for span in lost),
                "profile": self.profile(), "events": sorted(self.events, key=lambda event: event["begin"]),
                "objects": sorted(self.objects, key=lambda visit: (visit["entered"], visit["id"]))}
