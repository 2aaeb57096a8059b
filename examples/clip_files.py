# SPDX-License-Identifier: LGPL-2.1-or-later
"""Finds the clips in a folder. A clip is a file that GStreamer recognises as video by its content, whatever its name. A
file with the name of a video also counts as a clip, because broken clips must be reported."""
import os
import pathlib

import common
from common import Gst

import gi
gi.require_version("GstBase", "1.0")
from gi.repository import GstBase  # noqa: E402

NAMES = set(".264 .265 .3g2 .3gp .asf .avi .dav .divx .dv .f4v .flv .h264 .h265 .hevc .ivf .m2ts .m2v .m4v .mjpeg "
            ".mjpg .mkv .mov .mp4 .mpeg .mpg .mts .mxf .ogg .ogv .ts .vob .webm .wmv .y4m".split())
PROGRAMS = (".mts", ".ts")  # files with these names may be TypeScript
PICTURES = (".jpeg", ".jpg", ".png")
MAGIC = (b"\xff\xd8", b"\x89PNG")  # the first bytes of JPEG and PNG
HEAD = 2 ** 16  # bytes of a file that identify its type
LISTED = 5  # maximum number of ignored files that a sentence names


def head_of(path):
    try:
        with open(path, "rb") as stream:
            return stream.read(HEAD) if os.path.isfile(path) else b""
    except OSError:
        return b""


def is_text(head):
    try:
        return bool(head) and b"\0" not in head and bool(head.decode("utf-8", "strict"))
    except UnicodeDecodeError as error:
        return error.start > len(head) - 4  # the last character is incomplete


def looks_like_video(head):
    Gst.init(None)
    caps, sure = GstBase.type_find_helper_for_data(None, head) if head else (None, 0)
    return bool(caps) and int(sure) >= Gst.TypeFindProbability.LIKELY and common.fields_of(
        caps, "name")[0].startswith("video/")


def is_clip(path):
    suffix = os.path.splitext(path)[1].lower()
    if suffix in NAMES and suffix not in PROGRAMS:
        return True
    head = head_of(path)
    return looks_like_video(head) or (suffix in PROGRAMS and not is_text(head))


def clips_in(folder, deep=False):
    """The paths of the clips in a folder, and of the ignored files, in order. With `deep`, subfolders are also
    searched. Hidden files and folders are skipped. Raises a Failure if there is no clip."""
    def fail(error):
        raise common.Failure(f"cannot read {error.filename}: {error.strerror}")

    found, others, inner = [], [], []
    for path, folders, files in os.walk(folder, onerror=fail):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        if not deep:
            inner, folders[:] = folders[:], []
        for name in files:
            if not name.startswith("."):
                file = os.path.join(path, name)
                (found if is_clip(file) else others).append(file)
    found.sort(key=os.fsencode)
    others.sort(key=os.fsencode)
    if not found:
        pictures = [path for path in others if path.lower().endswith(PICTURES)]
        raise common.Failure("; ".join(filter(None, (
            f"there is no video in the folder {folder}", left_out(others),
            pictures and f"its pictures are a clip with the name '{clip_of(pictures[0])}' and --rate=1",
            inner and f"its subfolders are not searched: name them, such as {os.path.join(folder, inner[0])}"))))
    return found, others


def clip_of(picture):
    """The URI that plays all files with the extension of a picture in its folder as one stream, in the order of their
    names."""
    path = pathlib.Path(picture).absolute()
    return f"split{path.parent.as_uri()}/*{path.suffix}"


def pictures_in(folder):
    """The URI that plays the pictures in a folder; None if it has other files, or pictures with different
    extensions."""
    names = os.listdir(folder)
    endings = {os.path.splitext(name)[1] for name in names if not name.startswith(".")}
    ending = endings.pop() if len(endings) == 1 else ""
    if ending.lower() not in PICTURES or any(name.startswith(".") and name.endswith(ending) for name in names):
        return None
    return clip_of(os.path.join(folder, f"1{ending}"))


def count_pictures(folder):
    """The number of pictures in a folder that contains nothing else. Raises a Failure if the first one cannot be read,
    because GStreamer finds the format of all pictures in its bytes."""
    paths = sorted((os.path.join(folder, name) for name in os.listdir(folder) if not name.startswith(".")),
                   key=os.fsencode)
    first = next(filter(os.path.getsize, paths), paths[0])
    if not head_of(first).startswith(MAGIC):
        raise common.Failure(f"the first picture of the folder, {first}, is neither JPEG nor PNG: move it elsewhere")
    return len(paths)


def left_out(others):
    """A sentence about files that are not clips, or an empty text."""
    if not others:
        return ""
    names = ", ".join(map(os.path.basename, others[:LISTED]))
    more = f" and {len(others) - LISTED} more" if len(others) > LISTED else ""
    count = "1 file that is not a video" if len(others) == 1 else f"{len(others)} files that are not videos"
    return f"skipped: {count} ({names}{more})"
