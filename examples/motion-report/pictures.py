# SPDX-License-Identifier: LGPL-2.1-or-later
"""Follows the objects of a cudadiff: the places of each object over time, and its best view."""
import collections
import functools
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
import recording

BETTER = 1.1  # a picture replaces another one if its score is this many times as high
MARGIN = 0.3  # margin around an object in its picture, relative to its box
LARGE = 480  # largest width and height of the picture of an object
WIDE = 960  # largest width and height of the picture of a whole frame
HEAT = 255, 96, 0  # the colour of the heat map, as on the page
GRID = 96  # maximum number of cells across the wider side of a mask
# Each lookup of a name in Gst costs as much as a call.
NONE, OK, SECOND, TIME = Gst.CLOCK_TIME_NONE, Gst.PadProbeReturn.OK, Gst.SECOND, Gst.Format.TIME


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
class Sampled:
    """An input frame."""
    pts: int
    time: float  # stream time in seconds
    buffer: object
    caps: object
    size: tuple


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


@functools.lru_cache
def cells(height, width):
    """The rows and the columns in the middle of the cells of a mask."""
    return tuple((2 * numpy.arange(count) + 1) * length // (2 * count) for length, count in (
        (length, max(1, round(length * min(1, GRID / max(height, width))))) for length in (height, width)))


def mask_of(source, caps=None):
    """The mask in a frame, in at most GRID × GRID cells: whether the pixel in the middle of each cell moves. Returns
    None if the first plane does not have one byte per pixel. `source`, `caps`: as for frames.Frame."""
    with frames.Frame(source, caps) as frame:
        plane = numpy.asarray(frame.planes[0])
        if plane.dtype != numpy.uint8 or plane.size != frame.height * frame.width:
            return None
        rows, columns = cells(frame.height, frame.width)
        return plane.reshape(frame.height, frame.width).take(rows, 0).take(columns, 1) > 127


class Tracker:
    """Watches a cudadiff with output=mask. Records the places of its objects and the masks. `pictures` are the pictures
    of the objects, untinted. `poster()` is a JPEG of the frame in which objects cover the largest area. `size` is the
    width and height of frames.

    On a GPU, frames are in its memory before and after the cudadiff. Therefore `before` and `after` are more distant
    pads, where frames are in system memory. Timestamps identify the frames. The pads may belong to two threads."""

    def __init__(self, before, after, recorder, folder):
        self.recorder, self.pictures, self.size = recorder, Pictures(folder), (0, 0)
        self.best, self.poster_score, self.poster_frame = {}, -1, None
        self.inputs = collections.deque()  # the sampled frames between the pads; a kept frame costs the decoder memory
        self.caps = self.segment = self.sampled = self.mask_caps = None
        self.close, self.wide, self.small = self.cameras = (media.Camera(LARGE), media.Camera(WIDE),
                                                            media.mask_camera(GRID))
        before.add_probe(Gst.PadProbeType.EVENT_DOWNSTREAM, self.on_event)
        before.add_probe(Gst.PadProbeType.BUFFER, self.on_input)
        after.add_probe(Gst.PadProbeType.EVENT_DOWNSTREAM, self.on_mask_event)
        after.add_probe(Gst.PadProbeType.BUFFER, self.on_output)

    def __enter__(self):
        for camera in self.cameras:
            camera.__enter__()
        return self

    def __exit__(self, *error):
        self.inputs.clear()
        self.poster_frame = None
        for camera in self.cameras:
            camera.__exit__(*error)

    def on_event(self, _, info):
        """Keeps the caps and the segment. Asking the pad for them at each frame would take longer."""
        event = info.get_event()
        if event.type == Gst.EventType.CAPS:
            self.caps = event.parse_caps()
            self.size = common.size_of_caps(self.caps)
        elif event.type == Gst.EventType.SEGMENT:
            self.segment = event.parse_segment()
        return OK

    def on_mask_event(self, _, info):
        event = info.get_event()
        if event.type == Gst.EventType.CAPS:
            self.mask_caps = event.parse_caps()
        return OK

    def on_input(self, _, info):
        """Keeps the frame if it is sampled."""
        buffer = info.get_buffer()
        pts = buffer.pts
        if pts == NONE or not self.caps or not self.segment:
            return OK
        sign, time = self.segment.to_stream_time_full(TIME, pts)
        time /= SECOND
        # Slightly less than a step, because frames may be slightly early.
        if sign > 0 and (self.sampled is None or not 0 <= time - self.sampled < recording.STEP * 0.9):
            self.sampled = time
            self.inputs.append(Sampled(pts, time, buffer, self.caps, self.size))
        return OK

    def on_output(self, _, info):
        if self.inputs:
            buffer = info.get_buffer()
            pts = buffer.pts
            if any(one.pts == pts for one in list(self.inputs)):
                while (frame := self.inputs.popleft()).pts != pts:  # cudadiff dropped these frames
                    pass
                self.sample(buffer, frame)
        return OK

    def sample(self, buffer, frame):
        """Records the objects and the mask of a frame."""
        # The place of a held object is only a prediction. Without tracking, regions have no ids.
        seen = {each.id: each.box for each in frames.objects(buffer) if each.confirmed and not each.held}
        for number, box in seen.items():
            self.recorder.place(frame.time, number, box)
            self.look(number, box, frame)
        self.develop(frame.pts)
        score = sum(w * h for _, _, w, h in seen.values())
        if score > self.poster_score * BETTER:
            self.poster_score, self.poster_frame = score, (frame.buffer, frame.caps)
        moving = self.mask(buffer, self.mask_caps)
        if moving is not None:
            self.recorder.mask(frame.time, moving)

    def mask(self, buffer, caps):
        """Like mask_of(); None if it cannot be made."""
        moving = mask_of(buffer, caps)
        if moving is None and (sample := self.small.sample(buffer, caps)):
            moving = mask_of(sample)
        return moving

    def look(self, number, box, frame):
        """Keeps the part of the frame in which the object is whole and largest. At the edge, it may be visible only in
        part."""
        (x, y, w, h), (width, height) = box, frame.size
        score = w * h * (1 if 0 < x and 0 < y and x + w < width and y + h < height else 0.25)
        best = self.best.get(number)
        if best:
            best.seen = frame.pts
        if w < 1 or h < 1 or (best and score <= best.score * BETTER):
            return
        across, down = round(w * MARGIN), round(h * MARGIN)
        left, top = max(0, x - across), max(0, y - down)
        right, bottom = min(width, x + w + across), min(height, y + h + down)
        self.best[number] = Best(score, cut(frame.buffer, frame.caps, (left, top, right - left, bottom - top)),
                                 frame.pts)

    def develop(self, pts=None):
        """Makes the JPEGs of objects that were not seen for a while; without a time, of all objects."""
        for number in [number for number, best in self.best.items()
                       if pts is None or not 0 <= pts - best.seen < 5 * SECOND]:
            self.pictures.put(number, self.close.shoot_planes(*self.best.pop(number).frame))

    def poster(self):
        """A JPEG, or b"" without a frame."""
        return self.wide.shoot(*self.poster_frame) if self.poster_frame else b""

    def heat_map(self):
        """The poster with an orange tint where cells moved, stronger where they moved more often; b"" without one."""
        heat = self.recorder.heat
        if not self.poster_frame or heat is None or not heat.any():
            return b""
        with media.Camera(WIDE, made="video/x-raw,format=RGB", after="") as camera:
            sample = camera.sample(*self.poster_frame)
        if not sample:
            return b""
        with frames.Frame(sample) as frame:
            picture = numpy.array(frame.planes[0])
        height, width, _ = picture.shape
        tint = numpy.where(heat, 40 / 255 + 0.7 * numpy.sqrt(heat / heat.max()), 0)
        rows, columns = (numpy.arange(size) * cells // size for size, cells in zip((height, width), heat.shape))
        tint = tint.take(rows, 0).take(columns, 1)[..., None]
        tinted = (picture * (1 - tint) + tint * numpy.array(HEAT)).round().astype(numpy.uint8)
        return self.wide.shoot_planes("RGB", width, height, [tinted])
