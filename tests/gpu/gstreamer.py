# SPDX-License-Identifier: LGPL-2.1-or-later
"""The few functions of GStreamer that the tests of frames need, called through ctypes, because GPU hosts have no
PyGObject. Objects are addresses.

A process reads LD_LIBRARY_PATH only when it starts, and the libraries of the bundle must not replace libraries of the
host's Python. Therefore load() takes a library from the bundle only if the host lacks it."""

import ctypes
import os
import pathlib
import re
from ctypes import POINTER, byref, c_char_p, c_int, c_size_t, c_uint, c_uint64, c_void_p

NONE = 2**64 - 1
PAUSED, PLAYING, NULL = 3, 4, 1
EOS, ERROR = 1, 2
FLOW_OK = 0

# Functions: the return type, then the arguments.
CORE = {
    "gst_parse_launch": (c_void_p, c_char_p, POINTER(c_void_p)),
    "gst_bin_get_by_name": (c_void_p, c_void_p, c_char_p),
    "gst_element_set_state": (c_int, c_void_p, c_int),
    "gst_element_get_state": (c_int, c_void_p, c_void_p, c_void_p, c_uint64),
    "gst_element_set_context": (None, c_void_p, c_void_p),
    "gst_element_get_bus": (c_void_p, c_void_p),
    "gst_element_get_static_pad": (c_void_p, c_void_p, c_char_p),
    "gst_element_factory_find": (c_void_p, c_char_p),
    "gst_bus_timed_pop_filtered": (c_void_p, c_void_p, c_uint64, c_int),
    "gst_message_parse_error": (None, c_void_p, POINTER(c_void_p), POINTER(c_void_p)),
    "gst_sample_get_buffer": (c_void_p, c_void_p),
    "gst_sample_get_caps": (c_void_p, c_void_p),
    "gst_buffer_new_allocate": (c_void_p, c_void_p, c_size_t, c_void_p),
    "gst_buffer_memset": (c_size_t, c_void_p, c_size_t, ctypes.c_uint8, c_size_t),
    "gst_buffer_extract": (c_size_t, c_void_p, c_size_t, c_void_p, c_size_t),
    "gst_mini_object_ref": (c_void_p, c_void_p),
    "gst_mini_object_unref": (None, c_void_p),
    "gst_object_unref": (None, c_void_p),
}
APP = {
    "gst_app_sink_try_pull_sample": (c_void_p, c_void_p, c_uint64),
    "gst_app_sink_try_pull_preroll": (c_void_p, c_void_p, c_uint64),
    "gst_app_src_push_buffer": (c_int, c_void_p, c_void_p),
    "gst_app_src_end_of_stream": (c_int, c_void_p),
}
_loaded = {}


def load(name, folder):
    """Loads a library by its path or name. Dependencies that the host lacks, or has only in an older version, are first
    loaded from `folder`."""
    for _ in range(200):
        try:
            return _loaded.setdefault(name, ctypes.CDLL(name))
        except OSError as error:
            missing = re.match(r"(\S+): (cannot open shared object file|version `\S+' not found)", str(error))
            found = pathlib.Path(folder or "/nonexistent", pathlib.Path(missing[1]).name) if missing else None
            if not found or not found.exists() or str(found) == str(name):
                raise
            load(str(found), folder)
    raise OSError(f"{name} cannot be loaded")


class GStreamer:
    """GStreamer of this machine, or of an unpacked bundle."""

    def __init__(self, bundle=None):
        libraries = None
        if bundle:
            bundle = pathlib.Path(bundle)
            libraries = bundle / "lib"
            # for the plugin scanner, which is a separate process
            os.environ["LD_LIBRARY_PATH"] = f"{libraries}:{os.environ.get('LD_LIBRARY_PATH', '')}".rstrip(":")
        self.core = load("libgstreamer-1.0.so.0", libraries)
        self.app = load("libgstapp-1.0.so.0", libraries)
        if bundle:  # dependencies of plugins
            for plugin in sorted((bundle / "gst").glob("*.so")) + sorted((bundle / "plugin").glob("*.so")):
                load(str(plugin), libraries)
        self._declare()
        self.core.gst_init(None, None)

    def _declare(self):
        for library, functions in (self.core, CORE), (self.app, APP):
            for name, (result, *arguments) in functions.items():
                function = getattr(library, name)
                function.restype, function.argtypes = result, arguments

    @property
    def version(self):
        numbers = [c_uint() for _ in range(4)]
        self.core.gst_version(*map(byref, numbers))
        return tuple(number.value for number in numbers[:3])

    def has(self, *elements):
        """Whether all these elements exist."""
        return all(self.core.gst_element_factory_find(name.encode()) for name in elements)

    def pipeline(self, description, context=None):
        return Pipeline(self, description, context)

    def filled_buffer(self, size, value, pts=0):
        """(transfer full) A buffer in system memory whose bytes all have one value."""
        buffer = self.core.gst_buffer_new_allocate(None, size, None)
        self.core.gst_buffer_memset(buffer, 0, value, size)
        for offset, time in ((72, pts), (88, 10**9 // 30)):  # pts and duration
            c_uint64.from_address(buffer + offset).value = time
        return buffer

    def bytes_of(self, buffer):
        """A copy of a buffer's bytes in system memory. Downloads CUDA memory."""
        data = ctypes.create_string_buffer(1 << 22)
        size = self.core.gst_buffer_extract(buffer, 0, data, len(data))
        return data.raw[:size]

    @staticmethod
    def references(buffer):
        return c_int.from_address(buffer + 8).value


class Sample:

    def __init__(self, gst, address):
        self._gst, self._address = gst, address
        self.buffer = gst.core.gst_sample_get_buffer(address)
        self.caps = gst.core.gst_sample_get_caps(address)

    def close(self):
        if self._address:
            self._gst.core.gst_mini_object_unref(self._address)
        self._address = self.buffer = None

    __del__ = close


class Pipeline:
    """A pipeline, which starts immediately. `with` stops it."""

    def __init__(self, gst, description, context=None):
        self._gst, self._core = gst, gst.core
        error = c_void_p()
        self._address = self._core.gst_parse_launch(description.encode(), byref(error))
        if not self._address or error:
            raise RuntimeError(f"{description}: {self._text(error)}")
        self._bus = self._core.gst_element_get_bus(self._address)
        if context:
            self._core.gst_element_set_context(self._address, context)
        self._core.gst_element_set_state(self._address, PLAYING)

    @staticmethod
    def _text(error):
        return c_char_p.from_address(error.value + 8).value.decode() if error else "no reason"  # GError::message

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._core.gst_element_set_state(self._address, NULL)
        self._core.gst_element_get_state(self._address, None, None, 10 * 10**9)
        for element in (self._bus, self._address):
            self._core.gst_object_unref(element)

    def element(self, name):
        """(the pipeline keeps it) The element with this name."""
        element = self._core.gst_bin_get_by_name(self._address, name.encode())
        assert element, name
        self._core.gst_object_unref(element)
        return element

    def check(self):
        """Raises RuntimeError after an error message."""
        if message := self._core.gst_bus_timed_pop_filtered(self._bus, 0, ERROR):
            error, debug = c_void_p(), c_void_p()
            self._core.gst_message_parse_error(message, byref(error), byref(debug))
            raise RuntimeError(self._text(error))

    def sample(self, name="sink", seconds=30):
        """The next sample of an appsink; None at EOS."""
        address = self._gst.app.gst_app_sink_try_pull_sample(self.element(name), seconds * 10**9)
        self.check()
        if address and (preroll := self._gst.app.gst_app_sink_try_pull_preroll(self.element(name), 0)):
            self._core.gst_mini_object_unref(preroll)  # the sink keeps the first frame otherwise
        return Sample(self._gst, address) if address else None

    def samples(self, name="sink"):
        while sample := self.sample(name):
            yield sample
            del sample

    def push(self, buffer, name="source"):
        """(transfer full) Pushes a buffer into an appsrc."""
        result = self._gst.app.gst_app_src_push_buffer(self.element(name), buffer)
        if result != FLOW_OK:
            self.check()
            raise RuntimeError(f"the appsrc answered {result}")

    def end(self, name="source"):
        self._gst.app.gst_app_src_end_of_stream(self.element(name))

    def wait(self, seconds=60):
        message = self._core.gst_bus_timed_pop_filtered(self._bus, seconds * 10**9, EOS | ERROR)
        if not message:
            raise RuntimeError(f"no EOS after {seconds} s")
        kind = c_int.from_address(message + 64).value  # GstMessage::type
        if kind == ERROR:
            error, debug = c_void_p(), c_void_p()
            self._core.gst_message_parse_error(message, byref(error), byref(debug))
            raise RuntimeError(self._text(error))
        self._core.gst_mini_object_unref(message)
