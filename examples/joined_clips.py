# SPDX-License-Identifier: LGPL-2.1-or-later
"""Joins the clips of events of a file into one file, without encoding. The file shows only the motions."""
import os

import clip_facts
import clip_formats
import clips_of_events
import common
from clip_streams import write
from clips_over_files import Part, Readers


class NotJoined(common.Failure):
    """The clips exist, but the joined file does not."""


def differs(first, other):
    """Why two parts cannot be in one file, or an empty text. Their sound is ignored."""
    one, two = first.facts, other.facts
    if one.codec != two.codec:
        return f"{two.codec} instead of {one.codec}"
    if (one.width, one.height) != (two.width, two.height):
        return f"{two.width}×{two.height} instead of {one.width}×{one.height}"
    return "" if one.setup == two.setup else "its decoder settings differ"


def parts_of(rows, folder):
    """The clips of the rows, one after the other. Raises a Failure if they cannot be joined."""
    parts = []
    for row in sorted(rows, key=lambda each: each["begin_s"]):
        path, begin = os.path.join(folder, row["file"]), parts[-1].end if parts else 0
        facts = clip_facts.facts_of(path)
        if not clip_formats.can_cut(facts):
            raise common.Failure(f"{row['file']}: {clip_formats.why_not(facts)}")
        if facts.codec in clip_facts.OLD:
            raise common.Failure(f"{facts.codec} cannot be joined without encoding")
        parts.append(Part(path, facts, begin, begin + row["end_s"] - row["begin_s"]))
        if difference := differs(parts[0], parts[-1]):
            raise common.Failure(f"{row['file']} differs from {os.path.basename(parts[0].path)}: {difference}")
    return parts


def join(rows, folder, until=None):
    """Writes the clips of rows of the lists into one file in the folder, in chronological order. Returns its name, or
    None without clips, and a sentence about missing sound, or an empty text. `until`: the value of time.monotonic() at
    which it gives up, or None. Raises NotJoined."""
    try:
        parts = parts_of(rows, folder)
        if not parts:
            return None, ""
        silent = any(part.setup != parts[0].setup for part in parts)
        with Readers(parts, None, until, silent) as reader, common.Unfinished(folder) as file:
            facts = parts[0].facts
            name = f"{clips_of_events.ALL}.{clip_formats.made(facts)[2]}"
            write(reader.samples(0, int(parts[-1].end * common.Gst.SECOND)), facts, file.stream)
            file.become(os.path.join(folder, name))
    except common.Failure as failure:
        raise NotJoined(f"the motions were not joined: {failure}") from failure
    except OSError as error:
        raise NotJoined(f"the motions were not joined: cannot write to {folder}: {error.strerror}") from error
    return name, f"{name} has no sound, because the motions differ in their sound" if silent else ""
