#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Fades from one clip to another: a control source drives the alpha of the pad above. 1280×720, motion JPEG in Matroska.

    GST_PLUGIN_PATH=build/gst examples/recipes/cross-fade.py CLIP_A CLIP_B OUT.mkv [START [SECONDS]]

B begins START seconds after A (1), and takes SECONDS (1) to cover it."""
import sys

import gi
gi.require_version("Gst", "1.0")
gi.require_version("GstController", "1.0")
from gi.repository import Gst, GstController

if not 4 <= len(sys.argv) <= 6:
    sys.exit(print(__doc__, file=sys.stderr) or 2)
Gst.init(None)
start, seconds = (int(float(text) * Gst.SECOND) for text in (sys.argv[4:] + ["1", "1"][len(sys.argv) - 4:]))
size = "width=1280,height=720"
pipeline = Gst.parse_launch(f"""
    cudablend name=mix background=black ! video/x-raw,format=I420,{size} ! queue ! jpegenc quality=90 ! matroskamux ! filesink name=out
    filesrc name=a ! decodebin ! videoconvert ! queue ! mix.sink_0
    filesrc name=b ! decodebin ! videoconvert ! queue ! mix.sink_1""")
for name, location in zip(("a", "b", "out"), sys.argv[1:]):
    pipeline.get_by_name(name).set_property("location", location)
mix = pipeline.get_by_name("mix")
for pad in mix.sinkpads:
    pad.set_property("width", 1280)
    pad.set_property("height", 720)
    Gst.util_set_object_arg(pad, "sizing-policy", "keep-aspect-ratio")

above = mix.get_static_pad("sink_1")
above.set_offset(start)
fade = GstController.InterpolationControlSource(mode=GstController.InterpolationMode.LINEAR)
fade.set(start, 0.0)  # in the time of what is put out
fade.set(start + seconds, 1.0)
above.add_control_binding(GstController.DirectControlBinding.new_absolute(above, "alpha", fade))

pipeline.set_state(Gst.State.PLAYING)
message = pipeline.get_bus().timed_pop_filtered(Gst.CLOCK_TIME_NONE, Gst.MessageType.EOS | Gst.MessageType.ERROR)
pipeline.set_state(Gst.State.NULL)
if message.type == Gst.MessageType.ERROR:
    sys.exit(f"{message.src.get_name()}: {message.parse_error()[0].message}")
