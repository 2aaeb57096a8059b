# SPDX-License-Identifier: LGPL-2.1-or-later
"""The Python examples share this module. File names never become part of a pipeline description: inputs are URIs, and
outputs are files that are already open. Exit status: 0; 1 after a failure, with one sentence on stderr; 2 for wrong
usage (argparse)."""
import argparse
import contextlib
import errno
import fcntl
import os
import pathlib
import re
import signal
import sys
import tempfile
import threading
import time

import containers
import uris

DEBIAN = "/usr/bin/python3"  # has Debian's python3-gi, unlike the python3 of pyenv, conda or a virtual environment
try:
    import gi
except ModuleNotFoundError as error:
    program = pathlib.Path(sys.argv[0]).resolve()
    if error.name != "gi" or pathlib.Path(__file__).resolve().parent not in program.parents:
        raise
    if sys.executable != DEBIAN and os.path.exists(DEBIAN):
        os.execv(DEBIAN, [DEBIAN, *sys.orig_argv[1:]])
    sys.exit(f"{program.name}: this Python ({sys.executable}) has no module gi: "
             f"apt-get install python3-gi python3-gst-1.0, and start it with {DEBIAN}")

gi.require_version("Gst", "1.0")
PACKAGE = pathlib.Path(__file__).resolve().parent.parent / "gst" / "python"
if PACKAGE.is_dir():  # in the source tree the package cudavision need not be installed; elsewhere it must be
    sys.path.insert(0, str(PACKAGE))
from gi.repository import GLib, Gst  # noqa: E402

import troubles  # noqa: E402

# Events of cudadiff about the light or the camera. They are posted in addition to the message of their frame.
CAMERA_EVENTS = ("light", "scene", "moves", "moved")
# What begins, ends or changes: all events of cudadiff except those that describe a single frame.
CHANGES = ("begin", "end", "enter", "leave", "cross", "stopped", "moving", "removed", *CAMERA_EVENTS)
# Sound is not decoded, and a file without video is an error.
DECODER = "uridecodebin caps=video/x-raw(ANY) expose-all-streams=false"
HIDDEN = ".cudavision-"  # start of the names of unfinished files
MASK = os.umask(0)  # the umask; os.umask() can only read it by setting it, which would disturb later threads
os.umask(MASK)


class Failure(Exception):
    """A sentence for the user."""


class Parser(argparse.ArgumentParser):
    def error(self, message):
        self.exit(2, f"{self.prog}: {message}; see --help\n")

    def check_matroska(self, name):
        """Ends the program if the name of a Matroska file promises another format."""
        if pathlib.Path(name).suffix.lower() in ".avi .jpeg .jpg .m4v .mov .mp4 .png .ts .webm".split():
            self.error(f"{name} would be Matroska: choose a name that ends in .mkv")


def number(kind, least, most=1e9, above=False):
    """A type for argparse: an int or a float from `least`, or `above` it, to `most`."""
    limit = f"above {least}" if above else f"of {least} or more" if most == 1e9 else f"of {least} to {most}"

    def convert(text):
        try:
            value = kind(text)
        except ValueError:
            value = None
        if value is None or not least <= value <= most or (above and value == least):
            raise argparse.ArgumentTypeError(f"{text} is not a {'whole number' if kind is int else 'number'} {limit}")
        return value
    return convert


def main(function):
    """Runs `function` and exits. SIGTERM ends it like an exception, so that temporary files are removed."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    sys.stdout.reconfigure(errors="backslashreplace")  # file names may be invalid text
    try:
        function()
        sys.stdout.flush()
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
    except (Failure, OSError) as error:
        if isinstance(error, OSError):  # otherwise Python would try to write the rest of stdout again
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        named = f"{error.filename}: " if getattr(error, "filename", None) else ""
        sys.exit(f"{pathlib.Path(sys.argv[0]).name}: {named}{getattr(error, 'strerror', None) or error}")


def fault_of(file):
    """A sentence about a file that cannot be read; otherwise an empty text."""
    if os.path.isdir(file):
        return "it is a folder"
    if not os.path.exists(file):
        return "there is no such file"
    if not os.access(file, os.R_OK):
        return "permission denied"
    if not os.path.isfile(file):
        return ""
    return "it is empty" if os.path.getsize(file) == 0 else containers.fault_of(file)


def uri_of(file):
    """Returns the URI of a file. Raises a Failure if it cannot be read."""
    if fault := fault_of(file):
        raise Failure(f"cannot read {file}: {fault}")
    return pathlib.Path(file).absolute().as_uri()


def sweep(folder):
    """Removes the unfinished files that killed programs left in a folder. A running program holds the locks of its
    files."""
    with contextlib.suppress(OSError):
        for entry in os.scandir(folder):
            if not entry.name.startswith(HIDDEN):
                continue
            with contextlib.suppress(OSError):  # it is locked, or belongs to somebody else
                descriptor = os.open(entry.path, os.O_RDWR | os.O_NOFOLLOW)
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    os.unlink(entry.path)
                finally:
                    os.close(descriptor)


class Unfinished:
    """A hidden file in a folder, for a `with` block. `stream` is open for writing and reading, and become() gives the
    file its name. Otherwise it is removed at the end of the block. If the program is killed earlier, the next program
    that writes into the folder removes it. Raises OSError."""

    swept = set()  # each folder once, because it may contain many files

    def __init__(self, folder):
        if folder not in self.swept:
            self.swept.add(folder)
            sweep(folder)
        while True:
            descriptor, self.path = tempfile.mkstemp(prefix=HIDDEN, dir=folder)
            with contextlib.suppress(OSError):  # without locks, which some file systems lack, nothing is swept
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            if os.fstat(descriptor).st_nlink:
                break
            os.close(descriptor)  # another program swept it before it was locked
        self.stream, self.lock = os.fdopen(descriptor, "w+b"), os.dup(descriptor)

    def become(self, file):
        """Closes the file and gives it this name, replacing an existing file."""
        self.stream.close()
        os.chmod(self.path, 0o666 & ~MASK)
        os.replace(self.path, os.path.realpath(file))
        self.path = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(OSError):  # output that is not written yet is no longer needed
            self.stream.close()
        if self.path:
            os.unlink(self.path)
        os.close(self.lock)


@contextlib.contextmanager
def whole(file):
    """An open binary file that becomes `file` at the end of the block. After an exception it is removed."""
    if os.path.isdir(file):
        raise Failure(f"cannot write {file}: it is a folder")
    try:
        if os.path.exists(file) and not os.path.isfile(file):  # a device or a pipe
            with open(file, "wb") as stream:
                yield stream
        else:
            with Unfinished(os.path.dirname(os.path.realpath(file))) as unfinished:
                yield unfinished.stream
                unfinished.become(file)
    except OSError as error:
        raise Failure(f"cannot write {file}: {error.strerror}") from error


def harmless(cell):
    """A cell that no spreadsheet treats as a formula. If a text begins like a formula and is not a number, it gets a
    leading ', which marks texts in spreadsheets (https://owasp.org/www-community/attacks/CSV_Injection)."""
    formula = isinstance(cell, str) and re.match("[=+@\t\r\n\uff0b\uff0d\uff1d\uff20-]", cell)
    return f"'{cell}" if formula and not re.fullmatch(r"[-+]?\d+(\.\d+)?", cell, re.A) else cell


def parse(description, **properties):
    """Makes a pipeline. `name={"property": value}` sets properties of the element with that name."""
    Gst.init(None)
    if not Gst.ElementFactory.find("cudablend"):
        raise Failure("the plugin cudavision was not found; set GST_PLUGIN_PATH to the folder of libgstcudavision.so")
    try:
        pipeline = Gst.parse_launch(description)
    except GLib.Error as error:
        raise Failure(error.message) from error
    for name, values in properties.items():
        for key, value in values.items():
            pipeline.get_by_name(name).set_property(key, value)
    return pipeline


def check_disk(message, folder):
    """Raises a Failure if the message is an error of an element that writes into a folder."""
    error, _ = message.parse_error()
    if error.matches(Gst.resource_error_quark(), Gst.ResourceError.NO_SPACE_LEFT):
        raise Failure(f"cannot write to {folder}: {os.strerror(errno.ENOSPC)}")
    if error.matches(Gst.resource_error_quark(), Gst.ResourceError.WRITE):
        raise Failure(f"cannot write to {folder}: {uris.hide(error.message)}")


def location_of(stream):
    """The location of a filesink that writes to an open file."""
    return f"/dev/fd/{stream.fileno()}"


def text_of(message):
    """The sentence of an error message."""
    return troubles.trouble_of(message)[1]


def check(message):
    """Raises a Failure for an error message. It names the input that caused the error, without a password."""
    if not message or message.type != Gst.MessageType.ERROR:
        return
    uri, text = troubles.uri_of(message.src), text_of(message)
    raise Failure(f"{uris.name_of(uri)}: {uris.hide(text, uri)}" if uri else uris.hide(text))


class Interrupts:
    """Counts Ctrl-C in a `with` block. The second and all later ones raise KeyboardInterrupt as usual. Use it only in
    the main thread."""

    def __enter__(self):
        self.count, self.before = 0, None
        if threading.current_thread() is threading.main_thread():
            self.before = signal.signal(signal.SIGINT, self.on_signal)
        return self

    def on_signal(self, *_):
        self.count += 1
        if self.count > 1:
            raise KeyboardInterrupt

    def __exit__(self, *_):
        if self.before is not None:
            signal.signal(signal.SIGINT, self.before)


def play(pipeline, on_message=None, progress=None, on_error=None, end=None, gather=0):
    """Runs a pipeline to its end. Ctrl-C calls end(), or sends EOS to the sources, so the output file is complete.
    Returns whether that happened. An error raises a Failure, unless on_error(message) returns True: the pipeline must
    then still reach its end. `gather`: seconds for which messages are collected before they are handled together,
    because Python's threads then delay each other less."""
    with Interrupts() as interrupts:
        _play(pipeline, on_message, progress, on_error, end, gather, interrupts)
        return interrupts.count > 0


def _play(pipeline, on_message, progress, on_error, end, gather, interrupts):
    bus = pipeline.get_bus()
    element = Gst.MessageType.ELEMENT
    kinds = element | Gst.MessageType.WARNING | Gst.MessageType.ERROR | Gst.MessageType.EOS
    pipeline.set_state(Gst.State.PLAYING)
    reported, stopped = time.monotonic(), False
    try:
        while True:
            message = gather and bus.pop_filtered(kinds)
            if not message:
                time.sleep(gather)
                message = bus.timed_pop_filtered(Gst.SECOND // 10, kinds)
            if interrupts.count and not stopped:
                stopped = True
                end() if end else pipeline.send_event(Gst.Event.new_eos())
            if progress and time.monotonic() - reported >= 1:
                reported = time.monotonic()
                progress(pipeline)
            if not message:
                continue
            kind = message.type
            if kind == element:
                if on_message:
                    on_message(message)
            elif kind == Gst.MessageType.EOS:
                return
            elif kind == Gst.MessageType.ERROR:
                if not (on_error and on_error(message)):
                    check(message)
            else:
                warning, _ = message.parse_warning()
                # An error message follows.
                if not warning.matches(Gst.parse_error_quark(), Gst.ParseError.DELAYED_LINK):
                    print(f"{message.src.get_name()}: {uris.hide(warning.message)}", file=sys.stderr)
    finally:
        pipeline.set_state(Gst.State.NULL)


def size_of(sample):
    """Width and height in the caps of a sample."""
    return size_of_caps(sample.get_caps())


def fields_of(caps, *names):
    """Values of the first structure of caps; None for a missing field; "name" is the name of the structure. From 1.26
    on, GStreamer's bindings wrap the structure of caps."""
    structure = caps.get_structure(0)
    with structure if hasattr(structure, "__enter__") else contextlib.nullcontext(structure) as fields:
        return [fields.get_name() if name == "name" else fields.get_value(name) if fields.has_field(name) else None
                for name in names]


def on_frames(pad, take):
    """Calls take(pad, buffer, caps) for each frame that passes a pad. A stopped pad has no caps; `take` does not get a
    frame that passes at that moment."""
    passed = Gst.PadProbeReturn.OK

    def probe(_, info):
        if caps := pad.get_current_caps():
            take(pad, info.get_buffer(), caps)
        return passed

    return pad.add_probe(Gst.PadProbeType.BUFFER, probe)


def without_times(buffer):
    """A copy of a buffer that has no times and shares its memory."""
    flags = Gst.BufferCopyFlags.FLAGS | Gst.BufferCopyFlags.META | Gst.BufferCopyFlags.MEMORY
    return buffer.copy_region(flags, 0, buffer.get_size())


def size_of_caps(caps):
    """Width and height in fixed caps."""
    return tuple(fields_of(caps, "width", "height"))


def samples(pipeline):
    """Runs a pipeline and yields the samples of its appsink `sink`."""
    sink, bus = pipeline.get_by_name("sink"), pipeline.get_bus()
    pipeline.set_state(Gst.State.PLAYING)
    try:
        while not sink.get_property("eos"):
            if sample := sink.emit("try-pull-sample", Gst.SECOND // 10):
                yield sample
            check(bus.pop_filtered(Gst.MessageType.ERROR))
    finally:
        pipeline.set_state(Gst.State.NULL)
