#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Speeds up the parts of a clip in which nothing moves. Motion, with a second before and after it, keeps its speed. The
clips in a folder become one video, in the size of the first one. Reads each clip twice. Writes motion JPEG in Matroska,
without sound."""
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import clip_files  # noqa: E402
import clock_names  # noqa: E402
import common  # noqa: E402
import inputs  # noqa: E402
from common import Gst  # noqa: E402

AROUND = Gst.SECOND  # time before and after motion that keeps its speed
FRAME_TIME = Gst.SECOND // 25  # of frames without a duration
GAP = 2 * Gst.SECOND  # a longer time without frames counts as this
QUEUED = 16 * 2 ** 20  # bytes that wait for the encoder


def motions_in(clip, settings):
    """The begin and end of each motion, in ns."""
    pipeline = common.parse(f"{common.DECODER} name=clip ! videoconvert ! cudadiff name=diff output=passthrough "
                            "message-interval=18446744073709551615 ! fakesink sync=false",
                            clip={"uri": common.uri_of(clip)})
    for text in settings:
        inputs.set_property(pipeline.get_by_name("diff"), text)
    found = []

    def on_message(message):
        event = message.get_structure()
        if event.get_name() == "cudadiff" and event.get_value("event") == "end":
            found.append((event.get_value("began") - AROUND, event.get_value("last-motion") + AROUND))

    if common.play(pipeline, on_message):
        raise KeyboardInterrupt
    return found


def frames_of(clip, size):
    """The samples of a clip, in this size if it is not empty."""
    scaled = "videoscale add-borders=true !" if size else ""
    return common.samples(common.parse(f"{common.DECODER} name=clip ! videoconvert ! {scaled} "
                                       f"video/x-raw,format=I420{size} ! appsink name=sink sync=false max-buffers=4",
                                       clip={"uri": common.uri_of(clip)}))


def joined(clips, settings, factor):
    """The frames of all clips, and their caps, with new times."""
    begin, size = 0, ""
    for clip in clips:
        end = begin
        for buffer, caps in faster(frames_of(clip, size), motions_in(clip, settings), factor):
            buffer.pts += begin
            end = buffer.pts + buffer.duration
            size = size or ",width={},height={}".format(*common.size_of_caps(caps))
            yield buffer, caps
        begin = end


def faster(samples, motions, factor):
    """The frames and their caps, with new times. Still parts have fewer of them."""
    motions, shown, last, kept = list(motions), 0, None, None
    for sample in samples:
        buffer = sample.get_buffer()
        if buffer.pts == Gst.CLOCK_TIME_NONE:
            raise common.Failure("the frames of the clip have no times")
        time = sample.get_segment().to_stream_time(Gst.Format.TIME, buffer.pts)
        step = buffer.duration if buffer.duration not in (0, Gst.CLOCK_TIME_NONE) else FRAME_TIME
        while motions and motions[0][1] < time:
            motions.pop(0)
        speed = 1 if motions and motions[0][0] <= time else factor
        shown += 0 if last is None else min(max(time - last, 0), GAP) / speed
        last = time
        if kept is not None and speed > 1 and shown - kept < step * 0.99:
            continue
        kept = shown
        copy = buffer.copy_region(Gst.BufferCopyFlags.MEMORY | Gst.BufferCopyFlags.META, 0, buffer.get_size())
        copy.pts, copy.duration = int(shown), step
        yield copy, sample.get_caps()


def write(name, frames, out):
    pipeline = common.parse("appsrc name=frames format=time ! jpegenc quality=90 ! matroskamux ! filesink name=out",
                            out={"location": common.location_of(out)})
    source, bus, count = pipeline.get_by_name("frames"), pipeline.get_bus(), 0
    pipeline.set_state(Gst.State.PLAYING)
    try:
        for buffer, caps in frames:
            source.emit("push-sample", Gst.Sample.new(buffer, caps, None, None))
            count += 1
            while source.get_property("current-level-bytes") > QUEUED:
                common.check(bus.timed_pop_filtered(Gst.SECOND // 100, Gst.MessageType.ERROR))
        if not count:
            raise common.Failure(f"there is no frame in {name}")
        source.emit("end-of-stream")
        common.check(bus.timed_pop_filtered(Gst.CLOCK_TIME_NONE, Gst.MessageType.ERROR | Gst.MessageType.EOS))
    finally:
        pipeline.set_state(Gst.State.NULL)


def run():
    parser = common.Parser(description=__doc__)
    parser.add_argument("clip", help="a clip, or a folder of clips, in the order of their names")
    parser.add_argument("out", help="the file to write, OUT.mkv")
    parser.add_argument("factor", nargs="?", default=16, type=common.number(float, 1, 1e6),
                        help="how many times as fast still parts are (16)")
    parser.add_argument("settings", nargs="*", metavar="PROPERTY=VALUE",
                        help="properties of cudadiff (preset=outdoor gap=1 track=false)")
    args = parser.parse_args()
    parser.check_matroska(args.out)
    settings = ["preset=outdoor", "gap=1", "track=false", *args.settings]
    diff = common.parse("cudadiff name=diff ! fakesink").get_by_name("diff")
    for text in settings:
        if not inputs.set_property(diff, text):
            parser.error(f"cudadiff has no such property or value: {text}")
    clips = [args.clip]
    if os.path.isdir(args.clip):
        clips = sorted(clip_files.clips_in(args.clip)[0], key=clock_names.natural)
    with common.whole(args.out) as stream:
        write(args.clip, joined(clips, settings, args.factor), stream)


if __name__ == "__main__":
    common.main(run)
