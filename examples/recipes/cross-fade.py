#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Fades from one clip to another: a control source drives the alpha of the upper pad. Writes motion JPEG in Matroska,
1280×720."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import common  # noqa: E402
from common import Gst  # noqa: E402

import gi  # noqa: E402
gi.require_version("GstController", "1.0")
from gi.repository import GstController  # noqa: E402


def nanoseconds(text):
    if not 0 <= (seconds := float(text)) <= 1e6:
        raise ValueError
    return int(seconds * Gst.SECOND)


def run():
    parser = common.Parser(description=__doc__)
    parser.add_argument("clip_a")
    parser.add_argument("clip_b")
    parser.add_argument("out", help="the file to write, OUT.mkv")
    parser.add_argument("start", nargs="?", default="1", type=nanoseconds, help="seconds from A's start to B's (1)")
    parser.add_argument("seconds", nargs="?", default="1", type=nanoseconds, help="seconds that B takes to cover A (1)")
    args = parser.parse_args()
    parser.check_matroska(args.out)
    size = "width=1280,height=720"
    pipeline = common.parse(f"""
        cudablend name=mix background=black ! video/x-raw,format=I420,{size} ! queue ! jpegenc quality=90
        ! matroskamux ! filesink name=out
        {common.DECODER} name=a ! videoconvert ! queue ! mix.sink_0
        {common.DECODER} name=b ! videoconvert ! queue ! mix.sink_1""",
                            a={"uri": common.uri_of(args.clip_a)}, b={"uri": common.uri_of(args.clip_b)})
    mix = pipeline.get_by_name("mix")
    for pad in mix.sinkpads:
        pad.set_property("width", 1280)
        pad.set_property("height", 720)
        Gst.util_set_object_arg(pad, "sizing-policy", "keep-aspect-ratio")

    above = mix.get_static_pad("sink_1")
    above.set_offset(args.start)
    fade = GstController.InterpolationControlSource(mode=GstController.InterpolationMode.LINEAR)
    fade.set(args.start, 0.0)  # times are running times of the output
    fade.set(args.start + args.seconds, 1.0)
    above.add_control_binding(GstController.DirectControlBinding.new_absolute(above, "alpha", fade))

    with common.whole(args.out) as stream:
        pipeline.get_by_name("out").set_property("location", common.location_of(stream))
        common.play(pipeline)


if __name__ == "__main__":
    common.main(run)
