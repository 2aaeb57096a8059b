# SPDX-License-Identifier: LGPL-2.1-or-later
"""Makes JPEG pictures of frames, and passes them on in a separate thread.

    appsrc ! cudaconvolve ! video/x-raw ! videoconvert ! jpegenc ! appsink

cudaconvolve without weights changes nothing; it brings the frame to system memory. One pipeline makes the pictures of
all cameras, in the CUDA context that they share: another context for each picture would take half a second and hundreds
of megabytes."""

import logging
import threading

import common
from common import Gst

log = logging.getLogger("motion-alarm")
LONGEST = 10  # time limit for a picture in seconds


class Encoder:
    """Makes the pictures. Use it in one thread. `contexts` returns the GstContexts that pipelines share."""

    def __init__(self, contexts=list, quality: int = 85):
        self.contexts, self.quality = contexts, quality
        self.pipeline = None
        self.stopping = threading.Event()

    def start(self):
        pipeline = common.parse(
            "appsrc name=in format=time ! cudaconvolve ! video/x-raw ! videoconvert ! jpegenc name=encoder "
            "! appsink name=out sync=false",
            encoder={"quality": self.quality},
        )
        for context in self.contexts():
            pipeline.set_context(context)
        pipeline.set_state(Gst.State.PLAYING)
        return pipeline

    def jpeg_of(self, sample) -> bytes:
        """The JPEG file of a frame in system or CUDA memory. Raises a Failure if it cannot be made within ten seconds,
        or if stop() was called. The next picture then gets a new pipeline."""
        self.pipeline = self.pipeline or self.start()
        bus, out = self.pipeline.get_bus(), self.pipeline.get_by_name("out")
        self.pipeline.get_by_name("in").emit("push-sample", sample)
        try:
            for _ in range(10 * LONGEST):
                result = out.emit("try-pull-sample", Gst.SECOND // 10)
                common.check(bus.pop_filtered(Gst.MessageType.ERROR))
                if result:
                    return result.get_buffer().extract_dup(0, result.get_buffer().get_size())
                if self.stopping.is_set():
                    break
            raise common.Failure("no picture could be made of a frame")
        except common.Failure:
            self.close()
            raise

    def close(self):
        if self.pipeline:
            self.pipeline.set_state(Gst.State.NULL)
            self.pipeline = None


class Snapshots(threading.Thread):
    """Calls send(camera, JPEG) for frames. Only the newest frame of each camera waits, because older ones would only
    occupy memory of the decoder. `encode` makes a JPEG from a sample."""

    def __init__(self, encode, send):
        super().__init__(name="snapshots", daemon=True)
        self.encode, self.send = encode, send
        self.waiting = {}  # camera → sample
        self.changed = threading.Condition()
        self.stopping = False

    def put(self, camera, sample):
        with self.changed:
            if not self.stopping:
                self.waiting[camera] = sample
                self.changed.notify()

    def stop(self):
        """Drops the waiting frames. A picture in progress may still be sent."""
        with self.changed:
            self.stopping = True
            self.waiting.clear()
            self.changed.notify()

    def run(self):
        while True:
            with self.changed:
                self.changed.wait_for(lambda: self.waiting or self.stopping)
                if self.stopping:
                    return
                camera = next(iter(self.waiting))
                sample = self.waiting.pop(camera)
            try:
                self.send(camera, self.encode(sample))
            except Exception as error:  # the failure of one picture must not end the others
                log.warning("%s: no snapshot: %s", camera.name, error)
            del sample
