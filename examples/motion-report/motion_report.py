#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Reports what moves in a clip: makes a page with a player, a timeline and a table of objects.

  GST_PLUGIN_PATH=build/gst examples/motion-report/motion_report.py [CLIP…] [--out=FOLDER] [--zones=ZONES]
                                                                   [--lines=LINES] …

CLIP is a file, a URI, a camera (/dev/video0), or a folder. Without one, a synthetic scene is analysed. Files of a
recorder with consecutive clock times are one recording with one report. Writes to FOLDER
  report.html   the report, which opens automatically: events with pictures, and the clip, on which the page draws the
                findings
  report.mp4    or report.webm: the clip, only if it is larger than --embed; a smaller one is inside report.html
  pictures/     only if there are many objects: their pictures
  clips/        with --clips: each motion or each visit of an object in its own file, clips.csv and clips.json; with
                --clips=joined also all motions in one file
  motion.jsonl  one event per line: begin, motion or end, where and how much; light; enter, leave, stopped, cross … of
                an object. The last one, `finished`, says whether the clip was analysed to its end
  heat.jpg      a frame with a tint where it moved; only if something moved
  objects.csv   one visit of an object per line
  frames.csv    motion and brightness, one frame per line
and prints a table, and when each object entered and left. For several clips that are not one recording, each one gets a
folder with these files in FOLDER, beside index.html. Exit status: 0; 1 if there is no report, or for a folder if at
least one clip has none, with one sentence on stderr for each; 2 for wrong usage; 3 if a report is written, but frames
of the clip could not be read, or it could not be analysed to its end (it is shorter than its container declares, it has
an error, or Ctrl-C stopped the analysis), or not all of its events could be cut out.
"""
import contextlib
import os
import pathlib
import sys
from dataclasses import dataclass, replace
from fractions import Fraction

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import clip_facts  # noqa: E402
import clip_files  # noqa: E402
import clip_formats  # noqa: E402
import clip_streams  # noqa: E402
import clips_of_events  # noqa: E402
import clips_over_files  # noqa: E402
import common  # noqa: E402
import containers  # noqa: E402
import inputs  # noqa: E402
import joined_clips  # noqa: E402
import losses  # noqa: E402
import time_line  # noqa: E402
import uris  # noqa: E402
from common import Gst  # noqa: E402

try:
    import analysis  # noqa: E402
except ModuleNotFoundError as error:
    sys.exit(f"{pathlib.Path(sys.argv[0]).name}: the Python module {error.name} is missing; "
             f"apt-get install python3-{error.name}")
import batch  # noqa: E402
import media  # noqa: E402
import page  # noqa: E402
import page_video  # noqa: E402
import part  # noqa: E402
import stamp  # noqa: E402
import tables  # noqa: E402

INCOMPLETE = 3  # exit status
HEAT_MAP = "heat.jpg"
LISTED = 30  # objects that are printed; objects.csv has all of them
PICTURES = Fraction(1)  # number of pictures of a folder that are shown per second
LONGEST = 1e9  # seconds; no video is longer


def name_of(clip):
    """The displayed name of a clip, without a password."""
    if not clip:
        return "a synthetic scene"
    path = uris.path_of(clip)
    return uris.shown(clip) if path is None else os.fsencode(pathlib.Path(path).name).decode(errors="replace")


def title_of(args):
    """The name of the reported clip or recording."""
    return args.title or name_of(args.clip)


def files_of(args):
    """The paths of the analysed files; none for a camera."""
    if args.recording:
        return [each.path for each in args.recording]
    return [args.clip] if args.clip and os.path.isfile(args.clip) else []


def make_folder(folder):
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise common.Failure(f"cannot make the folder {folder}: {error.strerror}") from error


def report(args, folder):
    """Analyses args.clip and writes all files of its report. Returns the Findings."""
    was_there = folder.exists()
    make_folder(folder)
    try:
        return report_into(args, folder)
    except common.Failure:
        with contextlib.suppress(OSError):  # it has files
            if not was_there:
                folder.rmdir()
        raise


def report_into(args, folder):
    """Like report(), with an existing folder."""
    title, files = title_of(args), files_of(args)
    facts = clip_facts.facts_of(args.clip) if files and not args.recording else None
    shown = facts if args.track == 1 else None  # players use the first track of a file
    encoding, suffix = media.encoder() if page_video.needs_encoding(shown) else ("", "")
    try:
        unfinished = common.Unfinished(folder)
    except OSError as error:
        raise common.Failure(f"cannot write to {folder}: {error.strerror}") from error
    with unfinished as file:
        with common.whole(folder / "motion.jsonl") as events, common.whole(folder / "frames.csv") as frames:
            findings = analysis.analyse(args, encoding, file.stream, folder, events, frames)
            judge(args, findings, facts)
            if facts and facts.began:
                findings.clocks = [(0, facts.began)]
            events.write(tables.last_event(findings))
        tables.write_objects(findings, folder)
        write_heat_map(findings.heat_map, folder / HEAT_MAP)
        video = page_video.choose(args.clip, shown, findings, file, suffix)
        if args.clips:
            try:
                cut_events(args, findings, facts, video, folder)
            except common.Failure as failure:
                lacks = (failure if isinstance(failure, joined_clips.NotJoined)
                         else f"not all events were cut out: {failure}")
                findings.incomplete = "; ".join(filter(None, (findings.incomplete, str(lacks))))
        data = b""
        if video.path and os.path.getsize(video.path) <= args.embed * 2 ** 20:
            with open(video.path, "rb") as stream:
                data, video.path = stream.read(), None
        elif video.path:
            page_video.put_beside(video, file, folder)
        page.write(findings, args, title, folder, video, data, facts)
        page_video.forget(folder, video.path, files)
        if not args.clips:
            clips_of_events.forget_listed(folder / "clips", files)
    return findings


def write_heat_map(data, file):
    """Writes the heat map, or removes the one of an earlier run."""
    if data:
        with common.whole(file) as stream:
            stream.write(data)
    else:
        file.unlink(missing_ok=True)


def judge(args, findings, facts):
    """Notes in the findings whether the clip was analysed to its end."""
    if findings.stopped and (facts or not args.clip or findings.declared > 0):
        findings.incomplete = "it was stopped by Ctrl-C"
    elif facts and not findings.incomplete and not findings.at_end:
        end = max([findings.reached, *(span.end for span in findings.lost)])
        findings.incomplete = containers.cut_of(args.clip) or facts.missing(end, args.part.until)
    elif args.pictures and args.part.is_whole and not findings.incomplete:
        lost = args.pictures - findings.count * (args.part.skip + 1)
        if lost > args.part.skip:
            findings.incomplete = (f"{lost} of {args.pictures} pictures could not be read: the times after them are "
                                   "too early")
    findings.incomplete = "; ".join(
        filter(None, (losses.sentence(findings.lost, findings.count), findings.incomplete)))


def cut_events(args, findings, facts, video, folder):
    """Cuts a clip of each event out of the file or the files of the recording, or, if that is impossible, out of the
    page's video. Events get the names of their clips. Raises a Failure; clips that were cut before it are kept."""
    files, inner = sources_of(args, findings, facts, video)
    if not clip_formats.can_cut(inner):
        clips_of_events.forget_listed(folder / "clips", files_of(args))
        raise common.Failure("there is no video to cut")
    events = ([clips_of_events.Event(visit["entered"], visit["left"], visit["id"]) for visit in findings.visits]
              if args.clips == "visits" else [clips_of_events.Event(*run) for run in findings.runs])
    for event in events:
        event.limit(findings.holes)
    joined = sound = None
    try:
        clips_of_events.cut(files.path, inner, events, folder / "clips", args.before, args.after, findings.clock_at,
                            files.offset, name=title_of(args), reader=files.reader)
        if args.stamp:
            stamp_clips(events, inner, folder / "clips", findings.clock_at, title_of(args))
        if args.clips == "joined":
            joined, sound = joined_clips.join(rows_of(events), folder / "clips")
    finally:
        findings.clips = {(event.begin, event.number): f"clips/{event.row['file']}" for event in events if event.row}
        remarks = "; ".join(filter(None, (clip_formats.left_out(inner), sound)))
        joined = f", all in {joined}" if joined else ""
        findings.cut = f"{len(rows_of(events))}, in {folder / 'clips'}{joined}{': ' * bool(remarks)}{remarks}"


def rows_of(events):
    """The rows of the clips of events. Several events may share one."""
    return list({id(event.row): event.row for event in events if event.row}.values())


@dataclass
class Source:
    """The source of clips of events: the arguments `path`, `offset` and `reader` of clips_of_events.cut()."""
    path: object
    offset: float = 0
    reader: object = clip_streams.Reader


def sources_of(args, findings, facts, video):
    """The Source of clips of events, and its facts: the clip itself, or the page's video, which people can play."""
    beside = video.path and clip_facts.facts_of(video.path)
    if args.recording:
        whole = beside and clips_over_files.Part(video.path, beside, video.begins, LONGEST)

        def reader(_, facts, until):
            parts = findings.parts if args.track == 1 else []
            return clips_over_files.Readers(parts, whole, until, bool(facts.unheard))

        first = findings.parts[0].facts if findings.parts and args.track == 1 else beside
        return Source([*files_of(args), *([video.path] if video.path else [])], 0, reader), (
            first if clip_formats.can_cut(first) else beside)
    if clip_formats.can_cut(facts) and facts.codec not in clip_facts.OLD and args.track == 1:
        return Source(args.clip), facts
    return Source(video.path, video.begins), beside


def stamp_clips(events, facts, folder, clock, name):
    rows = rows_of(events)
    try:
        for row in rows:
            stamp.burn(row, folder, clock(row["begin_s"]))
    finally:
        clips_of_events.write_lists(rows, folder, name, facts.rate)


def say(findings, folder):
    runs, most = findings.runs, findings.most
    ids = {visit["id"] for visit in findings.visits}
    rows = [("report.html", f"in {folder}"), ("frames", f"{findings.count}"),
            ("seconds", f"{findings.seconds:.1f} ({findings.count / findings.seconds:.0f} frames a second)"),
            ("backend", findings.backend),
            ("frames with motion", f"{findings.moving} ({100 * findings.moving / findings.count:.0f} %), "
             f"in {len(runs)} run{'s' if len(runs) != 1 else ''}"),
            ("objects", f"{len(ids)}"), ("most motion", f"{most.changed:.1f} % of the picture, at {most.time:.1f} s"),
            ("brightness", f"{findings.light / findings.count:.0f} % on average")]
    if findings.track:
        rows.append(("video", findings.track))
    if findings.cut:
        rows.append(("clips of events", findings.cut))
    if findings.incomplete:
        rows.append(("incomplete", findings.incomplete))
    if findings.remark:
        rows.append(("recording", findings.remark))
    for name, value in rows:
        print(f"{name:<40}{value}")
    for visit in findings.visits[:LISTED]:
        zone = f" {visit['zone']}" if "zone" in visit else ""
        print(f"object {visit['id']} entered{zone} at {visit['entered']:.1f} s, left at {visit['left']:.1f} s")
    if len(findings.visits) > LISTED:
        print(f"and {len(findings.visits) - LISTED} more: see objects.csv")


def report_several(args, out):
    """Reports several inputs or a folder: a single recording into `out`, otherwise each one into its own folder there,
    beside index.html. Returns the exit status."""
    jobs, others = batch.jobs_for(args.inputs, args.join)

    def one(job, folder):
        args.recording, args.clip, args.title = job.files, job.path, job.title
        args.length = args.recording and time_line.length_of(args.recording)
        findings = report(args, folder)
        say(findings, folder)
        return findings

    if len(jobs) == 1 and jobs[0].files:
        print(f"{jobs[0].title}: {len(jobs[0].files)} files are one recording")
        return INCOMPLETE if one(jobs[0], out).incomplete else 0
    make_folder(out)
    title = name_of(os.path.abspath(args.inputs[0])) if len(args.inputs) == 1 else f"{len(args.inputs)} inputs"
    failed, incomplete = batch.each(jobs, others, title, out, one)
    return 1 if failed else INCOMPLETE if incomplete else 0


def utf8(argument):
    """An argument for an element. Raises a ValueError if it is not UTF-8."""
    argument.encode()
    return argument


def parse_arguments():
    parser = common.Parser(description=__doc__.splitlines()[0])
    parser.add_argument("inputs", nargs="*", metavar="CLIP",
                        help="a file, a URI, a camera, or files and folders of clips (none: a synthetic scene)")
    parser.add_argument("--clip", help="the same as CLIP")
    parser.add_argument("--join", choices=time_line.JOINS, default="auto",
                        help="reports for several files: one for the files of each recording, found by clock times "
                        "(auto); one for all files (all); one for each file (none)")
    parser.add_argument("--out", default="out", help="the folder to write into (out)")
    parser.add_argument("--backend", default="auto", choices=("auto", "cuda", "cpu"))
    parser.add_argument("--frames", type=common.number(int, 1), default=300, help="length of the synthetic scene (300)")
    part.add_options(parser)
    parser.add_argument("--seconds", type=common.number(float, 0, above=True),
                        help="the same as --duration, in seconds")
    parser.add_argument("--track", type=common.number(int, 1), default=1, metavar="N",
                        help="the video track of files that have several (1)")
    parser.add_argument("--zones", type=utf8,
                        help='polygons that objects enter: "NAME: x,y x,y x,y; NAME: …", in pixels or as shares of the '
                        'frame (0.5)')
    parser.add_argument("--lines", type=utf8, help='lines that objects cross: "NAME: x,y x,y; NAME: …"')
    parser.add_argument("--set", type=utf8, dest="settings", action="append", default=[], metavar="PROPERTY=VALUE",
                        help="sets another property of cudadiff, such as preset=indoor; can be repeated")
    parser.add_argument("--embed", type=common.number(float, 0), default=24, metavar="MIB",
                        help="a video up to this size is a part of report.html; a larger one is a separate file (24)")
    parser.add_argument("--clips", nargs="?", const="motions", choices=clips_of_events.KINDS,
                        help="cut out a file for each motion, even outside the zones, or for each visit of an "
                             "object; joined: each motion, and all motions as one file")
    parser.add_argument("--stamp", action="store_true",
                        help="burn the time into these files; their pictures are encoded again")
    parser.add_argument("--before", type=common.number(float, 0, 3600), default=2, metavar="SECONDS",
                        help="how long before its event a clip begins, 0 to 3600 (2)")
    parser.add_argument("--after", type=common.number(float, 0, 3600), default=2, metavar="SECONDS",
                        help="how long after its event a clip ends, 0 to 3600 (2)")
    args = parser.parse_args(clips_of_events.with_kinds(sys.argv[1:]))
    if args.seconds and (args.end or args.duration):
        parser.error("--seconds excludes --end and --duration")
    if args.seconds:
        args.duration = part.Time(time=round(args.seconds * Gst.SECOND))
    args.part = part.of_options(parser, args)
    args.inputs = [args.clip, *args.inputs] if args.clip else args.inputs
    paths = [uris.path_of(each) for each in args.inputs]
    args.inputs = [each if path is None else path for each, path in zip(args.inputs, paths)]
    args.clip, args.recording, args.title, args.length = args.inputs[0] if args.inputs else None, [], "", 0
    args.pictures = 0  # the number of pictures, if the clip is a folder of pictures
    motion = common.parse("cudadiff name=motion ! fakesink").get_by_name("motion")
    for text in args.settings:
        if not inputs.set_property(motion, text):
            parser.error(f"cudadiff has no such property or value: {text}")
    if args.stamp and not args.clips:
        parser.error("--stamp needs --clips")
    if args.stamp and not Gst.ElementFactory.find("timeoverlay"):
        raise common.Failure("--stamp needs the element timeoverlay: install gstreamer1.0-x")
    return args


def run():
    args = parse_arguments()
    out = pathlib.Path(args.out)
    pictures = clip_files.pictures_in(args.clip) if len(args.inputs) == 1 and os.path.isdir(args.clip) else None
    if pictures:
        args.pictures = clip_files.count_pictures(args.clip)
        args.title, args.clip, args.inputs = name_of(os.path.abspath(args.clip)), pictures, [pictures]
        args.part = replace(args.part, rate=args.part.rate or PICTURES)
    if len(args.inputs) > 1 or (args.clip and os.path.isdir(args.clip)):
        sys.exit(report_several(args, out))
    findings = report(args, out)
    say(findings, out)
    sys.exit(INCOMPLETE if findings.incomplete else 0)


if __name__ == "__main__":
    common.main(run)
