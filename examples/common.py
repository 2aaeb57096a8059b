# SPDX-License-Identifier: LGPL-2.1-or-later
"""The code that the Python examples share. File names never become a part of a pipeline's description: inputs are URIs, outputs are files
that are already open. Exit status: 0; 1 after a failure, with one sentence on stderr; 2 for wrong usage (argparse)."""
import argparse
import contextlib
import fcntl
import os
import pathlib
import signal
import sys
import tempfile
import time

import uris

import gi

gi.require_version("Gst", "1.0")
PACKAGE = pathlib.Path(__file__).resolve().parent.parent / "gst" / "python"
if PACKAGE.is_dir():  # in the source tree the package cudavision need not be installed; elsewhere it must be
    sys.path.insert(0, str(PACKAGE))
from gi.repository import GLib, Gst  # noqa: E402


# Sound is not decoded, and a file without video is an error.
DECODER = "uridecodebin caps=video/x-raw(ANY) expose-all-streams=false"
HIDDEN = ".cudavision-"  # how the names of unfinished files begin


class Failure(Exception):
    """A sentence for the user."""


class Parser(argparse.ArgumentParser):
    def error(self, message):
        self.exit(2, f"{self.prog}: {message}; see --help\n")


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
        sys.exit(f"{pathlib.Path(sys.argv[0]).name}: {getattr(error, 'strerror', None) or error}")


def uri_of(file):
    """Returns the URI of a file. Raises a Failure if it cannot be read."""
    if os.path.isdir(file):
        raise Failure(f"cannot read {file}: it is a folder")
    if not os.path.exists(file):
        raise Failure(f"cannot read {file}: there is no such file")
    if not os.access(file, os.R_OK):
        raise Failure(f"cannot read {file}: permission denied")
    if os.path.isfile(file) and os.path.getsize(file) == 0:
        raise Failure(f"cannot read {file}: it is empty")
    return pathlib.Path(file).absolute().as_uri()


def sweep(folder):
    """Removes the unfinished files that killed programs left in a folder. A program that lives holds the locks of its files."""
    with contextlib.suppress(OSError):
        for entry in os.scandir(folder):
            if not entry.name.startswith(HIDDEN):
                continue
            with contextlib.suppress(OSError):  # it is locked, or somebody else's
                descriptor = os.open(entry.path, os.O_RDWR | os.O_NOFOLLOW)
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    os.unlink(entry.path)
                finally:
                    os.close(descriptor)


class Unfinished:
    """A hidden file in a folder, for a `with` block: `stream` is open to write and read, become() gives it its name. It is removed
    at the end of the block; if the program is killed before, by the next one that writes into the folder. Raises OSError."""

    swept = set()  # each folder once, because it may hold many files

    def __init__(self, folder):
        if folder not in self.swept:
            self.swept.add(folder)
            sweep(folder)
        while True:
            descriptor, self.path = tempfile.mkstemp(prefix=HIDDEN, dir=folder)
            with contextlib.suppress(OSError):  # some file systems have no locks; then nothing is swept there
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            if os.fstat(descriptor).st_nlink:
                break
            os.close(descriptor)  # another program swept it before it was locked
        self.stream, self.lock = os.fdopen(descriptor, "w+b"), os.dup(descriptor)

    def become(self, file):
        """Closes the file and gives it this name; one that has it is replaced."""
        self.stream.close()
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(self.path, 0o666 & ~mask)
        os.replace(self.path, os.path.realpath(file))
        self.path = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(OSError):  # what was not written yet is not wanted any more
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


def location_of(stream):
    """The location of a filesink that writes to an open file."""
    return f"/dev/fd/{stream.fileno()}"


def text_of(message):
    """The sentence of an error message."""
    error, _ = message.parse_error()
    if error.matches(Gst.core_error_quark(), Gst.CoreError.MISSING_PLUGIN):
        return "there is no video in it, or the plugin that decodes it is missing"
    return error.message


def check(message):
    """Raises a Failure if the message is an error. Its text names the input that caused the error, without a password."""
    if not message or message.type != Gst.MessageType.ERROR:
        return
    element, text = message.src, text_of(message)
    while element and not element.find_property("uri"):
        element = element.get_parent()
    uri = element.get_property("uri") or "" if element else ""
    raise Failure(f"{uris.name_of(uri)}: {uris.hide(text, uri)}" if uri else uris.hide(text))


def play(pipeline, on_message=None, progress=None):
    """Runs a pipeline to its end. Ctrl-C sends EOS, so the output file is complete."""
    bus = pipeline.get_bus()
    kinds = Gst.MessageType.ELEMENT | Gst.MessageType.WARNING | Gst.MessageType.ERROR | Gst.MessageType.EOS
    pipeline.set_state(Gst.State.PLAYING)
    reported = time.monotonic()
    try:
        while True:
            try:
                message = bus.timed_pop_filtered(Gst.SECOND // 10, kinds)
            except KeyboardInterrupt:
                pipeline.send_event(Gst.Event.new_eos())
                continue
            if progress and time.monotonic() - reported >= 1:
                reported = time.monotonic()
                progress(pipeline)
            check(message)
            if message and message.type == Gst.MessageType.EOS:
                return
            if message and message.type == Gst.MessageType.WARNING:
                warning, _ = message.parse_warning()
                if not warning.matches(Gst.parse_error_quark(), Gst.ParseError.DELAYED_LINK):  # an error message follows
                    print(f"{message.src.get_name()}: {uris.hide(warning.message)}", file=sys.stderr)
            elif message and on_message:
                on_message(message)
    finally:
        pipeline.set_state(Gst.State.NULL)


def size_of(sample):
    """Width and height in the caps of a sample."""
    return size_of_caps(sample.get_caps())


def size_of_caps(caps):
    """Width and height in fixed caps. (From 1.26 on, GStreamer's bindings wrap the structure of caps.)"""
    structure = caps.get_structure(0)
    with structure if hasattr(structure, "__enter__") else contextlib.nullcontext(structure) as fields:
        return fields.get_value("width"), fields.get_value("height")


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
