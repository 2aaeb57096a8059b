# SPDX-License-Identifier: LGPL-2.1-or-later
"""A recorder for the tests of examples/: writes files of a scene through which a person walks now and then."""
import os

import numpy

import programs
import common
from common import Gst

WIDTH, HEIGHT = 160, 120
BODY = 24, 40  # width and height of the person, in pixels
KINDS = {"h264.mp4": "openh264enc name=encoder gop-size=30 bitrate=1000000 ! h264parse ! mp4mux",
         "h264.mkv": "openh264enc name=encoder gop-size=30 bitrate=1000000 ! h264parse ! matroskamux",
         "jpeg.avi": "jpegenc quality=90 ! avimux", "jpeg.mkv": "jpegenc quality=90 ! matroskamux",
         "mpeg4.avi": "avenc_mpeg4 bitrate=1000000 gop-size=30 ! avimux"}
GROUND = numpy.tile(numpy.linspace(70, 150, WIDTH).astype(numpy.uint8), (HEIGHT, 1))


def missing(*kinds):
    """The elements of these kinds that are not installed."""
    names = {part.split()[0] for kind in kinds for part in KINDS[kind].split(" ! ")}
    return sorted(name for name in names if not programs.has(name))


def picture(time, visits):
    """The luma at a time in seconds: a visitor crosses the picture once from left to right. `visits` are pairs of the
    times of the first frame and of the end."""
    luma = GROUND.copy()
    for begin, end in visits:
        if begin <= time < end:
            x, y = round((time - begin) / (end - begin) * (WIDTH - BODY[0])), (HEIGHT - BODY[1]) // 2
            luma[y:y + BODY[1], x:x + BODY[0]] = 235
    return luma


def write(path, kind, begin, frames, visits, rate=1, size=(WIDTH, HEIGHT)):
    """Writes a file with this number of frames. It begins at the time `begin` of the scene, and stores this as its
    creation time."""
    encoder = KINDS[kind]
    pipeline = common.parse(
        f"appsrc name=frames format=time caps=video/x-raw,format=I420,width={WIDTH},height={HEIGHT},framerate={rate}/1 "
        f"! videoconvertscale ! video/x-raw,width={size[0]},height={size[1]} ! {encoder} ! filesink name=out",
        out={"location": str(path)})
    source, chroma = pipeline.get_by_name("frames"), bytes([128]) * (WIDTH * HEIGHT // 2)
    if encoder.startswith("openh264enc"):  # openh264enc logs an error when it is asked for frames at the end
        pipeline.get_by_name("encoder").get_static_pad("sink").add_probe(Gst.PadProbeType.EVENT_DOWNSTREAM, around)
    pipeline.set_state(Gst.State.PLAYING)
    for number in range(frames):
        buffer = Gst.Buffer.new_wrapped(picture(begin + number / rate, visits).tobytes() + chroma)
        buffer.pts, buffer.duration = number * Gst.SECOND // rate, Gst.SECOND // rate
        source.emit("push-buffer", buffer)
    source.emit("end-of-stream")
    message = pipeline.get_bus().timed_pop_filtered(Gst.CLOCK_TIME_NONE, Gst.MessageType.EOS | Gst.MessageType.ERROR)
    pipeline.set_state(Gst.State.NULL)
    common.check(message)
    return path


def around(pad, info):
    if info.get_event().type != Gst.EventType.EOS:
        return Gst.PadProbeReturn.OK
    pad.get_parent_element().get_static_pad("src").push_event(Gst.Event.new_eos())
    return Gst.PadProbeReturn.DROP


def cut(path, share=0.6):
    """Keeps only this share of a file, as after a power cut or on a full disk."""
    os.truncate(path, int(os.path.getsize(path) * share))
