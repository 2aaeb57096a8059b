#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Prints the sum and the mean of luma over a rectangle of each frame, from four numbers of the frame's summed-area table.

    integral_numbers.py [FILE [X Y WIDTH HEIGHT]]     without a FILE: of a test picture"""
import struct
import sys

import gi
gi.require_version("Gst", "1.0")
from gi.repository import Gst

Gst.init(None)
source = "filesrc name=file ! decodebin ! videoconvert" if sys.argv[1:] else "videotestsrc num-buffers=5 ! video/x-raw,format=NV12"
pipeline = Gst.parse_launch(source + " ! cudaintegral ! appsink name=sink sync=false caps=video/x-integral,format=U32LE,layout=padded")
if sys.argv[1:]:
    pipeline.get_by_name("file").set_property("location", sys.argv[1])
left, top, width, height = map(int, sys.argv[2:6]) if len(sys.argv) > 5 else (10, 20, 30, 40)
sink = pipeline.get_by_name("sink")
pipeline.set_state(Gst.State.PLAYING)

while sample := sink.emit("try-pull-sample", 10 * Gst.SECOND):  # None: the end, or an error
    columns = sample.get_caps().get_structure(0).get_value("width")  # one more than the picture has
    buffer = sample.get_buffer()
    mapped, info = buffer.map(Gst.MapFlags.READ)

    def before(x, y):
        """The sum of all that is left of x and above y."""
        return struct.unpack_from("<I", info.data, 4 * (y * columns + x))[0]

    total = before(left + width, top + height) - before(left, top + height) - before(left + width, top) + before(left, top)
    total &= 0xFFFFFFFF  # large tables wrap: a sum is right as long as it fits 32 bits itself
    print(f"{buffer.pts / 1e9:.3f} s: sum {total}, mean {total / (width * height):.2f}")
    buffer.unmap(info)

message = pipeline.get_bus().pop_filtered(Gst.MessageType.ERROR)
pipeline.set_state(Gst.State.NULL)
if message:
    sys.exit(message.parse_error()[0].message)
