# SPDX-License-Identifier: LGPL-2.1-or-later
"""Burns the time into the pictures of a clip of an event: the clock time if the whole clip has one, otherwise its
stream time. The pictures are encoded again; the sound is not."""
import datetime
import os

import clip_facts
import clip_formats
import common
from common import GLib, Gst

import media

CLOCK, STREAM = "%Y-%m-%d %H:%M:%S", "%H:%M:%S"


def epoch_of(clock, begin):
    """The time to show at the beginning of a clip, and the format of this time. The clip begins at `begin` seconds, at
    the clock time `clock` or None."""
    when = clock or datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc) + datetime.timedelta(seconds=begin)
    zone = GLib.TimeZone.new_offset(round(when.utcoffset().total_seconds()))
    return (GLib.DateTime.new(zone, when.year, when.month, when.day, when.hour, when.minute,
                              when.second + when.microsecond / 1e6), CLOCK if clock else STREAM)


def burn(row, folder, clock):
    """Burns the time into the clip of a row of the lists. `clock` is the clock time of its beginning, or None. The row
    gets the name of the new file, which replaces the old one. Raises a Failure."""
    encode, parser, muxer, suffix = media.clip_encoder()
    path = os.path.join(folder, row["file"])
    facts = clip_facts.facts_of(path)
    if not facts:
        raise common.Failure(f"cannot read {path}")
    if not all(clip_formats.held(muxer, caps) for caps in facts.sounds):
        muxer, suffix = clip_formats.MATROSKA, "mkv"
    sounds = " ".join(f"queue name=sound{number} max-size-time=0 max-size-bytes=0 max-size-buffers=0 ! "
                      f"{clip_formats.parser_of(caps)} ! file.audio_{number}"
                      for number, caps in enumerate(facts.sounds))
    epoch, form = epoch_of(clock, row["begin_s"])
    with common.Unfinished(folder) as file:
        pipeline = common.parse(
            "uridecodebin name=clip expose-all-streams=false queue name=video ! videoconvert ! "
            "timeoverlay name=time time-mode=running-time show-times-as-dates=true halignment=left valignment=top "
            "shaded-background=true ! "
            f"videoconvert ! {encode} ! {parser} ! queue ! file.video_0 {sounds} {muxer} name=file ! filesink name=out",
            clip={"uri": common.uri_of(path), "caps": Gst.Caps.from_string(
                ";".join(["video/x-raw(ANY)", *map(clip_formats.plain, facts.sounds)]))},
            time={"datetime-epoch": epoch, "datetime-format": form},
            out={"location": common.location_of(file.stream)})

        def on_pad(_, pad):
            name, = common.fields_of(pad.get_current_caps() or pad.query_caps(None), "name")
            kinds = ["video"] if name == "video/x-raw" else [f"sound{number}" for number in range(len(facts.sounds))]
            ends = (pipeline.get_by_name(kind).get_static_pad("sink") for kind in kinds)
            if free := next((each for each in ends if not each.is_linked()), None):
                pad.link(free)

        media.end_quietly(pipeline.get_by_name("encoder"))
        pipeline.get_by_name("clip").connect("pad-added", on_pad)
        if common.play(pipeline):
            raise KeyboardInterrupt
        name = f"{os.path.splitext(row['file'])[0]}.{suffix}"
        file.become(os.path.join(folder, name))
    if name != row["file"]:
        os.unlink(path)
    row["file"] = name
