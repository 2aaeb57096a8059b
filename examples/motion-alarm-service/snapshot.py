# SPDX-License-Identifier: LGPL-2.1-or-later
"""Makes JPEG pictures of frames."""

import common
from common import Gst


def jpeg_of(sample, quality: int = 85) -> bytes:
    """The JPEG file of a frame in system or CUDA memory. (cudaconvolve without weights changes nothing; it brings the frame to
    system memory.) Raises a Failure if it cannot be made within ten seconds."""
    pipeline = common.parse(
        "appsrc name=in format=time ! cudaconvolve ! video/x-raw ! videoconvert ! jpegenc name=encoder "
        "! appsink name=out sync=false",
        encoder={"quality": quality},
    )
    bus = pipeline.get_bus()
    pipeline.set_state(Gst.State.PLAYING)
    try:
        pipeline.get_by_name("in").emit("push-sample", sample)
        pipeline.get_by_name("in").emit("end-of-stream")
        result = pipeline.get_by_name("out").emit("try-pull-sample", 10 * Gst.SECOND)
        common.check(bus.pop_filtered(Gst.MessageType.ERROR))
        if not result:
            raise common.Failure("no picture could be made of a frame")
        buffer = result.get_buffer()
        return buffer.extract_dup(0, buffer.get_size())
    finally:
        pipeline.set_state(Gst.State.NULL)
