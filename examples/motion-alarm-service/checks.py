# SPDX-License-Identifier: LGPL-2.1-or-later
"""Checks the settings of a camera before it is opened: the elements read them and report errors and warnings.

The elements get caps, but no frame. Shapes in whole pixels need the size of the picture. The size of a file and of
`test` is known. For other inputs the check assumes a size that fits the shapes. Shapes outside the real picture are
found when the camera is opened (supervised.Wrong)."""

import re

import clip_facts
import common
import inputs
import uris
from common import Gst

SHAPES = "zones", "lines", "mask-regions", "regions"
LARGEST = 16384  # pixels per side
# settings that would leave nothing to do
NEEDED = {"cudadiff": {"post-messages": False}, "cudahistogram": {"watch": False}}


def text_of(name, value) -> str:
    """NAME=VALUE, in the form that GStreamer reads."""
    return f"{name}={str(value).lower() if isinstance(value, bool) else value}"


def size_of(settings):
    """Width and height of the pictures, or the size that the shapes in whole pixels need."""
    if re.fullmatch(r"test(:\d{1,9})?", settings.uri):
        return 320, 240
    path = uris.path_of(settings.uri)
    if path is not None and not path.startswith("/dev/") and (facts := clip_facts.facts_of(path)):
        return facts.width, facts.height
    numbers = [
        int(each)
        for name in SHAPES
        for values in (settings.cudadiff, settings.cudahistogram)
        for each in re.findall(r"(?<![\d.])\d{1,9}(?![\d.])", str(values.get(name, "")))
    ]
    side = min(max([640, *numbers]), LARGEST)
    return side, side


def check_source(settings):
    """Raises a Failure if the element that reads the input has no such property or value, or if there is no such
    element. Never names a value, because it may be a password."""
    try:
        inputs.options_of(settings.uri)
    except common.Failure as error:
        raise common.Failure(f"uri in [camera.{settings.key}]: {error}") from error
    description, values = inputs.source_of(settings.uri)
    if "uri" in values:
        try:
            source = Gst.Element.make_from_uri(Gst.URIType.SRC, values["uri"], None)
        except common.GLib.Error as error:
            scheme = values["uri"].partition("://")[0]
            raise common.Failure(
                f"uri in [camera.{settings.key}]: no installed plugin reads {scheme}://"
            ) from error
    else:
        source = common.parse(f"{description} ! fakesink").get_by_name("source")
    kind = source.get_factory().get_name()
    for name, value in settings.source.items():
        found = source.find_property(name)
        if not found or name in ("name", "parent"):
            raise common.Failure(f"source in [camera.{settings.key}]: {kind} has no property {name}")
        if not in_range(found, value) or not inputs.set_property(source, text_of(name, value)):
            raise common.Failure(f"source in [camera.{settings.key}]: {name} of {kind} cannot have this value")


def in_range(found, value) -> bool:
    """Whether a number is in the range of a property. GStreamer would silently use another number, such as 4294967291
    for -5."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not hasattr(found, "minimum"):
        return True
    return found.minimum <= value <= found.maximum


def check_element(kind, values, settings) -> list[str]:
    """Raises a Failure if an element of this kind has no such property, or does not accept its value. Returns its
    warnings."""
    place = f"[camera.{settings.key}.{kind}]"
    pipeline = common.parse(
        f"{kind} name=element ! fakesink async=false", element={} if "backend" in values else {"backend": "cpu"}
    )
    element, bus = pipeline.get_by_name("element"), pipeline.get_bus()
    for name, value in values.items():
        if name in ("name", "parent") or not inputs.set_property(element, text_of(name, value)):
            raise common.Failure(f"{place}: {kind} has no such property or value: {text_of(name, value)}")
        if NEEDED[kind].get(name) is value:
            raise common.Failure(f"{place}: {text_of(name, value)} leaves nothing to watch")
    if kind == "cudadiff" and settings.recorded_zones and not element.get_property("track"):
        raise common.Failure(f"{place}: track=false leaves no visits, which recording in [camera.{settings.key}] needs")
    width, height = size_of(settings)
    pad, warnings = element.get_static_pad("sink"), []
    try:
        if pipeline.set_state(Gst.State.PAUSED) != Gst.StateChangeReturn.FAILURE:
            pad.send_event(Gst.Event.new_stream_start(settings.key))
            pad.send_event(
                Gst.Event.new_caps(Gst.Caps(f"video/x-raw,format=I420,width={width},height={height},framerate=25/1"))
            )
        while message := bus.pop_filtered(Gst.MessageType.ERROR | Gst.MessageType.WARNING):
            if message.type == Gst.MessageType.ERROR:
                raise common.Failure(f"{place}: {common.text_of(message)}")
            warnings.append(f"{place}: {message.parse_warning()[0].message}")
    finally:
        pipeline.set_state(Gst.State.NULL)
    return warnings


def check(settings) -> list[str]:
    """Raises a Failure, with one sentence that names the place in the configuration, if a setting of the camera is
    wrong or its file cannot be read. Returns warnings about settings without effect."""
    check_source(settings)
    if settings.recording and settings.uri.startswith("test") and "uri" not in inputs.source_of(settings.uri)[1]:
        raise common.Failure(
            f"recording in [camera.{settings.key}]: the pictures of a test source are not encoded, so they "
            "cannot be recorded"
        )
    tables = {"cudadiff": settings.cudadiff}
    if settings.watch:
        tables["cudahistogram"] = {"watch": True, **settings.cudahistogram}
    return [warning for kind, values in tables.items() for warning in check_element(kind, values, settings)]
