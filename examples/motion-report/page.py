# SPDX-License-Identifier: LGPL-2.1-or-later
"""Makes report.html and index.html from the templates in this folder. A page needs nothing else: style, script, pictures and data
are parts of it. Texts such as file names are escaped, and the Content-Security-Policy allows only our script and style."""
import base64
import hashlib
import html
import json
import os
import pathlib
import re
import urllib.parse
from dataclasses import dataclass
from typing import Optional

import common

import analysis
import tables

HERE = pathlib.Path(__file__).resolve().parent
COLUMNS = 2000  # places of the time line; if there are more frames, several share one
PLACES = 60000  # places of all objects together that a page has


@dataclass
class Entry:
    """A clip of index.html: its findings, or the sentence that says why there are none."""
    name: str
    findings: Optional[analysis.Findings] = None
    failure: str = ""


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
    """For text and for attributes. Bytes of file names that are no UTF-8 become U+FFFD."""
    return html.escape(str(text).encode(errors="surrogateescape").decode(errors="replace"))


def fill(template, values):
    """Replaces each {{name}} of a template file. Values are not searched for names."""
    text = (HERE / template).read_text(encoding="utf-8")
    return re.sub(r"\{\{(\w+)\}\}", lambda match: values[match[1]], text)


def hash_of(text):
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def frame(title, body, script=""):
    """The whole page around a body."""
    style = (HERE / "page.css").read_text(encoding="utf-8")
    policy = (f"default-src 'none'; img-src data:; media-src 'self' file: blob:; style-src '{hash_of(style)}'; "
              f"script-src '{hash_of(script)}'; base-uri 'none'; form-action 'none'")
    return fill("page.html", {"title": escape(title), "policy": escape(policy), "style": style, "body": body, "script": script})


def columns_of(frames):
    """The frames as lists for the time line: the greatest change, the mean brightness and its widest band of each column."""
    step = max(1, -(-len(frames) // COLUMNS))
    groups = [frames[i:i + step] for i in range(0, len(frames), step)]
    return {"time": [round(group[0].time, 3) for group in groups],
            "changed": [round(max(f.changed for f in group), 3) for group in groups],
            "mean": [round(sum(f.brightness for f in group) / len(group), 1) for group in groups],
            "dark": [round(min(f.dark for f in group), 1) for group in groups],
            "bright": [round(max(f.bright for f in group), 1) for group in groups]}


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


def objects_of(findings):
    """One dictionary for each object that was in the frame or in a zone, in the order in which they came."""
    objects = {}
    for visit in findings.visits:
        objects.setdefault(visit["id"], []).append(visit)
    thin = max(1, sum(map(len, findings.tracks.values())) // PLACES)
    return [{"id": number, "visits": visits, "entered": visits[0]["entered"], "left": max(v["left"] for v in visits),
             "seconds": sum(v["seconds"] for v in visits), "path": sum(v["path_length"] for v in visits),
             "crossings": [one for one in findings.crossings if one["id"] == number],
             "track": [[round(time, 2), *box] for time, *box in findings.tracks.get(number, [])[::thin]]}
            for number, visits in objects.items()]


def tile(value, label, seek=None):
    value = escape(value)
    if seek is not None:
        value = f'<button class="link" data-seek="{seek:.3f}">{value}</button>'
    return f'<div class="tile"><dt>{escape(label)}</dt><dd>{value}</dd></div>'


def tiles(findings, objects):
    frames, runs = findings.frames, findings.runs
    most = max(frames, key=lambda f: f.changed)
    moving = 100 * sum(f.moving for f in frames) / len(frames)
    shown = [tile(len(objects), "objects"),
             tile(f"{moving:.0f} %", f"of the time with motion, in {len(runs)} run{'s' if len(runs) != 1 else ''}"),
             tile(f"{most.changed:.1f} %", f"of the picture at most, at {clock(most.time)}", most.time),
             tile(f"{sum(f.brightness for f in frames) / len(frames):.0f} %", "brightness on average")]
    if findings.crossings:
        shown.append(tile(len(findings.crossings), "line crossings"))
    if findings.lights:
        shown.append(tile(len(findings.lights), "changes of the light or scene", findings.lights[0]))
    return "".join(shown)


def places(item):
    """The zones and lines of an object, as HTML."""
    names = [f'<li><button class="link" data-seek="{v["entered"]:.3f}">{escape(v["zone"])}</button> '
             f'<span class="when">{clock(v["entered"])} – {clock(v["left"])}</span></li>' for v in item["visits"] if "zone" in v]
    names += [f'<li><button class="link" data-seek="{one["time"]:.3f}">{escape(one["line"])}</button> '
              f'<span class="when">crossed to the {escape(one["direction"])} at {clock(one["time"])}</span></li>'
              for one in item["crossings"]]
    return f'<ul class="places">{"".join(names)}</ul>' if names else ""


def row(item, snapshot, with_places):
    number = item["id"]
    picture = f'<img src="{data_uri("image/jpeg", snapshot)}" alt="object {number}">' if snapshot else ""
    entered = clock(item["entered"])
    cells = (f'<td class="shot">{picture}</td><th scope="row">'
             f'<button class="link" data-seek="{item["entered"]:.3f}" aria-label="Object {number}: go to {entered}">'
             f'<span class="swatch" data-object="{number}"></span>{number}</button></th>'
             f'<td data-label="entered">{entered}</td><td data-label="left">{clock(item["left"])}</td>'
             f'<td data-label="seen for">{duration(item["seconds"])}</td><td data-label="path">{item["path"]:.0f} px</td>')
    if with_places:
        cells += f'<td class="wide" data-label="zones and lines">{places(item)}</td>'
    return f'<tr data-object="{number}" data-seek="{item["entered"]:.3f}">{cells}</tr>'


def table(objects, findings, with_places):
    if not objects:
        return f'<p class="none">No object {"was in a zone" if with_places else "was followed"}.</p>'
    heads = ["<td></td>"] + [f'<th scope="col">{name}</th>' for name in ("object", "entered", "left", "seen for", "path")]
    if with_places:
        heads.append('<th scope="col">zones and lines</th>')
    rows = "".join(row(item, findings.snapshots.get(item["id"]), with_places) for item in objects)
    return f'<table><thead><tr>{"".join(heads)}</tr></thead><tbody>{rows}</tbody></table>'


def data_of(findings, args, objects, embedded):
    """What the script of the page needs."""
    frames = findings.frames
    ends = frames[-1].time + (frames[-1].time - frames[0].time) / max(1, len(frames) - 1)
    zones, lines = (shapes_of(text, findings.size) for text in (args.zones, args.lines))
    return {"start": frames[0].time, "end": ends, "size": findings.size, "embedded": embedded, "frames": columns_of(frames),
            "runs": findings.runs, "lights": findings.lights, "zones": zones, "lines": lines,
            "crossings": [{key: one[key] for key in ("time", "id", "line", "direction")} for one in findings.crossings],
            "objects": [{key: item[key] for key in ("id", "entered", "left", "track")} for item in objects]}


def write(findings, args, title, folder, video):
    """Writes report.html. `video` is the WebM file that becomes a part of it, or None if it lies beside the page."""
    objects, (width, height) = objects_of(findings), findings.size
    with_places = bool(args.zones or args.lines)
    facts = (f"{duration(findings.frames[-1].time - findings.frames[0].time)} · {len(findings.frames)} frames · {width}×{height} · "
             f"analysed in {duration(findings.seconds)} ({findings.backend})")
    data = json.dumps(data_of(findings, args, objects, video is not None), separators=(",", ":")).replace("<", "\\u003c")
    body = fill("report.html", {
        "title": escape(title), "facts": escape(facts), "tiles": tiles(findings, objects), "data": data,
        "poster": data_uri("image/jpeg", findings.poster), "width": str(width), "height": str(height),
        "source": "" if video else ' src="report.webm"', "video": base64.b64encode(video).decode() if video else "",
        "table": table(objects, findings, with_places), "objects_csv": data_uri("text/csv", tables.objects_csv(findings).encode())})
    with common.whole(folder / "report.html") as stream:
        stream.write(frame(f"{title} – motion report", body, (HERE / "report.js").read_text(encoding="utf-8")).encode())


def card(entry):
    name = escape(entry.name)
    if not entry.findings:
        return f'<li class="card failed"><h2>{name}</h2><p>{escape(entry.failure)}</p></li>'
    frames = entry.findings.frames
    link = escape(urllib.parse.quote(os.fsencode(entry.name)) + "/report.html")
    moving = 100 * sum(f.moving for f in frames) / len(frames)
    facts = f"{duration(frames[-1].time - frames[0].time)} · objects: {len(objects_of(entry.findings))} · motion: {moving:.0f} %"
    poster = data_uri("image/jpeg", entry.findings.poster)
    return f'<li class="card"><a href="{link}"><img src="{poster}" alt=""><h2>{name}</h2></a><p>{facts}</p></li>'


def write_index(entries, title, folder):
    """Writes index.html, with a card for each clip."""
    failed = sum(not entry.findings for entry in entries)
    facts = f"clips: {len(entries)}" + (f" · {failed} could not be analysed" if failed else "")
    body = fill("index.html", {"title": escape(title), "facts": escape(facts), "cards": "".join(map(card, entries))})
    with common.whole(folder / "index.html") as stream:
        stream.write(frame(f"{title} – motion reports", body).encode())
