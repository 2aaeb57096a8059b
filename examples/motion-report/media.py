# SPDX-License-Identifier: LGPL-2.1-or-later
"""Pictures of the report: the video's encoder, the place of the histogram, and JPEGs of parts of frames."""
import common
from common import Gst

LARGEST = 1280  # greatest width and height of the video, in pixels

# VP9 in WebM: every current browser plays it, and Debian's gstreamer1.0-plugins-good has the encoder. deadline=1 with cpu-used=8 is
# faster than vp8enc and openh264enc at the same size of the file. A key frame every 60 frames keeps seeking quick.
ENCODER = (f"videoconvert ! videoscale ! video/x-raw,width=[1,{LARGEST}],height=[1,{LARGEST}],pixel-aspect-ratio=1/1 ! "
           "queue ! vp9enc deadline=1 cpu-used=8 row-mt=true threads=8 end-usage=cq cq-level=32 target-bitrate=4000000 "
           "keyframe-max-dist=60")


def fit_histogram(element):
    """Makes the overlay of a cudahistogram a quarter as wide and an eighth as high as the picture, in its upper left corner."""
    def on_event(_, info):
        event = info.get_event()
        if event.type == Gst.EventType.CAPS:
            width, height = common.size_of_caps(event.parse_caps())
            edge = min(width, height) // 40
            element.set_property("overlay-position", f"{edge},{edge},{max(1, width // 4)},{max(1, height // 8)}")
        return Gst.PadProbeReturn.OK

    element.get_static_pad("sink").add_probe(Gst.PadProbeType.EVENT_DOWNSTREAM, on_event)


class Camera:
    """Makes JPEGs of parts of frames. Use it in a `with` block, and from one thread."""

    def __init__(self, largest):
        """`largest` is the greatest width and height of a JPEG, in pixels."""
        self.pipeline = common.parse(
            f"""appsrc name=frames format=time ! videoconvert ! video/x-raw,format=I420 ! videocrop name=crop ! videoscale !
            video/x-raw,width=[1,{largest}],height=[1,{largest}],pixel-aspect-ratio=1/1 ! jpegenc quality=80 !
            appsink name=sink sync=false""")
        self.broken = False
        self.frames, self.crop, self.sink = (self.pipeline.get_by_name(name) for name in ("frames", "crop", "sink"))

    def __enter__(self):
        self.pipeline.set_state(Gst.State.PLAYING)
        return self

    def __exit__(self, *_):
        self.pipeline.set_state(Gst.State.NULL)

    def shoot(self, buffer, caps, box=None):
        """Returns a JPEG of a frame in system memory, or of a box in it. Returns b"" if it cannot be made, and from then on."""
        if self.broken:
            return b""
        width, height = common.size_of_caps(caps)
        x, y, w, h = box or (0, 0, width, height)
        for name, value in (("left", x), ("top", y), ("right", width - x - w), ("bottom", height - y - h)):
            self.crop.set_property(name, value)
        self.frames.emit("push-sample", Gst.Sample.new(buffer, caps, None, None))
        sample = self.sink.emit("try-pull-sample", 10 * Gst.SECOND)
        self.broken = not sample
        return sample.get_buffer().extract_dup(0, sample.get_buffer().get_size()) if sample else b""
