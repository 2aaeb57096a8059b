#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Checks the tables in docs/ against the plugin:  docs_test.py DOCS_FOLDER

Compares properties (names, types, defaults, ranges, choices), messages of wrong settings, and formats. GStreamer must
find the plugin (GST_PLUGIN_PATH_1_0). Exit status: 0; 1 with a line for each difference; 77 without the Python bindings
of GStreamer.
"""
import re
import sys
from pathlib import Path

try:
    import gi

    gi.require_version("Gst", "1.0")
    gi.require_version("GstVideo", "1.0")
    from gi.repository import GObject, Gst, GstVideo
except (ImportError, ValueError) as error:
    print(f"skipped: no Python bindings of GStreamer ({error})")
    sys.exit(77)

TYPES = {"gboolean": "bool", "guint": "uint", "guint64": "uint64", "gint": "int", "gdouble": "double",
         "gchararray": "string", "GstValueArray": "GstValueArray"}
differences = []


def differ(page, text):
    differences.append(f"{page.name}: {text}")


def tables(page):
    """The tables of a page, each as the cells of its header and a list of rows of cells."""
    found, rows = [], []
    for line in page.read_text(encoding="utf-8").splitlines() + [""]:
        if line.startswith("|"):
            rows.append([cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]])
        elif rows:
            found.append((rows[0], rows[2:]))
            rows = []
    return found


def number(text):
    return float(text.replace("−", "-"))


def value_of(spec, text):
    """Converts the text of a default on a page to a number or a string."""
    text = text.strip("` ")
    if spec.value_type == GObject.TYPE_BOOLEAN:
        return {"true": True, "false": False}.get(text)
    if spec.value_type in (GObject.TYPE_STRING,) or spec.value_type.is_a(GObject.TYPE_ENUM):
        return text
    try:
        return int(text, 0)
    except ValueError:
        return number(text)


def nick_of(spec, number):
    return Gst.value_serialize(GObject.Value(spec.value_type, number))


def choices(spec):
    """The nicks of an enum. PyGObject's enum classes changed with version 3.52."""
    numbers = getattr(spec.enum_class, "__enum_values__", None)
    if numbers is None:
        numbers = range(spec.enum_class.minimum, spec.enum_class.maximum + 1)
    return [nick_of(spec, number) for number in numbers]


def default_of(spec):
    if spec.value_type.is_a(GObject.TYPE_ENUM):
        return nick_of(spec, int(spec.default_value))
    return spec.default_value


def check_property(page, spec, type_and_default, meaning):
    kind, _, default = type_and_default.partition(",")
    expected = ("enum" if spec.value_type.is_a(GObject.TYPE_ENUM)
                else TYPES.get(spec.value_type.name, spec.value_type.name))
    if kind.split()[0] != expected:
        differ(page, f"{spec.name} is a {expected}, not a {kind}")
    default = default.strip()
    if default and default != "read-only":
        if value_of(spec, default) != default_of(spec):
            differ(page, f"the default of {spec.name} is {default_of(spec)}, not {default}")
    elif not spec.flags & GObject.ParamFlags.WRITABLE and default != "read-only":
        differ(page, f"{spec.name} is read-only")
    if spec.value_type.is_a(GObject.TYPE_ENUM):
        names = " ".join([type_and_default, meaning] + [row[0] for _, rows in tables(page) for row in rows])
        for nick in choices(spec):
            if not re.search(rf"(?<![\w-]){nick}(?![\w-])", names):
                differ(page, f"{spec.name} has the choice {nick}, which the page does not name")
    limits = re.search(r"(?<![\w.])([−-]?[\d.]+(?:e\d+)?) to ([\d.]+(?:e\d+)?)(?![\w.])", meaning)
    if limits and hasattr(spec, "minimum"):
        least, most = map(number, limits.groups())
        if spec.maximum != most or spec.minimum > least:
            differ(page, f"{spec.name} is {spec.minimum} to {spec.maximum}, not {limits.group(0)}")


def documented(page):
    """The rows of a page's property tables: name → (type and default, meaning)."""
    found = {}
    for header, rows in tables(page):
        if header[0] != "property":
            continue
        for names, kind, meaning in rows:
            for name in names.split(", "):
                found.setdefault(name.strip("` "), []).append((kind, meaning))
    return found


def check_properties(page, gtypes, common):
    rows = documented(page)
    known = {}
    for gtype in gtypes:
        known.update({spec.name: spec for spec in GObject.list_properties(gtype)})
    ours = {name for name, spec in known.items() if "Cuda" in spec.owner_type.name}
    for name, entries in rows.items():
        if name not in known:
            differ(page, f"{name} is no property of the element")
            continue
        for kind, meaning in entries:
            if kind:
                check_property(page, known[name], kind, meaning)
    for name in sorted(ours - set(rows) - common):
        differ(page, f"{name} is missing")


def message_of(element, settings):
    """The texts of the errors and warnings that a short pipeline posts."""
    texts = []
    try:
        pipeline = Gst.parse_launch("videotestsrc num-buffers=2 ! video/x-raw,format=NV12,width=640,height=480 ! "
                                    f"{element} {settings} ! fakesink")
    except Exception as error:  # GLib's error text
        return [str(error)]
    bus = pipeline.get_bus()
    pipeline.set_state(Gst.State.PLAYING)
    wanted = Gst.MessageType.ERROR | Gst.MessageType.WARNING | Gst.MessageType.EOS
    while True:
        message = bus.timed_pop_filtered(600 * Gst.SECOND, wanted)
        if message is None or message.type == Gst.MessageType.EOS:
            break
        error, _ = message.parse_error() if message.type == Gst.MessageType.ERROR else message.parse_warning()
        texts.append(error.message)
        if message.type == Gst.MessageType.ERROR:
            break
    pipeline.set_state(Gst.State.NULL)
    return texts


def check_messages(page, element):
    for header, rows in tables(page):
        if header[:2] != ["setting", "message"]:
            continue
        for setting, message in rows:
            settings = re.fullmatch(r"`([^`!]*)`(?: \(a warning\))?", setting)
            if not settings or "…" in message:
                continue
            texts = message_of(element, settings.group(1).replace("\\|", "|"))
            if not any(message.replace("`", "") in text for text in texts):
                differ(page, f"{settings.group(1)}: says {texts}, not {message}")


def check_formats(page):
    template = Gst.ElementFactory.make("cudagaussian").get_static_pad("sink").get_pad_template_caps()
    known = {name.strip() for names in re.findall(r"format=\(string\)\{([^}]*)\}", template.to_string())
             for name in names.split(",")}
    listed = set()
    for cell in (row[0] for header, rows in tables(page) if header[0] == "format" for row in rows):
        names = {name.strip() for name in re.sub(r"\(.*\)|\*", "", cell).split(",")}
        if "(GStreamer " in cell:  # a version that may be newer than the installed one
            names = {name for name in names if GstVideo.VideoFormat.from_string(name) != GstVideo.VideoFormat.UNKNOWN}
        listed |= names
    for name in sorted(known ^ listed):
        differ(page, f"{name} is {'missing' if name in known else 'not a format of the plugin'}")


def main():
    docs = Path(sys.argv[1])
    Gst.init(None)
    common = set(documented(docs / "elements" / "common.md"))
    plugin = Gst.Registry.get().find_plugin("cudavision")
    if plugin is None:
        sys.exit("GStreamer does not find the plugin: set GST_PLUGIN_PATH_1_0")
    elements = sorted(feature.get_name() for feature in Gst.Registry.get().get_feature_list_by_plugin("cudavision"))
    for name in elements:
        element = Gst.ElementFactory.make(name)
        page = docs / "elements" / f"{name}.md"
        if not page.exists():
            differ(page, "there is no such page")
            continue
        gtypes = [type(element).__gtype__]
        if element.get_pad_template("sink_%u"):
            gtypes.append(type(element.request_pad_simple("sink_%u")).__gtype__)
        check_properties(page, gtypes, common)
        check_messages(page, name)
    check_formats(docs / "formats.md")
    print("\n".join(differences) or f"{len(elements)} pages agree with the plugin")
    return bool(differences)


if __name__ == "__main__":
    sys.exit(main())
