# SPDX-License-Identifier: LGPL-2.1-or-later
"""The video that the page shows: the clip itself if browsers play it, otherwise an encoded one."""
import contextlib
import os
import shutil
from dataclasses import dataclass
from typing import Optional

import clip_facts
import common

import media

SUFFIXES = "mp4", "webm"


@dataclass
class Video:
    """`path` is a file for the page, or None if there is no video. `begins` is the stream time at which it begins.
    `how` describes its origin for readers of the page."""
    path: Optional[str]
    suffix: str
    begins: float
    how: str


def needs_encoding(facts):
    """Whether the clip with these facts (None: no file) must be encoded for browsers. A rotated clip must be encoded
    unless browsers get the file itself, because a new container would not record the rotation."""
    return not facts or not facts.played or (facts.turned and not facts.as_it_is)


def link(path, target):
    """Makes `target` the same file as `path`, or a copy if that is impossible."""
    path = os.path.realpath(path)
    if os.path.exists(target) and os.path.samefile(path, target):
        return
    with common.Unfinished(os.path.dirname(os.path.abspath(target))) as file:
        try:
            os.unlink(file.path)
            os.link(path, file.path)
            os.replace(file.path, target)
            file.path = None
        except OSError:
            with open(file.path, "xb") as copy, open(path, "rb") as original:
                shutil.copyfileobj(original, copy, 2 ** 20)
            file.become(target)


def put_beside(video, unfinished, folder):
    """Puts the video beside the page, as report.mp4 or report.webm."""
    target = folder / f"report.{video.suffix}"
    if target.is_dir():
        raise common.Failure(f"cannot write {target}: it is a folder")
    try:
        if video.path == unfinished.path:
            unfinished.become(target)
        else:
            link(video.path, target)
    except OSError as error:
        raise common.Failure(f"cannot write {target}: {error.strerror}") from error
    video.path = str(target)


def forget(folder, kept, clips):
    """Removes the videos of an earlier run, except `kept` and the clips themselves."""
    for target in (folder / f"report.{suffix}" for suffix in SUFFIXES):
        if str(target) != kept and os.path.realpath(target) not in map(os.path.realpath, clips):
            with contextlib.suppress(OSError):
                target.unlink()


def choose(path, facts, findings, unfinished, suffix):
    """The video of an analysed clip. `unfinished` is the file of the encoder, in the format `suffix`. It is not used if
    the clip need not be encoded."""
    if needs_encoding(facts):
        if not unfinished.stream.seek(0, 2):
            return Video(None, suffix, 0, "there is no video, because its encoder did not finish")
        return Video(unfinished.path, suffix, findings.start,
                     f"encoded for this page, at most {media.LARGEST} pixels a side")
    if facts.as_it_is:
        return Video(path, facts.suffix, 0, "the clip itself")
    try:
        begins = clip_facts.remux(path, facts, unfinished.stream)
    except common.Failure as failure:
        return Video(None, suffix, 0, f"there is no video: {failure}")
    return Video(unfinished.path, facts.suffix, min(begins, findings.start),
                 f"the clip itself, in a container that browsers know ({facts.suffix})")
