# SPDX-License-Identifier: LGPL-2.1-or-later
"""Finds the clips, selects those that this process has to analyse, and stores their results. Nothing here needs Ray.

A result is a file FOLDER/results/KEY.json. It appears complete, as soon as its clip is finished, so a stop at any
moment loses only the clips in progress. The key is made from the clip's path, size and time of modification and from
the settings: a changed clip, or other settings, give another key."""
import base64
import contextlib
import dataclasses
import hashlib
import json
import os
import pathlib
import re
import sys
import tempfile

import clip_files
import common
import tables
import uris

VERSION = 3  # version of the results; with another version, all clips are analysed again
FINISHED = ("ok", "failed", "timeout", "crashed")  # the status of a result


@dataclasses.dataclass(frozen=True)
class Clip:
    name: str  # a path as given, or the displayed form of a URI, see uris.shown()
    uri: str
    key: str


def of_text(text):
    """The bytes of a path or URI; a path may be invalid text."""
    return text.encode("utf-8", "surrogateescape")


def lines_of(file):
    """The paths and URIs in a list, one per line; `-` is stdin."""
    try:
        stream = sys.stdin.buffer if file == "-" else open(file, "rb")
        with stream:
            return [os.fsdecode(line) for line in stream.read().replace(b"\r\n", b"\n").split(b"\n") if line.strip()]
    except OSError as error:
        raise common.Failure(f"cannot read {file}: {error.strerror}") from error


def discover(arguments, lists=(), say=lambda sentence: None):
    """The locations that arguments and lists name: each path and URI once, and folders are searched. A missing argument
    is a Failure. A missing path in a list is a clip that fails, because the other clips are still worth the work. `say`
    gets a sentence about the ignored files of each folder."""
    found = {}
    named = [(line, True) for file in lists for line in lines_of(file)]
    for argument in arguments:
        named += [(line, True) for line in lines_of(argument[1:])] if argument.startswith("@") else [(argument, False)]
    for location, listed in named:
        path = uris.path_of(location)
        if path is not None and os.path.isdir(path):
            videos, others = clip_files.clips_in(path, deep=True)
            found.update((os.path.abspath(video), video) for video in videos)
            if others:
                say(f"{path}: {clip_files.left_out(others)}")
        else:
            if path is not None and not listed and not os.path.lexists(path):
                raise common.Failure(f"cannot read {path}: there is no such file")
            found.setdefault(os.path.abspath(path) if path is not None else location,
                             path if path is not None else location)
    if not found:
        raise common.Failure("the list names no clip")
    return list(found.values())


def settings_of(texts):
    """Properties of cudadiff from texts NAME=VALUE. If a name occurs more than once, the last value counts. Raises a
    ValueError."""
    settings = {"preset": "outdoor"}
    for text in texts:
        name, equals, value = text.partition("=")
        name = name.strip().replace("_", "-")
        if not equals or not re.fullmatch("[a-z][-a-z0-9]*", name):
            raise ValueError(f"{text} is not a setting such as preset=indoor")
        if name in ("name", "parent", "output", "backend", "post-messages", "message-interval"):
            raise ValueError(f"{name} cannot be set, because motion-scan sets it itself")
        settings[name] = value
    return settings


def clip_of(location, settings, chosen=None):
    """`chosen`: the other command-line options that affect a result; empty if all have their defaults, so that such
    results keep their keys."""
    path = uris.path_of(location)
    if path is None:
        name, uri, version = uris.shown(location), uris.opened(location), None
    else:
        path = os.path.abspath(path)
        name, uri = location, pathlib.Path(path).as_uri()
        try:
            status = os.stat(path)
            version = [status.st_size, status.st_mtime_ns]
        except (OSError, ValueError):  # a path with a zero byte raises a ValueError
            version = None
    facts = json.dumps([VERSION, path or location, version, sorted(settings.items()), *([chosen] if chosen else [])])
    return Clip(name, uri, hashlib.sha256(facts.encode()).hexdigest()[:32])


def folder_of(clip):
    """The name of the folder for the clips of events of a clip: the harmless characters of its name, and a part of its
    key."""
    name = os.path.splitext(clip.name.rstrip("/").rpartition("/")[2])[0]
    harmless = re.sub(r"[^\w.-]+", "_", name)[:60].strip("._-") or "clip"
    return f"{harmless}_{clip.key[:8]}"


def clips_of(locations, settings, chosen=None):
    """The clips of all locations. Their names are distinct, because they link the tables."""
    names = uris.names_of(locations)
    return [dataclasses.replace(clip_of(location, settings, chosen), name=names[location]) for location in locations]


def in_shard(location, shard):
    """Whether a location belongs to shard (i, n), 0 ≤ i < n. This depends only on the path, so that shards that start
    at different times agree even if files are added or removed."""
    index, count = shard
    path = uris.path_of(location)
    digest = hashlib.sha256(of_text(os.path.abspath(path) if path is not None else location)).digest()
    return int.from_bytes(digest[:8], "big") % count == index


def shard_of(text):
    """The shard (i, n) from `I/N`."""
    match = re.fullmatch(r"(\d{1,9})/(\d{1,9})", text)
    if not match or int(match[1]) >= int(match[2]):
        raise ValueError(f"{text} is not a shard such as 0/8: I/N with I from 0 to N - 1")
    return int(match[1]), int(match[2])


def events_of(result, kind):
    """The events of a result that are cut out as clips: `visits` of objects, otherwise motions."""
    return (result.get("objects", []) if kind == "visits"
            else [event for event in result.get("events", ()) if event["event"] == "motion"])


def event_of(row):
    """The event that analyse.py cuts out for a motion or a visit: begin, end, and the number of an object."""
    return [row["entered"], row["left"], row["id"]] if "entered" in row else [row["begin"], row["end"], None]


class Results:
    """The results in a folder, the pictures of their events, and clips of them."""

    def __init__(self, folder):
        self.folder, self.pictures, self.cuts = (pathlib.Path(folder) / name
                                                 for name in ("results", "pictures", "clips"))

    def prepare(self, cuts=False):
        """Makes the folders. Raises a Failure if it cannot write into them."""
        for folder in (self.folder, self.pictures, *([self.cuts] if cuts else [])):
            try:
                folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise common.Failure(f"cannot make the folder {folder}: {error.strerror}") from error
            if not os.access(folder, os.W_OK | os.X_OK):
                raise common.Failure(f"cannot write into the folder {folder}: permission denied")

    def file(self, clip):
        return self.folder / f"{clip.key}.json"

    def read(self, clip):
        """The result of a clip, or None if there is no complete one."""
        try:
            result = json.loads(self.file(clip).read_bytes())
        except (OSError, ValueError, RecursionError):
            return None
        return result if tables.is_result(result) and result.get("status") in FINISHED else None

    def write(self, clip, result):
        """Writes the pictures of a result from analyse.py, and the result with their names. Removes pictures of an
        earlier result."""
        for file in self.pictures.glob(f"{clip.key}-*.jpg"):
            file.unlink()
        for number, event in enumerate(result.get("events", ())):
            if event.get("picture"):
                file = self.pictures / f"{clip.key}-{number}.jpg"
                with common.whole(file) as stream:
                    stream.write(base64.b64decode(event["picture"]))
                event["picture"] = f"{self.pictures.name}/{file.name}"
        with common.whole(self.file(clip)) as stream:
            stream.write(json.dumps({"clip": clip.name, "key": clip.key, **result}).encode())

    @contextlib.contextmanager
    def shared(self):
        """A file among the clips, with which machines check whether they share this folder."""
        with tempfile.NamedTemporaryFile(prefix=".motion-scan-", dir=os.path.abspath(self.cuts)) as file:
            yield file.name

    def cut_request(self, clip, options, repeat_failed=False):
        """The request that makes analyse.py cut out the events of a clip with a result; None if there is nothing to do.
        `options`: of (motions, visits or joined), before and after (seconds). With repeat_failed, clips that could not
        be cut out before are retried."""
        result = self.read(clip)
        if not options or not result:
            return None
        events, before = events_of(result, options["of"]), result.get("cut")
        if before and all(before[key] == options[key] for key in options) and not (repeat_failed and before["error"]):
            return None
        if not events and not before:
            return None
        folder = before["folder"] if before else folder_of(clip)
        return {"events": [event_of(row) for row in events], "folder": os.path.abspath(self.cuts / folder),
                "before": options["before"], "after": options["after"], "joined": options["of"] == "joined"}

    def write_cut(self, clip, options, request, cut):
        """Adds the clips of events to the result of a clip: `cut` answers `request`."""
        result = self.read(clip)
        if not result:  # it was removed meanwhile
            return
        for row in result.get("events", []) + result.get("objects", []):
            row.pop("cut", None)
        for row, found in zip(events_of(result, options["of"]), cut.get("rows", ())):
            if found:
                row["cut"] = found
        result["cut"] = {**options, "folder": os.path.basename(request["folder"]), "error": cut["error"],
                         "remark": cut.get("remark", "")}
        with common.whole(self.file(clip)) as stream:
            stream.write(json.dumps(result).encode())

    def missing(self, clips, repeat_failed=False):
        """The clips without a result; with repeat_failed, also clips that failed, crashed or timed out."""
        return [clip for clip in clips
                if not (result := self.read(clip)) or (repeat_failed and result["status"] != "ok")]
