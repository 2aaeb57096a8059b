#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A report of what moves in a clip: a page with a player, a time line and a table of objects.

  GST_PLUGIN_PATH=build/gst examples/motion-report/motion_report.py [--clip=CLIP] [--out=FOLDER] [--zones=ZONES] [--lines=LINES] …

CLIP is a file, a URI, a camera (/dev/video0), or a folder. Without one, a synthetic scene is analysed. Writes to FOLDER
  report.html   the report, which opens by itself: the clip with a tint and boxes where something moves, and its histogram
  report.webm   the clip, only if it is larger than --embed; a smaller one is inside of report.html
  motion.jsonl  one event for each line: begin, motion or end, where and how much; light; enter, leave or cross of an object
  objects.csv   one visit of an object for each line
  frames.csv    motion and brightness, one frame for each line
and prints a table, and when each object entered and left. For a folder, each clip in it gets a folder with these files in FOLDER,
beside index.html. Exit status: 0; 1 after a failure, with one sentence on stderr for each clip that failed; 2 for wrong usage.
"""
import contextlib
import math
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import common  # noqa: E402
import inputs  # noqa: E402
import uris  # noqa: E402

import analysis  # noqa: E402
import page  # noqa: E402
import tables  # noqa: E402

LISTED = 30  # objects that are printed; objects.csv has all
CLIPS = tuple(".3gp .asf .avi .divx .dv .flv .h264 .m2ts .m4v .mjpeg .mjpg .mkv .mov .mp4 .mpeg .mpg .mts .mxf .ogg .ogv .ts .vob "
              ".webm .wmv".split())  # the files of a folder that are clips


def title_of(clip):
    """The name of a clip for people, without a password."""
    if not clip:
        return "a synthetic scene"
    path = uris.path_of(clip)
    return uris.shown(clip) if path is None else os.fsencode(pathlib.Path(path).name).decode(errors="replace")


def make_folder(folder):
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise common.Failure(f"cannot make the folder {folder}: {error.strerror}") from error


def report(args, folder):
    """Analyses args.clip and writes all files of its report. Returns the Findings."""
    make_folder(folder)
    title, sibling = title_of(args.clip), folder / "report.webm"
    try:
        unfinished = common.Unfinished(folder)
    except OSError as error:
        raise common.Failure(f"cannot write to {folder}: {error.strerror}") from error
    with unfinished as video:
        with common.whole(folder / "motion.jsonl") as events:
            findings = analysis.analyse(args, video.stream, events)
        tables.write_all(findings, folder)
        embedded = os.fstat(video.stream.fileno()).st_size <= args.embed * 2 ** 20
        page_video = video.stream.read() if embedded else None
        if not embedded:
            try:
                video.become(sibling)
            except OSError as error:
                raise common.Failure(f"cannot write {sibling}: {error.strerror}") from error
        page.write(findings, args, title, folder, page_video)
        if embedded and sibling.is_file():  # of an earlier run
            sibling.unlink()
    return findings


def say(findings, folder):
    """Prints the table of one clip."""
    frames, runs = findings.frames, findings.runs
    moving = sum(frame.moving for frame in frames)
    most = max(frames, key=lambda frame: frame.changed)
    ids = {visit["id"] for visit in findings.visits}
    for name, value in (
        ("report.html", f"in {folder}"),
        ("frames", f"{len(frames)}"),
        ("seconds", f"{findings.seconds:.1f} ({len(frames) / findings.seconds:.0f} frames a second)"),
        ("backend", findings.backend),
        ("frames with motion", f"{moving} ({100 * moving / len(frames):.0f} %), in {len(runs)} run{'s' if len(runs) != 1 else ''}"),
        ("objects", f"{len(ids)}"),
        ("most motion", f"{most.changed:.1f} % of the picture, at {most.time:.1f} s"),
        ("brightness", f"{sum(frame.brightness for frame in frames) / len(frames):.0f} % on average"),
    ):
        print(f"{name:<40}{value}")
    for visit in findings.visits[:LISTED]:
        zone = f" {visit['zone']}" if "zone" in visit else ""
        print(f"object {visit['id']} entered{zone} at {visit['entered']:.1f} s, left at {visit['left']:.1f} s")
    if len(findings.visits) > LISTED:
        print(f"and {len(findings.visits) - LISTED} more: see objects.csv")


def report_folder(args, out):
    """Reports each clip of the folder args.clip, and writes index.html. Returns whether all clips could be read."""
    source = args.clip
    try:
        names = sorted(name for name in os.listdir(source) if name.lower().endswith(CLIPS) and not name.startswith("."))
    except OSError as error:
        raise common.Failure(f"cannot read {source}: {error.strerror}") from error
    if not names:
        raise common.Failure(f"there is no clip in the folder {source}: names of clips end in {' '.join(CLIPS)}")
    make_folder(out)
    entries = []
    for name in names:
        args.clip = os.path.join(source, name)
        print(f"{args.clip} -> {out / name}")
        try:
            findings = report(args, out / name)
            say(findings, out / name)
            entries.append(page.Entry(name, findings))
        except common.Failure as error:
            sentence = str(error) if name in str(error) else f"{args.clip}: {error}"
            print(f"{pathlib.Path(sys.argv[0]).name}: {sentence}", file=sys.stderr)
            entries.append(page.Entry(name, failure=sentence))
            with contextlib.suppress(OSError):  # it has other files
                (out / name).rmdir()
    page.write_index(entries, title_of(os.path.abspath(source)), out)
    return not any(entry.failure for entry in entries)


def positive(kind):
    def convert(text):
        if not 0 < (number := kind(text)) < math.inf:
            raise ValueError
        return number
    convert.__name__ = kind.__name__
    return convert


def utf8(argument):
    """An argument that is given to an element. Raises a ValueError if it is no UTF-8."""
    argument.encode()
    return argument


def parse_arguments():
    parser = common.Parser(description=__doc__.splitlines()[0])
    parser.add_argument("--clip", help="a file, a URI, a camera, or a folder of clips (none: a synthetic scene)")
    parser.add_argument("--out", default="out", help="the folder to write into (out)")
    parser.add_argument("--backend", default="auto", choices=("auto", "cuda", "cpu"))
    parser.add_argument("--frames", type=positive(int), default=300, help="length of the synthetic scene (300)")
    parser.add_argument("--seconds", type=positive(float), help="analyse only the beginning of each clip")
    parser.add_argument("--zones", type=utf8,
                        help='polygons that objects enter: "NAME: x,y x,y x,y; NAME: …", in pixels or in shares (0.5)')
    parser.add_argument("--lines", type=utf8, help='lines that objects cross: "NAME: x,y x,y; NAME: …"')
    parser.add_argument("--set", type=utf8, dest="settings", action="append", default=[], metavar="PROPERTY=VALUE",
                        help="sets another property of cudadiff, such as preset=indoor; can be repeated")
    parser.add_argument("--embed", type=float, default=24, metavar="MIB",
                        help="a video up to this size is a part of report.html; a larger one is report.webm beside it (24)")
    args = parser.parse_args()
    if args.clip:
        path = uris.path_of(args.clip)
        args.clip = args.clip if path is None else path
    motion = common.parse("cudadiff name=motion ! fakesink").get_by_name("motion")
    for text in args.settings:
        if not inputs.set_property(motion, text):
            parser.error(f"cudadiff has no such property or value: {text}")
    return args


def run():
    args = parse_arguments()
    out = pathlib.Path(args.out)
    if args.clip and os.path.isdir(args.clip):
        sys.exit(0 if report_folder(args, out) else 1)
    say(report(args, out), out)


if __name__ == "__main__":
    common.main(run)
