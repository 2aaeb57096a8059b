# SPDX-License-Identifier: LGPL-2.1-or-later
"""The Python programs for cameras share this module: it makes input sources, sets properties that users type, and reads
events of cudadiff."""

import os
import re
import stat

import common
import uris
from common import Gst
from web_pictures import WebPictures

SILENCE = 15  # seconds after which souphttpsrc gives up on a silent server, in addition to the chosen interval


def source_of(name):
    """Returns an element for a pipeline description, and its properties. `name` is a file, a URI, a camera
    (/dev/video0), `test` (a live picture) or `test:FRAMES`. Raises a Failure for a file that cannot be read, or a URI
    with a wrong option."""
    if re.fullmatch(r"test(:\d{1,9})?", name):
        return "videotestsrc name=source pattern=ball", (
            {"num-buffers": int(name[5:])} if name[4:] else {"is-live": True}
        )
    if name.startswith("/dev/") and os.path.exists(name) and stat.S_ISCHR(os.stat(name).st_mode):
        return "v4l2src name=source ! decodebin", {"device": name}
    path = uris.path_of(name)
    options_of(name)
    return f"{common.DECODER} name=source", {"uri": uris.opened(name) if path is None else common.uri_of(path)}


def options_of(name):
    """The options at the end of a URI: `every`, the interval between pictures of a snapshot URL in seconds, or None;
    and `certificate`, whether any certificate of the server is accepted. Raises a Failure if one of them is wrong."""
    options = uris.options_of(name)
    every, certificate = options.get("every"), options.get("certificate", "any")
    if every is not None:
        every = float(every) if re.fullmatch(r"\d{1,5}(\.\d{1,9})?", every) else 0
        if not 0.04 <= every <= 86400:
            raise common.Failure("#every= must be 0.04 to 86400 seconds")
    if certificate != "any":
        raise common.Failure("#certificate= must be any; without it the certificate is checked")
    return every, "certificate" in options


def interval_of(name):
    """The interval in seconds that was chosen for a snapshot URL, or 0."""
    return options_of(name)[0] or 0


def prepare(pipeline, name, live=lambda: None):
    """Prepares a pipeline with the element of source_of() to read this input like a camera. If HTTP delivers live
    pictures instead of a file, `live` is called, possibly in a streaming thread."""
    (every, any_certificate), found = options_of(name), []
    source = pipeline.get_by_name("source")

    def on_source(_, element):
        if any_certificate:
            for key, value in {"tls-validation-flags": 0, "ssl-strict": False}.items():
                if element.find_property(key):
                    element.set_property(key, value)
        if every and element.get_factory().get_name() == "souphttpsrc":
            element.set_property("timeout", int(every) + SILENCE)
        if re.match("https?:", name, re.I) and element.find_property("do-timestamp"):
            found.append(WebPictures(element, every, live))

    def on_element(_, __, element):
        if found and element.get_factory().get_name() == "multipartdemux":
            found[0].on_demuxer(element)

    if source and source.find_property("uri"):
        source.connect("source-setup", on_source)
        pipeline.connect("deep-element-added", on_element)


def set_property(element, text):
    """Sets a property from NAME=VALUE. Returns False if the element has no such property or value."""
    name, _, value = text.partition("=")
    notified = []
    handler = element.connect(f"notify::{name}", lambda *_: notified.append(True))
    Gst.util_set_object_arg(element, name, value)
    element.disconnect(handler)
    return bool(notified)


def seconds_of(time):
    """A time in ns as seconds; None if it is unknown."""
    return None if time == Gst.CLOCK_TIME_NONE else time / Gst.SECOND


def line_of(event):
    """The JSON members for a message of cudadiff. `time` is the stream time in seconds, or None."""
    times = "entered", "left", "since", "best-time", "began", "last-motion"
    keys = ("changed-ratio", "mean-difference", "id", "x", "y", "width", "height", "zone", "line", "direction",
            "seconds", "path-length", "crossed-left", "crossed-right", "best-x", "best-y", "best-width", "best-height")
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
