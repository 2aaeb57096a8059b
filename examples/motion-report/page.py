# SPDX-License-Identifier: LGPL-2.1-or-later
"""Makes report.html and index.html from the templates in this folder. A page contains its style, script, pictures and
data. Texts such as file names are escaped, and the Content-Security-Policy allows only this program's script and
style."""
import base64
import contextlib
import hashlib
import html
import json
import math
import os
import pathlib
import re
import urllib.parse
from dataclasses import dataclass

import numpy

import common

import tables

HERE = pathlib.Path(__file__).resolve().parent
# These become one script in this order.
SCRIPTS = "recording.js", "layer.js", "timeline.js", "list.js", "zones.js", "report.js"
INLINE = 12 * 2 ** 20  # limit for bytes of pictures in the page; more are written beside it
STILL = 1  # an object counts as still if its track is shorter than this many lengths of its box


@dataclass
class Entry:
    """A clip of index.html: the facts of its report, or the sentence that says why there is none."""
    name: str
    facts: str = ""
    poster: bytes = b""
    incomplete: str = ""
    failure: str = ""
    title: str = ""  # if it differs from the name


def entry_of(name, findings, title=""):
    """The entry of an analysed clip; it does not keep the findings."""
    moving = 100 * findings.moving / findings.count
    objects = len({visit["id"] for visit in findings.visits})
    return Entry(name, f"{duration(findings.length)} · objects: {objects} · motion: {moving:.0f} %", findings.poster,
                 findings.incomplete, title=title)


def clock(seconds):
    """12.34 → 0:12.3"""
    tenths = round(seconds * 10)
    hours, minutes = divmod(tenths // 600, 60)
    rest = f"{tenths // 10 % 60:02}.{tenths % 10}"
    return f"{hours}:{minutes:02}:{rest}" if hours else f"{minutes}:{rest}"


def duration(seconds):
    """12.34 → 12.3 s; 100 → 1 min 40 s"""
    if seconds < 99.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    hours, minutes = divmod(whole // 60, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {whole % 60} s"


def data_uri(kind, data):
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"


def escape(text):
    """Escapes text and attributes. Invalid UTF-8 in file names becomes U+FFFD."""
    return html.escape(str(text).encode(errors="surrogateescape").decode(errors="replace"))


def fill(template, values):
    """Replaces each {{name}} in a template file. Values are not searched for names."""
    text = (HERE / template).read_text(encoding="utf-8")
    return re.sub(r"\{\{(\w+)\}\}", lambda match: values[match[1]], text)


def hash_of(text):
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def frame(title, body, script=""):
    style = (HERE / "page.css").read_text(encoding="utf-8")
    policy = ("default-src 'none'; img-src data: 'self' file:; media-src 'self' file: blob:; "
              f"style-src '{hash_of(style)}'; "
              f"script-src '{hash_of(script)}'; base-uri 'none'; form-action 'none'")
    return fill("page.html",
                {"title": escape(title), "policy": escape(policy), "style": style, "body": body, "script": script})


def shapes_of(text, size):
    """The shapes of `zones` or `lines`, which cudadiff has accepted, as names and points in pixels."""
    shapes = []
    for part in (text or "").split(";"):
        name, _, points = part.rpartition(":")
        numbers = re.findall(r"-?[\d.]+", points)
        if numbers:
            scale = size if all("." in number for number in numbers) else (1, 1)
            shapes.append({"name": name.strip(), "points": [[float(x) * scale[0], float(y) * scale[1]]
                                                            for x, y in zip(numbers[::2], numbers[1::2])]})
    return shapes


def is_still(visits):
    """Whether an object hardly moved: its track is shorter than the diagonal of its box."""
    best = visits[-1].get("best_box", (0, 0, 0, 0))
    return sum(visit["path_length"] for visit in visits) < STILL * math.hypot(*best[2:])


def objects_of(findings):
    """One dictionary for each object that was in the frame or in a zone, in order of appearance. pictures_of() adds its
    picture."""
    objects = {}
    for visit in findings.visits:
        objects.setdefault(visit["id"], []).append(visit)
    crossings, notes = {}, {}
    for events, found in ((findings.crossings, crossings), (findings.notes, notes)):
        for event in events:
            found.setdefault(event["id"], []).append(event)
    made = []
    for number, visits in objects.items():
        best = max(visits, key=lambda visit: math.prod(visit.get("best_box", (0, 0, 0, 0))[2:]))
        made.append({
            "id": number, "entered": visits[0]["entered"], "left": max(visit["left"] for visit in visits),
            "seconds": round(sum(visit["seconds"] for visit in visits), 3),
            "path": round(sum(visit["path_length"] for visit in visits)),
            "best": best.get("best_time", visits[0]["entered"]), "box": best.get("best_box", [0, 0, 0, 0]),
            "still": is_still(visits),
            "visits": [[visit["zone"], visit["entered"], visit["left"]] for visit in visits if "zone" in visit],
            "crossed": [[one["line"], one["direction"], one["time"]] for one in crossings.get(number, [])],
            "notes": [[one["event"], one["time"]] for one in notes.get(number, [])],
            "clip": next(filter(None, (findings.clips.get((visit["entered"], number)) for visit in visits)), None)})
    return made


def pictures_of(objects, pictures, folder):
    """Gives each object its picture: its place in the returned text, or the name of a file if the pictures together are
    larger than INLINE."""
    inline, texts, offset = pictures.size <= INLINE, [], 0
    if not inline:
        (folder / "pictures").mkdir(exist_ok=True)
    for item in objects:
        jpeg = pictures.get(item["id"])
        if jpeg and inline:
            texts.append(base64.b64encode(jpeg).decode())
            item["picture"] = [offset, len(texts[-1])]
            offset += len(texts[-1])
        elif jpeg:
            item["picture"] = f"pictures/object-{item['id']}.jpg"
            with common.whole(folder / item["picture"]) as stream:
                stream.write(jpeg)
    return "".join(texts)


def forget_pictures(objects, folder):
    """Removes the pictures of an earlier run beside the page, except the pictures of these objects."""
    kept, beside = {item["picture"] for item in objects if isinstance(item.get("picture"), str)}, folder / "pictures"
    with contextlib.suppress(OSError):  # there are none, or the folder has other files
        for name in os.listdir(beside):
            if re.fullmatch(r"object-\d+\.jpg", name) and f"pictures/{name}" not in kept:
                os.unlink(beside / name)
        beside.rmdir()


def tile(value, label, seek=None):
    value = escape(value)
    if seek is not None:
        value = f'<button class="link" data-seek="{seek:.3f}">{value}</button>'
    return f'<div class="tile"><dt>{escape(label)}</dt><dd>{value}</dd></div>'


def tiles(findings, objects):
    runs, most = findings.runs, findings.most
    moving = 100 * findings.moving / findings.count
    shown = [tile(len(objects), "objects" if len(objects) != 1 else "object"),
             tile(f"{moving:.0f} %", f"of the time with motion, in {len(runs)} run{'s' if len(runs) != 1 else ''}"),
             tile(f"{most.changed:.1f} %", f"of the picture at most, at {clock(most.time)}", most.time),
             tile(f"{findings.light / findings.count:.0f} %", "brightness on average")]
    if findings.crossings:
        shown.append(tile(len(findings.crossings), "line crossings"))
    if findings.lights:
        shown.append(tile(len(findings.lights), "changes of the light or scene", findings.lights[0]))
    return "".join(shown)


def version():
    plugin = common.Gst.Registry.get().find_plugin("cudavision")
    gstreamer, _, own = plugin.get_version().rpartition("-cudavision-") if plugin else ("", "", "")
    return f"{own} with GStreamer {gstreamer}"


def about(findings, args, video, facts):
    """The facts of the report, as rows of HTML."""
    rows = [("analysed by", f"cudavision {version()}, {findings.backend}, in {duration(findings.seconds)}"),
            ("cudadiff", findings.settings or "all defaults"), ("video", video.how)]
    if facts:
        rows.append(("clip", f"{facts.codec} in {facts.container.partition(',')[0]}"
                     + (f", declared length {duration(facts.duration)}" if facts.duration else "")))
    if began := findings.clock_at(0):
        rows.append(("clock time of the beginning, from the clip", began.isoformat(sep=" ")))
    if args.recording:
        rows.append(("files", f"{len(args.recording)}, {args.recording[0].name} to {args.recording[-1].name}"))
    if findings.remark:
        rows.append(("recording", findings.remark))
    if args.part.words:
        rows.append(("analysed part", args.part.words))
    if args.min_event:
        rows.append(("shortest event", args.min_event.length))
    if findings.recording.keep > 1:
        rows.append(("mask", "in this long clip, not every sample of the mask is kept"))
    return "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in rows)


def heat_of(recorder):
    """How often each cell moved, scaled to 0–255 for the page: width, height and base64."""
    if recorder.heat is None or not recorder.heat.any():
        return None
    scaled = numpy.sqrt(recorder.heat / recorder.heat.max()) * 255
    return [*recorder.heat.shape[::-1], base64.b64encode(scaled.round().astype(numpy.uint8).tobytes()).decode()]


def data_of(findings, args, objects, video, data, chunks):
    """The data for the script of the page. `chunks` is the index of the recording."""
    zones, lines = (shapes_of(text, findings.size) for text in (args.zones, args.lines))
    clocks = [[time, clock.timestamp() * 1000, clock.utcoffset().total_seconds()] for time, clock in findings.clocks]
    return {"start": findings.start, "end": max(findings.end + findings.frame_time, findings.start + 1e-3),
            "size": findings.size, "count": findings.count, "clocks": clocks,
            "video": {"embedded": bool(data), "kind": f"video/{video.suffix}", "begins": video.begins,
                      "name": f"report.{video.suffix}" if video.path or data else ""},
            "frames": findings.columns.lists(),
            "lost": [[span.begin, span.end, span.frames, span.about] for span in findings.lost],
            "holes": [[hole.begin, hole.end, ", ".join(hole.files)] for hole in findings.holes],
            "runs": [[*run, findings.clips.get((run[0], None))] for run in findings.runs], "lights": findings.lights,
            "zones": zones, "lines": lines, "objects": objects, "chunks": chunks, "keep": findings.recording.keep,
            "crossings": [{key: one[key] for key in ("time", "id", "line", "direction")} for one in findings.crossings],
            "heat": heat_of(findings.recording)}


def write(findings, args, title, folder, video, data, facts):
    """Writes report.html. `video` is a page_video.Video, `data` its bytes if it is embedded in the page, `facts` the
    facts of the clip or None."""
    objects, (width, height) = objects_of(findings), findings.size
    texts, (chunks, index) = pictures_of(objects, findings.pictures, folder), findings.recording.base64()
    summary = f"{duration(findings.length)} · {findings.count} frames · {width}×{height}"
    if findings.track:
        summary += f" · {findings.track}"
    if args.recording:
        holes = len(findings.holes)
        summary += f" · {len(args.recording)} files" + (f" · {holes} hole{'s' * (holes != 1)}" if holes else "")
    if began := findings.clock_at(0):
        summary += f" · {began.isoformat(sep=' ', timespec='seconds')}"
    values = json.dumps(data_of(findings, args, objects, video, data, index),
                        separators=(",", ":")).replace("<", "\\u003c")
    incomplete = ('<p class="incomplete" id="incomplete" role="alert"><strong>Incomplete:</strong> '
                  f'{escape(findings.incomplete)}</p>')
    body = fill("report.html", {
        "title": escape(title), "facts": escape(summary), "tiles": tiles(findings, objects), "data": values,
        "pictures": texts,
        "incomplete": incomplete if findings.incomplete else "", "about": about(findings, args, video, facts),
        "chunks": chunks, "poster": data_uri("image/jpeg", findings.poster), "width": str(width), "height": str(height),
        "source": f' src="{os.path.basename(video.path)}"' if video.path else "",
        "video": base64.b64encode(data).decode(), "objects_csv": data_uri("text/csv", tables.objects_csv(findings))})
    script = "\n".join((HERE / name).read_text(encoding="utf-8") for name in SCRIPTS)
    with common.whole(folder / "report.html") as stream:
        stream.write(frame(f"{title} – motion report", body, script).encode())
    forget_pictures(objects, folder)


def card(entry):
    name = escape(entry.title or entry.name)
    if entry.failure:
        return f'<li class="card failed"><h2>{name}</h2><p>{escape(entry.failure)}</p></li>'
    link = escape(urllib.parse.quote(os.fsencode(entry.name)) + "/report.html")
    incomplete = f'<p class="incomplete">Incomplete: {escape(entry.incomplete)}</p>' if entry.incomplete else ""
    return (f'<li class="card"><a href="{link}"><img src="{data_uri("image/jpeg", entry.poster)}" '
            f'alt=""><h2>{name}</h2></a>'
            f'<p>{escape(entry.facts)}</p>{incomplete}</li>')


def write_index(entries, title, folder, clips, others=""):
    """Writes index.html, with a card for each clip. `clips` is the number of clips in the folder, `others` a sentence
    about its other files."""
    failed = sum(bool(entry.failure) for entry in entries)
    facts = f"clips: {len(entries)}" + (f" of {clips}; stopped by Ctrl-C" if len(entries) < clips else "")
    facts += f" · {failed} could not be analysed" if failed else ""
    facts += f" · {others}" if others else ""
    body = fill("index.html", {"title": escape(title), "facts": escape(facts), "cards": "".join(map(card, entries))})
    with common.whole(folder / "index.html") as stream:
        stream.write(frame(f"{title} – motion reports", body).encode())
