#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Motion analytics on a clip: when and where something moves, and how bright the picture is.

  GST_PLUGIN_PATH=build/gst examples/motion_report.py [--clip=FILE] [--out=FOLDER] [--backend=auto|cuda|cpu] [--frames=N]

Without a clip it analyses N frames of a synthetic scene. Writes to FOLDER
  motion.mkv    the clip (motion JPEG) with a tint and boxes where something moves, and its histogram
  motion.jsonl  one event for each line: begin, motion or end, where and how much; enter or leave of an object, and light
  summary.png   the frames with the most motion; motion and brightness over time
and prints a table, and when each object entered and left. Exit status: 0; 1 after a failure, with one sentence on stderr; 2 for wrong usage.
"""
import json
import pathlib
import time

import common
from common import Gst

import gi
gi.require_version("GstApp", "1.0")
from gi.repository import GstApp  # noqa: E402, F401: gives appsink its methods
import matplotlib  # noqa: E402

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
import numpy as np  # noqa: E402

MOMENTS = 6  # pictures on the contact sheet
LISTED = 30  # objects that are printed; motion.jsonl has all

# Of cudadiff, for the synthetic scene and for a clip. The preset is for a camera whose picture is empty for a while at first.
SETTINGS = "min-area=2 min-motion-frames=2 region-distance=2", "preset=outdoor"

# Two balls over colour bars. One of them moves back and forth.
SYNTHETIC = """
  videotestsrc pattern=smpte75 num-buffers={n} ! video/x-raw,width=640,height=480,framerate=30/1 ! scene.sink_0
  videotestsrc pattern=ball background-color=0 num-buffers={n} ! video/x-raw,format=AYUV,width=640,height=480,framerate=30/1 ! scene.sink_1
  videotestsrc pattern=ball motion=sweep background-color=0 num-buffers={n} ! video/x-raw,format=AYUV,width=240,height=240,framerate=30/1 ! scene.sink_2
  compositor name=scene sink_2::xpos=360 sink_2::ypos=60 ! videoconvert ! video/x-raw,format=I420"""


def analyse(args, video, events):
    """First pass: writes the video and the events. Returns the measurements of each frame, the visits of objects and the active backend."""
    source = f"{common.DECODER} name=clip ! videoconvert" if args.clip else SYNTHETIC.format(n=args.frames)
    pipeline = common.parse(
        f"""matroskamux name=file ! filesink name=out
        {source} ! queue ! cudahistogram name=brightness backend={args.backend} !
        cudadiff name=motion {SETTINGS[bool(args.clip)]} output=overlay gap=1 backend={args.backend} !
        cudahistogram overlay=true post-messages=false backend={args.backend} !
        videoconvert ! queue ! jpegenc ! file.""",
        out={"location": common.location_of(video)}, **{"clip": {"uri": common.uri_of(args.clip)}} if args.clip else {})
    frames, visits = [], []
    motion, backend = pipeline.get_by_name("motion"), ""

    def progress(_):
        position = pipeline.query_position(Gst.Format.TIME)[1] / Gst.SECOND
        length = pipeline.query_duration(Gst.Format.TIME)[1] / Gst.SECOND
        share = f" of {length:.1f}" if length > 0 else ""
        print(f"  {position:.1f}{share} s, {len(frames)} frames, motion in {sum(f['moving'] for f in frames)}")

    def on_message(message):
        nonlocal backend
        structure = message.get_structure()
        if structure.get_name() == "cudahistogram":
            luma = structure["channels"][0]
            percent = 100 / (2 ** structure["depth"] - 1)
            frames.append({"brightness": luma["mean"] * percent, "dark": luma["p01"] * percent, "bright": luma["p99"] * percent,
                           "changed": 0.0, "moving": False, "time": structure["stream-time"] / Gst.SECOND})
        elif structure.get_name() == "cudadiff":
            backend = backend or motion.get_property("active-backend").value_nick
            event = {"event": structure["event"], "time": structure["stream-time"] / Gst.SECOND}
            if structure.has_field("id"):  # an object enters or leaves
                event.update({key: structure[key] for key in ("id", "x", "y", "width", "height")}, entered=structure["entered"] / Gst.SECOND)
                if event["event"] == "leave":
                    event.update(left=structure["left"] / Gst.SECOND, path_length=round(structure["path-length"], 1))
                    visits.append(event)
                events.write((json.dumps(event) + "\n").encode())
                return
            event.update({
                "changed_ratio": round(structure["changed-ratio"], 6),
                "mean_difference": round(structure["mean-difference"], 4),
                "regions": [{key: r[key] for key in ("x", "y", "width", "height", "area", "score")}
                            for r in structure["regions"]],
            })
            if event["event"] != "light":  # which comes beside the message of its frame
                frames[-1]["changed"] = event["changed_ratio"]
                frames[-1]["moving"] = event["event"] in ("begin", "motion")
            if event["event"] != "none":
                events.write((json.dumps(event) + "\n").encode())

    common.play(pipeline, on_message, progress)
    if not frames:
        raise common.Failure("there is no frame in the clip")
    return frames, sorted(visits, key=lambda visit: (visit["entered"], visit["id"])), backend


def moments(frames):
    """The numbers of the frames with the most motion, at some distance from each other, in order."""
    apart = max(1, len(frames) // (3 * MOMENTS))
    chosen = []
    for number in sorted(range(len(frames)), key=lambda n: -frames[n]["changed"]):
        if len(chosen) < MOMENTS and all(abs(number - other) >= apart for other in chosen):
            chosen.append(number)
    return sorted(chosen)


def pictures(path, numbers):
    """Decodes these frames of a video to arrays of height × width × 3 bytes."""
    pipeline = common.parse(f"{common.DECODER} name=video ! videoconvert ! video/x-raw,format=RGBA ! appsink name=sink sync=false",
                            video={"uri": common.uri_of(path)})
    found = {}
    for number, sample in enumerate(common.samples(pipeline)):
        if number in numbers:
            (width, height), buffer = common.size_of(sample), sample.get_buffer()
            pixels = np.frombuffer(buffer.extract_dup(0, buffer.get_size()), np.uint8)
            found[number] = pixels.reshape(height, width, 4)[:, :, :3]
        if len(found) == len(numbers):
            break
    return found


def draw_summary(frames, video, path):
    """Draws a contact sheet of the frames with the most motion, above plots of motion and brightness over time."""
    chosen = moments(frames)
    shots = pictures(video, chosen)
    figure = plt.figure(figsize=(10, 9), dpi=80, layout="constrained")
    grid = figure.add_gridspec(4, 3, height_ratios=(3, 3, 2, 2))
    for place, number in enumerate(n for n in chosen if n in shots):
        axes = figure.add_subplot(grid[place // 3, place % 3])
        axes.imshow(shots[number])
        axes.set_title(f"{frames[number]['time']:.1f} s: {100 * frames[number]['changed']:.1f} % changed", fontsize=9)
        axes.set_axis_off()

    times = [f["time"] for f in frames]
    axes = figure.add_subplot(grid[2, :])
    axes.fill_between(times, [100 * f["changed"] for f in frames], step="mid", alpha=0.8)
    for number in chosen:
        axes.axvline(times[number], color="tab:red", linewidth=0.8)
    axes.set_ylabel("changed, %")
    axes.set_ylim(bottom=0)
    axes.margins(x=0)
    axes = figure.add_subplot(grid[3, :], sharex=axes)
    axes.fill_between(times, [f["dark"] for f in frames], [f["bright"] for f in frames], alpha=0.2, label="1st to 99th percentile")
    axes.plot(times, [f["brightness"] for f in frames], label="mean")
    axes.set_ylabel("luma, %")
    axes.set_ylim(0, 100)
    axes.set_xlabel("seconds")
    axes.legend(loc="lower right", fontsize=8)
    with common.whole(path) as stream:
        figure.savefig(stream, format="png")


def positive(text):
    if (number := int(text)) < 1:
        raise ValueError
    return number


def run():
    parser = common.Parser(description=__doc__.splitlines()[0])
    parser.add_argument("--clip", help="a video file (none: a synthetic scene)")
    parser.add_argument("--out", default="out", help="the folder to write into (out)")
    parser.add_argument("--backend", default="auto", choices=("auto", "cuda", "cpu"))
    parser.add_argument("--frames", type=positive, default=300, help="length of the synthetic scene (300)")
    args = parser.parse_args()
    out = pathlib.Path(args.out)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise common.Failure(f"cannot make the folder {out}: {error.strerror}") from error

    began = time.monotonic()
    with common.whole(out / "motion.mkv") as video, common.whole(out / "motion.jsonl") as events:
        frames, visits, backend = analyse(args, video, events)
    seconds = time.monotonic() - began
    draw_summary(frames, out / "motion.mkv", out / "summary.png")

    moving = [f for f in frames if f["moving"]]
    runs = sum(f["moving"] and not before["moving"] for before, f in zip([{"moving": False}] + frames, frames))
    most = max(frames, key=lambda f: f["changed"])
    for name, value in (
        ("motion.mkv, motion.jsonl, summary.png", f"in {out}"),
        ("frames", f"{len(frames)}"),
        ("seconds", f"{seconds:.1f} ({len(frames) / seconds:.0f} frames a second)"),
        ("backend", backend),
        ("frames with motion", f"{len(moving)} ({100 * len(moving) / len(frames):.0f} %), in {runs} run{'s' if runs != 1 else ''}"),
        ("objects", f"{len(visits)}"),
        ("most motion", f"{100 * most['changed']:.1f} % of the picture, at {most['time']:.1f} s"),
        ("brightness", f"{sum(f['brightness'] for f in frames) / len(frames):.0f} % on average"),
    ):
        print(f"{name:<40}{value}")
    for visit in visits[:LISTED]:
        print(f"object {visit['id']} entered at {visit['entered']:.1f} s, left at {visit['left']:.1f} s")
    if len(visits) > LISTED:
        print(f"and {len(visits) - LISTED} more: see motion.jsonl")


if __name__ == "__main__":
    common.main(run)
