# SPDX-License-Identifier: LGPL-2.1-or-later
"""Follows the objects of a cudadiff: the places of each object over time, and its best view."""
import collections
import tempfile
import threading
from dataclasses import dataclass

import numpy

import common
from common import Gst
from cudavision import frames

import gi
gi.require_version("GstApp", "1.0")
from gi.repository import GstApp  # noqa: E402, F401: gives appsrc and appsink their signals

import media
import part
import recording

BETTER = 1.1  # a picture replaces another one if its score is this many times as high
MARGIN = 0.3  # around an object in its picture, relative to its box
LARGE = 480  # largest width and height of the picture of an object
WIDE = 960  # for the picture of a whole frame
GRID = 96  # maximum number of cells across the wider side of a mask


def time_of(pad, buffer):
    """The stream time of a buffer at a pad in seconds, or None."""
    time = part.stream_time_of(pad, buffer)
    return None if time is None or time < 0 else time / Gst.SECOND


class Pictures:
    """JPEGs by number, in an unnamed file in `folder`."""

    def __init__(self, folder):
        self.file, self.places, self.lock = tempfile.TemporaryFile(dir=folder), {}, threading.Lock()

    def put(self, number, jpeg):
        with self.lock:
            self.places[number] = self.file.seek(0, 2), len(jpeg)
            self.file.write(jpeg)

    def get(self, number):
        """The JPEG, or b"" if there is none."""
        if number not in self.places:
            return b""
        offset, length = self.places[number]
        with self.lock:
            self.file.seek(offset)
            return self.file.read(length)

    @property
    def size(self):
        return sum(length for _, length in self.places.values())


@dataclass
class Best:
    """The best view of an object so far: a copy of its part of the frame."""
    score: float
    frame: tuple  # format, width, height, planes
    seen: int  # timestamp at which the object was last seen


def cut(buffer, caps, box):
    """A copy of a box in a frame, with even edges: format, width, height, planes. It must be in the frame."""
    with frames.Frame(buffer, caps) as frame:
        x, y, w, h = box
        grouped = frame.format == "v210"  # six pixels are four words
        unit = 12 if grouped else 4
        left, top = x - x % unit, y - y % 4
        right, bottom = min(frame.width, x + w + -(x + w) % unit), min(frame.height, y + h + -(y + h) % 4)
        planes = []
        for plane in map(numpy.asarray, frame.planes):
            across, down = -(-frame.width // plane.shape[1]), -(-frame.height // plane.shape[0])
            columns = ((left // 6 * 4, -(-right // 6) * 4) if grouped else (left // across, -(-right // across)))
            planes.append(plane[top // down:-(-bottom // down), slice(*columns)].copy())
        return frame.format, right - left, bottom - top, planes


def middles(length, count):
    """The pixels in the middle of `count` equal parts of `length` pixels."""
    return (2 * numpy.arange(count) + 1) * length // (2 * count)


def mask_of(source, caps=None):
    """The mask in a frame, in at most GRID × GRID cells: whether the pixel in the middle of each cell moves. Returns
    None if the first plane does not have one byte per pixel. `source`, `caps`: as for frames.Frame."""
    with frames.Frame(source, caps) as frame:
        plane, size = numpy.asarray(frame.planes[0]), (frame.height, frame.width)
        if plane.dtype != numpy.uint8 or plane.size != frame.height * frame.width:
            return None
        rows, columns = (middles(length, max(1, round(length * min(1, GRID / max(size))))) for length in size)
        return plane.reshape(size)[rows][:, columns] > 127


class Tracker:
    """Watches a cudadiff with output=mask. Records the places of its objects and the masks. `pictures` are the pictures
    of the objects, untinted. `poster()` is a JPEG of the frame in which objects cover most. `size` is the width and
    height of frames.

    On a GPU, frames are in its memory before and after the cudadiff. Therefore `before` and `after` are more distant
    pads, where frames are in system memory. Timestamps identify the frames. All three pads belong to one thread."""

    def __init__(self, before, motion, after, recorder, folder):
        self.recorder, self.pictures, self.size = recorder, Pictures(folder), (0, 0)
        self.best, self.poster_score, self.poster_frame = {}, -1, None
        self.inputs = collections.deque(maxlen=10)  # the input frames; more than the elements between the pads can hold
        self.segment, self.sampled, self.masked = None, None, None
        self.close, self.wide, self.small = self.cameras = (media.Camera(LARGE), media.Camera(WIDE),
                                                            media.mask_camera(GRID))
        common.on_frames(before, self.on_input)
        common.on_frames(motion.get_static_pad("src"), self.on_objects)
        common.on_frames(after, self.on_mask)

    def __enter__(self):
        for camera in self.cameras:
            camera.__enter__()
        return self

    def __exit__(self, *error):
        self.inputs.clear()
        self.poster_frame = None
        for camera in self.cameras:
            camera.__exit__(*error)

    def on_input(self, _, buffer, caps):
        self.inputs.append((buffer, caps))

    def on_objects(self, pad, buffer, caps):
        time = time_of(pad, buffer)
        # Slightly less than a step, because frames may be slightly early.
        if time is None or (self.sampled is not None and 0 <= time - self.sampled < recording.STEP * 0.9):
            return
        self.size, self.sampled = common.size_of_caps(caps), time
        # The place of a held object is only a prediction. Without tracking, regions have no ids.
        seen = {each.id: each.box for each in frames.objects(buffer) if each.confirmed and not each.held}
        for number, box in seen.items():
            self.recorder.place(time, number, box)
            self.look(number, box, buffer.pts)
        self.develop(buffer.pts)
        score = sum(w * h for _, _, w, h in seen.values())
        if score > self.poster_score * BETTER and (frame := self.input_at(buffer.pts)):
            self.poster_score, self.poster_frame = score, frame

    def on_mask(self, pad, buffer, caps):
        time = time_of(pad, buffer)
        if time is not None and (self.masked is None or not 0 <= time - self.masked < recording.STEP * 0.9):
            self.masked = time
            moving = self.mask(buffer, caps)
            if moving is not None:
                self.recorder.mask(time, moving)

    def mask(self, buffer, caps):
        """Like mask_of(); None if it cannot be made."""
        moving = mask_of(buffer, caps)
        if moving is None and (sample := self.small.sample(buffer, caps)):
            moving = mask_of(sample)
        return moving

    def input_at(self, pts):
        return next((one for one in self.inputs if one[0].pts == pts), None)

    def look(self, number, box, pts):
        """Keeps the part of the frame in which the object is whole and largest. At the edge, it may be visible only in
        part."""
        (x, y, w, h), (width, height) = box, self.size
        score = w * h * (1 if 0 < x and 0 < y and x + w < width and y + h < height else 0.25)
        best = self.best.get(number)
        if best:
            best.seen = pts
        if w < 1 or h < 1 or (best and score <= best.score * BETTER) or not (frame := self.input_at(pts)):
            return
        across, down = round(w * MARGIN), round(h * MARGIN)
        left, top = max(0, x - across), max(0, y - down)
        right, bottom = min(width, x + w + across), min(height, y + h + down)
        self.best[number] = Best(score, cut(*frame, (left, top, right - left, bottom - top)), pts)

    def develop(self, pts=None):
        """Makes the JPEGs of objects that were not seen for a while; without a time, of all objects."""
        for number in [number for number, best in self.best.items()
                       if pts is None or not 0 <= pts - best.seen < 5 * Gst.SECOND]:
            self.pictures.put(number, self.close.shoot_planes(*self.best.pop(number).frame))

    def poster(self):
        """A JPEG, or b"" without a frame."""
        return self.wide.shoot(*self.poster_frame) if self.poster_frame else b""
