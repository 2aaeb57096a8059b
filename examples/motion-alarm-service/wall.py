# SPDX-License-Identifier: LGPL-2.1-or-later
"""The wall: cudablend composes one picture of all cameras.

    videotestsrc (one black frame) ! textoverlay … ! imagefreeze ! mix.sink_0     "no signal" in every place,
                                                                                  below the cameras
    appsrc (a camera) ! mix.sink_1 … mix.sink_N      ! cudablend name=mix ! video/x-raw,framerate=… ! the sink of the
                                                                                                     configuration

The wall continues when a camera is lost:
- The wall is a separate pipeline. A camera with a failed pipeline gives it no frames; an appsrc never sends EOS.
- An appsrc is a live source, so cudablend is also live: it composes a picture at each tick of its clock, and waits for
  pads until `latency` (a frame's duration) has passed. `force-live` and `ignore-inactive-pads` would change nothing.
- A pad without a new frame repeats its last one for `max-last-buffer-repeat` (`hold` in the configuration). Then
  cudablend omits the pad, and "no signal" below it shows. A still picture must not look like a live one for longer.

Frames get the time at which they arrive here, because cameras have their own clocks. An appsrc keeps two frames and
drops older ones, so cameras never wait for the wall."""

import math
import threading
import time

import common
import inputs
from common import GLib, Gst
from supervised import Supervised


PAGE = ("queue leaky=downstream max-size-buffers=1 ! valve name=valve drop=true drop-mode=forward-sticky-events ! "
        "jpegenc ! appsink name=page async=false sync=false max-buffers=2 drop=true emit-signals=true")


class Wall(Supervised):
    def __init__(self, settings, cameras, reconnect, page=False):
        """`cameras`: settings of the cameras to show. `page`: whether picture_after() returns pictures."""
        super().__init__("wall", reconnect)
        self.settings, self.shown = settings, cameras
        self.columns = settings.columns or math.ceil(math.sqrt(len(cameras)))
        self.rows = math.ceil(len(cameras) / self.columns)
        self.mix, self.sources = None, {}
        self.times = {}  # when the last frame of each camera was shown
        self.page, self.seen_by, self.valve = page, False, None
        self.picture, self.new_picture = (0, b""), threading.Condition()  # the number of the picture, and its JPEG file

    def place(self, index: int):
        """x, y, width and height of a camera's place."""
        column, row = index % self.columns, index // self.columns
        left, right = (each * self.settings.width // self.columns for each in (column, column + 1))
        top, bottom = (each * self.settings.height // self.rows for each in (row, row + 1))
        return left, top, right - left, bottom - top

    def build(self):
        if not Gst.ElementFactory.find("textoverlay"):
            raise common.Failure("[wall] needs the element textoverlay: install gstreamer1.0-x")
        settings, values = self.settings, {}
        caps = f"video/x-raw,width={settings.width},height={settings.height},framerate={settings.fps}/1"
        texts = []
        for index, camera in enumerate(self.shown):
            left, top, width, height = self.place(index)
            values[f"text{index}"] = {
                "text": f"{GLib.markup_escape_text(camera.title)}\nno signal",
                "xpos": (left + width / 2) / settings.width,
                "ypos": (top + height / 2) / settings.height,
                "font-desc": f"Sans {28 / self.columns:.1f}",
            }
            texts.append(f"textoverlay name=text{index} halignment=position valignment=position line-alignment=center")
        pads = " ".join(
            f"appsrc name=camera{index} is-live=true format=time max-buffers=2 leaky-type=downstream ! "
            f"mix.sink_{index + 1}"
            for index in range(len(self.shown))
        )
        branches = [f"queue ! {settings.sink}"] * bool(settings.sink) + [PAGE] * self.page
        sink = f"tee name=tee ! {' tee. ! '.join(branches)}" if self.page else settings.sink
        pipeline = common.parse(
            "cudablend name=mix background=black "
            f"! {caps},format=I420,pixel-aspect-ratio=1/1 ! {sink} "
            f"videotestsrc num-buffers=1 pattern=black ! {caps} ! {' ! '.join(texts)} ! imagefreeze "
            f"! mix.sink_0 {pads}",
            mix={"latency": Gst.SECOND // settings.fps},
            **values,
        )
        self.mix = pipeline.get_by_name("mix")
        if self.page:
            self.valve = pipeline.get_by_name("valve")
            self.valve.set_property("drop", not self.seen_by)
            pipeline.get_by_name("page").connect("new-sample", self.on_picture)
        for index in range(len(self.shown)):
            left, top, width, height = self.place(index)
            pad = self.mix.get_static_pad(f"sink_{index + 1}")
            for name, value in {
                "xpos": left,
                "ypos": top,
                "width": width,
                "height": height,
                "sizing-policy": "keep-aspect-ratio",
                "max-last-buffer-repeat": int((settings.hold + inputs.interval_of(self.shown[index].uri)) * Gst.SECOND),
            }.items():
                Gst.util_set_object_arg(pad, name, str(value))
        self.mix.get_static_pad("src").add_probe(Gst.PadProbeType.BUFFER, self.on_frame)
        self.sources = {camera.key: pipeline.get_by_name(f"camera{index}") for index, camera in enumerate(self.shown)}
        return pipeline

    def on_frame(self, *_):
        self.seen()
        return Gst.PadProbeReturn.OK

    def watched(self, by_somebody: bool):
        self.seen_by = by_somebody
        if self.valve:
            self.valve.set_property("drop", not by_somebody)

    def on_picture(self, sink):
        buffer = sink.emit("pull-sample").get_buffer()
        with self.new_picture:
            self.picture = self.picture[0] + 1, buffer.extract_dup(0, buffer.get_size())
            self.new_picture.notify_all()
        return Gst.FlowReturn.OK

    def picture_after(self, number, seconds):
        """The number and the JPEG file of a picture that is newer than picture `number`. The file is empty if no such
        picture arrives within `seconds`."""
        with self.new_picture:
            there = self.new_picture.wait_for(lambda: self.picture[0] != number, seconds)
            return self.picture if there else (number, b"")

    def show(self, key: str, sample):
        """Accepts a frame of a camera, in the thread of the camera."""
        source, mix, now = self.sources.get(key), self.mix, time.monotonic()
        if not source or now - self.times.get(key, 0) < 0.9 / self.settings.fps:  # more frames than the wall shows
            return
        running = mix.get_current_running_time()
        if running == Gst.CLOCK_TIME_NONE:  # the wall does not play yet
            return
        self.times[key] = now
        buffer = common.without_times(sample.get_buffer())
        buffer.pts = running
        source.emit("push-sample", Gst.Sample.new(buffer, sample.get_caps(), None, None))

    def drain(self, pipeline):
        self.mix.get_static_pad("src").get_peer().send_event(
            Gst.Event.new_eos()
        )  # not sent to the sources, because the still picture does not end

    def lost(self):
        self.sources = {}
