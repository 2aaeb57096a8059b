# SPDX-License-Identifier: LGPL-2.1-or-later
"""Records the motion of a camera, or visits of its zones, as clips from its own encoded stream, without encoding.

    source ! … ! parser ! decoder ! …         a probe on the decoder's sink pad copies the encoded frames
                        |
                        `-> ring of the last seconds -> Clip, a thread: parser ! muxer ! a file NAME.part, which
                                                        becomes NAME

A clip begins at the last key frame that is at least `before` seconds before the motion. It ends `after` seconds after
the last frame with motion, but not before cudadiff reports the end, which is `gap` later. Motion that begins again
before this end goes into the same clip. A clip longer than `longest` continues in another clip, at a key frame. No
frame between them is missing or duplicated. The same applies to visits of zones. Several may overlap, and their end is
reported up to `track-hold` later.

Unfinished clips can be played up to their last second, because MP4 is written in fragments. A file that a killed
service leaves (NAME.part) therefore becomes a clip when the service restarts."""

import collections
import contextlib
import datetime
import fcntl
import json
import logging
import os
import queue
import re
import threading
import time

import clips_of_events
import common
import pace
from common import Gst

log = logging.getLogger("motion-alarm")
LIST = "clips.json"
PART = ".part"
# For files that may remain unfinished.
SAFE = {"mp4mux": "mp4mux fragment-duration=1000 fragment-mode=first-moov-then-finalise"}
NAME = re.compile(r"(?P<camera>[\w-]+)_(?P<time>\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d[+-]\d{4})(-\d+)?\.(mp4|webm|mkv)")
DECODES = 3 * Gst.SECOND  # more than the time from the decoder's sink pad to cudadiff's message
RING = 64 * 2**20  # maximum bytes of frames in a ring; twice as many may wait for the disk
AGAIN = 10  # seconds after a failed clip until the next one may begin
LEAST = 2**15  # minimum number of bytes of an unfinished clip that has frames

# The data of a stream that clips_of_events.write() needs.
Facts = collections.namedtuple("Facts", "codec sounds rate", defaults=((), None))


def codec_of(caps) -> str:
    return common.fields_of(caps, "name")[0]


class Frame:
    """An encoded frame, with a copy of its bytes, because memory of the source may be scarce."""

    def __init__(self, buffer, caps, pts, wall):
        self.buffer, self.caps, self.pts, self.wall = buffer.copy_deep(), caps, pts, wall
        self.size, self.key = buffer.get_size(), not buffer.has_flags(Gst.BufferFlags.DELTA_UNIT)


class Ring:
    """The last frames, starting with a key frame: at least `span` ns, if they take no more than RING bytes."""

    def __init__(self, span):
        self.span, self.groups, self.size = span, collections.deque(), 0

    def put(self, frame):
        if frame.key:
            if self.groups and not self.groups[-1][0].caps.is_equal(frame.caps):
                self.clear()
            self.groups.append([])
        if not self.groups:  # nothing can be shown before the first key frame
            return
        self.groups[-1].append(frame)
        self.size += frame.size
        while len(self.groups) > 1 and (self.groups[1][0].pts <= frame.pts - self.span or self.size > RING):
            self.size -= sum(each.size for each in self.groups.popleft())
        if self.size > RING:  # there are no key frames
            self.clear()

    def clear(self):
        self.groups.clear()
        self.size = 0

    def since(self, pts) -> list[Frame]:
        """The frames starting with the last key frame at or before `pts`; without one, with the first key frame."""
        late = [index for index, group in enumerate(self.groups) if group[0].pts <= pts]
        return [frame for group in list(self.groups)[late[-1] if late else 0 :] for frame in group]


class Clip(threading.Thread):
    """Writes frames to a separate file, from the first frame until finish()."""

    def __init__(self, recorder, frames, motions):
        super().__init__(name=f"{recorder.name} clip", daemon=True)
        self.recorder, self.motions = recorder, motions
        self.caps, self.began, self.wall = frames[0].caps, frames[0].pts, frames[0].wall
        self.last = self.began
        self.waiting, self.bytes, self.bytes_lock = queue.SimpleQueue(), 0, threading.Lock()
        self.failed = False
        for frame in frames:
            self.put(frame)

    def put(self, frame) -> bool:
        """Returns False if too much data waits for the disk."""
        with self.bytes_lock:
            if self.bytes + frame.size > 2 * RING:
                return False
            self.bytes += frame.size
        self.last = max(self.last, frame.pts)
        self.waiting.put(frame)
        return True

    def finish(self):
        self.waiting.put(None)

    def samples(self):
        while (frame := self.waiting.get()) and not self.failed:
            with self.bytes_lock:
                self.bytes -= frame.size
            yield Gst.Sample.new(frame.buffer, frame.caps, None, None)

    def run(self):
        try:
            file = self.recorder.folder.new_file(self.wall, clips_of_events.FORMATS[codec_of(self.caps)][2])
        except OSError as error:
            return self.recorder.not_written(self, f"cannot write to {self.recorder.folder.path}: {error.strerror}")
        reason = ""
        with file:
            try:
                muxer = clips_of_events.FORMATS[codec_of(self.caps)][1]
                samples, facts = ((0, sample) for sample in self.samples()), Facts(codec_of(self.caps))
                written = clips_of_events.write(samples, facts, file.stream, SAFE.get(muxer, muxer))
                if not written:
                    reason = "a clip has no frames"
            except common.Failure as error:
                reason = str(error)
            except OSError as error:
                reason = error.strerror or str(error)
            except Exception as error:  # the failure of one clip must not end the others
                reason = f"{type(error).__name__}: {error}"
            self.failed = bool(reason)
            row = file.become({
                "begin": datetime.datetime.fromtimestamp(self.wall).astimezone().isoformat(timespec="milliseconds"),
                "seconds": round((self.last - self.began) / Gst.SECOND, 3),
                "complete": not reason,
                "motions": self.motions,
            })
        if reason:
            self.recorder.not_written(self, reason, row)
        else:
            self.recorder.written(row)


class Unfinished:
    """An open file NAME.part, locked while it is written. For a `with` block."""

    def __init__(self, folder, name):
        self.folder, self.name = folder, name
        self.stream = open(os.path.join(folder.path, name + PART), "xb")
        self.lock = os.dup(self.stream.fileno())
        with contextlib.suppress(OSError):  # some file systems have no locks
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.lock)
        with contextlib.suppress(OSError):
            self.stream.close()

    def become(self, row):
        """Gives the file its name, and a row in the list. Returns the row, or None if nothing in the file can be
        played."""
        part = os.path.join(self.folder.path, self.name + PART)
        with contextlib.suppress(OSError):
            self.stream.close()
        with contextlib.suppress(OSError):
            if not row["complete"] and os.path.getsize(part) < LEAST:
                os.unlink(part)
                return None
            os.rename(part, os.path.join(self.folder.path, self.name))
            return self.folder.add(
                {"file": self.name, **row, "bytes": os.path.getsize(os.path.join(self.folder.path, self.name))}
            )
        return None


class Folder:
    """The clips of a camera and their list, clips.json, the oldest first. If they exceed the limits, the oldest ones
    are removed."""

    def __init__(self, path, camera, size, days):
        """`size`: maximum bytes; `days`: how long a clip is kept. 0 means no limit."""
        self.path, self.camera, self.size, self.days = path, camera, size, days
        self.rows, self.lock, self.opened = [], threading.RLock(), False

    def check(self):
        """Raises a Failure if the folder cannot be made or written to."""
        place = os.path.abspath(self.path)
        while not os.path.lexists(place):
            place = os.path.dirname(place)
        reason = (
            "it is not a folder"
            if not os.path.isdir(place)
            else "" if os.access(place, os.W_OK | os.X_OK) else "permission denied"
        )
        if reason:
            raise common.Failure(f"folder in [recording]: cannot write to {place}: {reason}")

    def open(self):
        """Makes the folder, or reads it and completes the unfinished clips of a killed service. Raises OSError."""
        with self.lock:
            os.makedirs(self.path, exist_ok=True)
            for name in os.listdir(self.path):
                if name.endswith(PART) and self.ours(name.removesuffix(PART)):
                    self.recover(os.path.join(self.path, name))
            try:
                with open(os.path.join(self.path, LIST), encoding="utf-8") as stream:
                    listed = {row["file"]: row for row in json.load(stream)}
            except (OSError, ValueError, TypeError, KeyError):
                listed = {}
            names = sorted(filter(self.ours, os.listdir(self.path)), key=self.begin_of)
            self.rows = [listed.get(name) or self.unlisted(name) for name in names]
            self.opened = True
            self.tidy()
            self.write()

    def ours(self, name) -> bool:
        match = NAME.fullmatch(name)
        return bool(match) and match["camera"] == self.camera

    def begin_of(self, name):
        return datetime.datetime.strptime(NAME.fullmatch(name)["time"], "%Y-%m-%dT%H-%M-%S%z")

    def unlisted(self, name):
        size = os.path.getsize(os.path.join(self.path, name))
        return {
            "file": name,
            "begin": self.begin_of(name).isoformat(timespec="milliseconds"),
            "seconds": None,
            "complete": False,
            "motions": [],
            "bytes": size,
        }

    def recover(self, part):
        with contextlib.suppress(OSError), open(part, "rb") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)  # otherwise another service writes it
            if os.path.getsize(part) < LEAST:
                os.unlink(part)
            else:
                os.rename(part, part.removesuffix(PART))
                log.warning("%s: %s was not finished, and ends early", self.camera,
                            os.path.basename(part).removesuffix(PART))

    def new_file(self, wall, suffix):
        """An open file for a clip that begins at this clock time. Raises OSError."""
        when = datetime.datetime.fromtimestamp(wall).astimezone().strftime("%Y-%m-%dT%H-%M-%S%z")
        with self.lock:
            if not self.opened:
                self.open()
            self.tidy()
            os.makedirs(self.path, exist_ok=True)
            for number in range(1, 1000):
                name = f"{self.camera}_{when}{'' if number == 1 else f'-{number}'}.{suffix}"
                if not os.path.exists(os.path.join(self.path, name)):
                    with contextlib.suppress(FileExistsError):
                        return Unfinished(self, name)
        raise OSError(0, "too many clips begin in one second")

    def add(self, row):
        with self.lock:
            self.rows.append(row)
            self.rows.sort(key=lambda each: (self.begin_of(each["file"]), each["file"]))
            self.tidy()
            self.write()
        return row

    def tidy(self):
        """Removes clips that are too old, and the oldest ones if they take too many bytes. The newest one stays."""
        with self.lock:
            oldest = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(days=self.days)
            count = len(self.rows)
            while self.rows and self.days and self.begin_of(self.rows[0]["file"]) < oldest:
                self.remove_first()
            while len(self.rows) > 1 and self.size and sum(row["bytes"] for row in self.rows) > self.size:
                self.remove_first()
            if len(self.rows) < count:
                self.write()

    def remove_first(self):
        row = self.rows.pop(0)
        with contextlib.suppress(FileNotFoundError):
            try:
                os.unlink(os.path.join(self.path, row["file"]))
            except FileNotFoundError:
                pass
            except OSError as error:
                log.warning("%s: cannot remove %s: %s", self.camera, row["file"], error.strerror)

    def write(self):
        try:
            with common.whole(os.path.join(self.path, LIST)) as stream:
                stream.write(json.dumps(self.rows, indent=1).encode() + b"\n")
        except common.Failure as error:
            log.warning("%s: %s", self.camera, error)


class Recorder:
    """The recorder of a camera, across its successive pipelines. `told` is called, in any thread, with the row of each
    clip, or with None when `problem` changes."""

    def __init__(self, name, settings, told=lambda row: None):
        self.name, self.settings, self.told = name, settings, told
        self.folder = Folder(os.path.join(settings.folder, name), name, int(settings.size * 2**30), settings.days)
        self.ring = Ring(int(settings.before * Gst.SECOND) + DECODES)
        self.lock = threading.RLock()
        self.going, self.until = set(), 0  # the motion or the visits in progress; the timestamp at which a clip ends
        self.motions = []  # the motions of the current or the last clip; the last of them may continue
        self.clip, self.clips = None, []  # the clip that gets frames, and all unfinished clips
        self.problem = ""  # why nothing is recorded
        self.written_clips = self.failures = 0
        self.again = 0.0  # when the next clip may begin, on the monotonic clock
        self.unknown = ""  # the name of caps that cannot be recorded

    def open(self):
        """Looks for existing clips. A disk that is missing now may appear later."""
        try:
            self.folder.open()
        except OSError as error:
            self.report(f"cannot write to {self.folder.path}: {error.strerror}")

    # The stream -------------------------------------------------------------------------------------------------------

    def attach(self, pipeline):
        """Taps the decoder of a new pipeline."""
        pipeline.connect("deep-element-added", self.on_element)
        pace.on_decoders(pipeline, lambda pad: pad.add_probe(Gst.PadProbeType.BUFFER, self.on_encoded))

    def on_element(self, _, __, element):
        if element.find_property("config-interval") and "Parser" in element.get_factory().get_metadata("klass"):
            element.set_property("config-interval", -1)  # so that each key frame has what decoders need

    def on_encoded(self, pad, info):
        try:
            self.take(info.get_buffer(), pad.get_current_caps())
        except Exception as error:  # recording must not end the watch over a camera
            self.report(f"{type(error).__name__}: {error}")
        return Gst.PadProbeReturn.OK

    def take(self, buffer, caps):
        if not caps or buffer.pts == Gst.CLOCK_TIME_NONE:
            return
        name = codec_of(caps)
        if name not in clips_of_events.FORMATS:
            self.unknown = name
            return
        frame = Frame(buffer, caps, buffer.pts, time.time())
        with self.lock:
            if self.clip and not self.going and frame.pts >= self.until:
                self.end_clip()
            elif (
                self.clip
                and frame.key
                and (
                    frame.pts - self.clip.began >= self.settings.longest * Gst.SECOND
                    or not frame.caps.is_equal(self.clip.caps)
                )
            ):
                self.end_clip()
                self.begin_clip([frame])
            elif self.clip and not self.clip.put(frame):
                self.end_clip()
                self.fail("the disk is too slow")
            elif not self.clip and self.going and frame.key and time.monotonic() >= self.again:
                self.begin_clip([frame])
            self.ring.put(frame)

    def close(self):
        """The stream ended: finishes the clip with the frames so far."""
        with self.lock:
            self.end_clip()
            self.going, self.motions, self.unknown = set(), [], ""
            self.ring.clear()

    # Motion and visits ------------------------------------------------------------------------------------------------

    def note(self, event, at):
        """Motion begins or ends (`event`): lists it with the clip. `at` is the clock time as text."""
        with self.lock:
            if event == "begin":
                self.motions = self.motions if self.clip else []
                self.motions.append({"begin": at, "end": None})
            elif self.motions:
                self.motions[-1]["end"] = at

    def begin(self, what, pts):
        """The motion or the visit `what`, which is recorded, begins in the frame with this timestamp."""
        with self.lock:
            first = not self.going
            self.going.add(what)
            if not first:
                return
            self.until = 0
            if self.clip:
                return
            self.motions = [each for each in self.motions if not each["end"]]
            frames = self.ring.since(pts - int(self.settings.before * Gst.SECOND))
            if frames:
                self.begin_clip(frames)
        if not frames:
            self.report(f"{self.unknown} cannot be recorded: let the camera send H.264" if self.unknown
                        else "its video is not encoded, or has no key frame yet")

    def end(self, what, last):
        """`what` ended. `last` is the timestamp of its last frame."""
        with self.lock:
            self.going.discard(what)
            self.until = max(self.until, last + int(self.settings.after * Gst.SECOND))

    # Clips ------------------------------------------------------------------------------------------------------------

    def begin_clip(self, frames):
        self.motions = self.motions[-1:]
        self.clip = Clip(self, frames, self.motions)
        self.clips = [each for each in self.clips if each.is_alive()] + [self.clip]
        self.clip.start()

    def end_clip(self):
        if self.clip:
            self.clip.finish()
            self.clip, self.motions = None, [dict(each) for each in self.motions]  # the clip keeps the old list

    def written(self, row):
        with self.lock:
            self.written_clips += 1
            self.problem = ""
        if row:
            self.told(row)

    def not_written(self, clip, reason, row=None):
        with self.lock:
            if self.clip is clip:
                self.end_clip()
            self.fail(reason)
        if row:
            self.told(row)

    def fail(self, reason):
        self.failures += 1
        self.again = time.monotonic() + AGAIN
        self.report(reason)

    def report(self, reason):
        reason = f"recording: {reason.rstrip('.')}"
        if reason != self.problem:
            self.problem = reason
            log.error("%s: %s", self.name, reason)
            self.told(None)

    def wait(self, seconds):
        """Waits until the clips are finished, but no longer than the given time."""
        end = time.monotonic() + seconds
        for clip in list(self.clips):
            clip.join(max(0, end - time.monotonic()))
