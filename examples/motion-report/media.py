# SPDX-License-Identifier: LGPL-2.1-or-later
"""Encoders of the report: for the video of a clip that browsers do not play, and for JPEGs of parts of frames."""
import common
from common import Gst
from cudavision import frames

LARGEST = 960  # largest width and height of a video that is encoded here, in pixels

SCALE = (f"videoconvertscale ! video/x-raw,width=(int)[2,{LARGEST},2],height=(int)[2,{LARGEST},2],"
         "pixel-aspect-ratio=1/1")

# (element, its settings, the following elements, suffix of the file): the first installed element encodes. The GPU
# comes first. The others are in the order of their processor time for vtest.avi: openh264enc takes a quarter of the
# time of vp9enc, and vp8enc takes seven times the time of vp9enc. A key frame every 60 frames keeps seeking fast.
ENCODERS = (
    ("nvh264enc", "gop-size=60", "h264parse ! mp4mux name=file", "mp4"),
    ("x264enc", "speed-preset=ultrafast key-int-max=60 pass=qual quantizer=23", "h264parse ! mp4mux name=file", "mp4"),
    ("openh264enc", "complexity=low usage-type=camera rate-control=quality bitrate=1500000 qp-min=22 qp-max=26 "
     "deblocking=off gop-size=60 multi-thread=2", "h264parse ! mp4mux name=file", "mp4"),
    ("vp9enc", "deadline=1 cpu-used=8 row-mt=true threads=4 end-usage=cq cq-level=32 target-bitrate=4000000 "
     "keyframe-max-dist=60", "webmmux name=file", "webm"),
)


def encoder():
    """The description of an encoder and its muxer, and the suffix of the resulting file."""
    for name, settings, after, suffix in ENCODERS:
        if Gst.ElementFactory.find(name):
            return f"{SCALE} ! queue ! {name} name=encoder {settings} ! {after}", suffix
    raise common.Failure("there is no encoder for the video; install gstreamer1.0-plugins-good")


def clip_encoder():
    """The encoder that encoder() uses, without a change of size: its description, the parser after it, its muxer and
    the suffix of a file."""
    for name, settings, after, suffix in ENCODERS:
        if Gst.ElementFactory.find(name):
            parser = after.split(" ! ")[0] if suffix == "mp4" else "identity"
            return f"queue ! {name} name=encoder {settings}", parser, "mp4mux" if suffix == "mp4" else "webmmux", suffix
    raise common.Failure("there is no encoder for the clips; install gstreamer1.0-plugins-good")


def begin_at_zero(queue):
    """Makes the video after a queue begin at 0, whenever its first frame arrives."""
    def on_buffer(pad, info):
        event = pad.get_sticky_event(Gst.EventType.SEGMENT, 0)  # None if the pad is being stopped
        begin = (event.parse_segment().to_running_time(Gst.Format.TIME, info.get_buffer().pts) if event
                 else Gst.CLOCK_TIME_NONE)
        if begin != Gst.CLOCK_TIME_NONE:
            queue.get_static_pad("src").set_offset(-begin)
        return Gst.PadProbeReturn.REMOVE

    queue.get_static_pad("sink").add_probe(Gst.PadProbeType.BUFFER, on_buffer)


def end_quietly(element):
    """Sends EOS around an openh264enc, which writes a line to stderr when it is asked for frames at the end. The
    encoder holds no frames back."""
    if element.get_factory().get_name() != "openh264enc":
        return

    def on_event(_, info):
        if info.get_event().type != Gst.EventType.EOS:
            return Gst.PadProbeReturn.OK
        element.get_static_pad("src").push_event(Gst.Event.new_eos())
        return Gst.PadProbeReturn.DROP

    element.get_static_pad("sink").add_probe(Gst.PadProbeType.EVENT_DOWNSTREAM, on_event)


class Camera:
    """Makes small pictures of frames in a separate pipeline, so that their size does not limit the size of the source.
    Use it in a `with` block, and in one thread at a time."""

    def __init__(self, largest, how="", made="video/x-raw,format=I420", after="jpegenc quality=80 !"):
        """`largest` is the maximum width and height of a picture in pixels. By default the picture is a JPEG."""
        self.pipeline = common.parse(
            f"""appsrc name=frames format=time ! videoconvertscale {how} !
            {made},width=[1,{largest}],height=[1,{largest}],pixel-aspect-ratio=1/1 ! {after}
            appsink name=sink sync=false""")
        self.broken = False
        self.frames, self.sink = (self.pipeline.get_by_name(name) for name in ("frames", "sink"))

    def __enter__(self):
        self.pipeline.set_state(Gst.State.PLAYING)
        return self

    def __exit__(self, *_):
        self.pipeline.set_state(Gst.State.NULL)

    def sample(self, buffer, caps):
        """Returns the picture of a frame in system memory as a sample. After a failure, always returns None."""
        if self.broken:
            return None
        self.frames.emit("push-sample", Gst.Sample.new(buffer, caps, None, None))
        sample = self.sink.emit("try-pull-sample", 10 * Gst.SECOND)
        self.broken = not sample
        return sample

    def shoot(self, buffer, caps):
        """The bytes of the picture of a frame in system memory; b"" if it cannot be made."""
        sample = self.sample(buffer, caps)
        return sample.get_buffer().extract_dup(0, sample.get_buffer().get_size()) if sample else b""

    def shoot_planes(self, name, width, height, planes):
        """Returns a JPEG of arrays, one for each plane of a frame in the format `name`."""
        maker = frames.BufferMaker(name, width, height, device="cpu", framerate="0/1")
        return self.shoot(maker(*planes), Gst.Caps.from_string(maker.caps))


def mask_camera(largest):
    """A camera for masks: its pictures are GRAY8, and contain one pixel of many."""
    return Camera(largest, "method=nearest-neighbour", "video/x-raw,format=GRAY8", "")
