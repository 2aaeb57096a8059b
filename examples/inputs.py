# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the Python programs for cameras share: sources of inputs, properties that users type, and the events
of cudadiff."""

import os
import re
import stat

import common
import uris
from common import Gst


def source_of(name):
    """Returns an element for a pipeline's description, and its properties. `name` is a file, a URI, a camera
    (/dev/video0), `test` (a live picture) or `test:FRAMES`. Raises a Failure if it is a file that cannot be read."""
    if re.fullmatch(r"test(:\d{1,9})?", name):
        return "videotestsrc name=source pattern=ball", (
            {"num-buffers": int(name[5:])} if name[4:] else {"is-live": True}
        )
    if name.startswith("/dev/") and os.path.exists(name) and stat.S_ISCHR(os.stat(name).st_mode):
        return "v4l2src name=source ! decodebin", {"device": name}
    path = uris.path_of(name)
    return f"{common.DECODER} name=source", {"uri": uris.opened(name) if path is None else common.uri_of(path)}


def set_property(element, text):
    """Sets a property from NAME=VALUE. Returns False if the element has no such property or value."""
    name, _, value = text.partition("=")
    notified = []
    handler = element.connect(f"notify::{name}", lambda *_: notified.append(True))
    Gst.util_set_object_arg(element, name, value)
    element.disconnect(handler)
    return bool(notified)


def seconds_of(time):
    """A time in ns as seconds. None if it is not known."""
    return None if time == Gst.CLOCK_TIME_NONE else time / Gst.SECOND


def line_of(event):
    """The members that a message of cudadiff about motion or an object has in JSON. `time` is the stream time in
    seconds, or None."""
    times = "entered", "left", "since", "best-time", "began", "last-motion"
    keys = (
        "changed-ratio",
        "mean-difference",
        "id",
        "x",
        "y",
        "width",
        "height",
        "zone",
        "line",
        "direction",
        "seconds",
        "path-length",
        "crossed-left",
        "crossed-right",
        "best-x",
        "best-y",
        "best-width",
        "best-height",
    )
    line = {
        "event": event.get_value("event"),
        "time": seconds_of(event.get_value("stream-time")),
        **{key.replace("-", "_"): event.get_value(key) for key in keys if event.has_field(key)},
        **{key.replace("-", "_"): seconds_of(event.get_value(key)) for key in times if event.has_field(key)},
    }
    if event.has_field("zones"):
        zones = event.get_array("zones")[1]
        line["zones"] = [zones.get_nth(i) for i in range(zones.n_values)]
    if event.has_field("regions"):
        array = event.get_array("regions")[1]
        line["regions"] = [
            {key: region.get_value(key) for key in ("x", "y", "width", "height", "area", "score")}
            for region in map(array.get_nth, range(array.n_values))
        ]
    return line
