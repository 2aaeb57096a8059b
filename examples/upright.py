# SPDX-License-Identifier: LGPL-2.1-or-later
"""Rotates clips as players do: phones record pictures that lie on their side, and a tag (image-orientation) says how to
rotate them. All programs use the picture that players show, so that a zone is at the same place everywhere."""
from common import Gst

import gi
gi.require_version("GstVideo", "1.0")
from gi.repository import GstVideo  # noqa: E402

NAME = "upright"


def direction_of(tags):
    """How players rotate frames with these tags: a GstVideo.VideoOrientationMethod, or None if they do not."""
    if not tags.get_string(Gst.TAG_IMAGE_ORIENTATION)[0]:
        return None
    known, direction = GstVideo.video_orientation_from_tag(tags)
    return direction if known and direction != GstVideo.VideoOrientationMethod.IDENTITY else None


def told(pad):
    """The direction in the tags that a pad received, or None."""
    number = 0
    while event := pad.get_sticky_event(Gst.EventType.TAG, number):
        if (direction := direction_of(event.parse_tag())) is not None:
            return direction
        number += 1
    return None


def source_of(pad):
    """The element that sends frames to a sink pad, through elements with one input."""
    element = pad.get_peer().get_parent_element() if pad.get_peer() else None
    inner = element.get_static_pad("sink") if element and not isinstance(element, Gst.Bin) else None
    return source_of(inner) if inner else element


def direction_before(pad):
    """The direction in the tags of any pad of the source before a sink pad, or None. A decoder passes the tags on only
    after its caps, but zones in pixels need the caps of the rotated picture."""
    source, found = source_of(pad), []
    if isinstance(source, Gst.Bin):
        source.iterate_recurse().foreach(lambda each: found.extend(map(told, each.pads)))
    return next((direction for direction in found if direction is not None), None)


def keep(pad):
    """Gives a sink pad the frames as players show them: inserts a videoflip if a tag says that players rotate them.
    Without a tag there is no videoflip, because it would copy frames, and download them from a GPU."""
    done = []

    def on_event(pad, info):
        event = info.get_event()
        if done or event.type not in (Gst.EventType.TAG, Gst.EventType.CAPS):
            return Gst.PadProbeReturn.OK
        direction = direction_of(event.parse_tag()) if event.type == Gst.EventType.TAG else direction_before(pad)
        if direction is None:
            return Gst.PadProbeReturn.OK
        done.append(True)
        # No frame is on its way yet, because caps and tags precede frames in their thread. The new elements get all
        # events that the source has sent, except this one.
        source, pipeline = pad.get_peer(), pad.get_parent_element().get_parent()
        flip = Gst.parse_bin_from_description(f"videoconvert ! videoflip video-direction={direction.value_nick}", True)
        flip.set_name(NAME)
        pipeline.add(flip)
        source.unlink(pad)
        flip.get_static_pad("src").link(pad)
        flip.sync_state_with_parent()
        source.link(flip.get_static_pad("sink"))
        if event.type == Gst.EventType.CAPS:
            for each in source.get_sticky_event(Gst.EventType.STREAM_START, 0), event:
                if each:  # a source that is being stopped no longer has events
                    flip.get_static_pad("sink").send_event(each)
        return Gst.PadProbeReturn.DROP

    pad.add_probe(Gst.PadProbeType.EVENT_DOWNSTREAM, on_event)
