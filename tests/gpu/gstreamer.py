# SPDX-License-Identifier: LGPL-2.1-or-later
"""The few functions of GStreamer that the tests of frames need, called by ctypes: GPU hosts have no PyGObject. Objects
are addresses.

A process reads LD_LIBRARY_PATH only when it starts, and the libraries of the bundle must not replace those of the
host's Python: so load() takes a library from the bundle only where the host has none."""

import ctypes
import os
import pathlib
import re
from ctypes import POINTER, byref, c_char_p, c_int, c_uint, c_uint64, c_void_p

NONE = 2**64 - 1
PAUSED, PLAYING, NULL = 3, 4, 1
EOS, ERROR = 1, 2
FLOW_OK = 0

_loaded = {}


def load(name, folder):
    """Loads a library by its path or name. What it needs and the host lacks, or has too old, is loaded from
    `folder` first."""
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
            # For the scanner of plugins, which is a process of its own.
            os.environ["LD_LIBRARY_PATH"] = f"{libraries}:{os.environ.get('LD_LIBRARY_PATH', '')}".rstrip(":")
        self.core = load("libgstreamer-1.0.so.0", libraries)
        self.app = load("libgstapp-1.0.so.0", libraries)
        self.objects = load("libgobject-2.0.so.0", libraries)
        if bundle:  # what plugins need
            for plugin in sorted((bundle / "gst").glob("*.so")) + sorted((bundle / "plugin").glob("*.so")):
                load(str(plugin), libraries)
        self._declare()
        self.core.gst_init(None, None)

    def _declare(self):
        pointer = {
            self.core: [
                "gst_parse_launch",
                "gst_bin_get_by_name",
                "gst_element_get_bus",
                "gst_bus_timed_pop_filtered",
                "gst_caps_from_string",
                "gst_element_factory_find",
                "gst_sample_get_buffer",
                "gst_sample_get_caps",
                "gst_buffer_new_allocate",
                "gst_element_get_static_pad",
                "gst_mini_object_ref",
                "gst_object_ref",
                "gst_caps_to_string",
            ],
            self.app: ["gst_app_sink_try_pull_sample", "gst_app_sink_try_pull_preroll"],
        }
        for library, names in pointer.items():
            for name in names:
                getattr(library, name).restype = c_void_p
        self.core.gst_element_factory_find.argtypes = [c_char_p]
        self.core.gst_parse_launch.argtypes = [c_char_p, POINTER(c_void_p)]
        self.core.gst_bin_get_by_name.argtypes = [c_void_p, c_char_p]
        self.core.gst_element_set_state.argtypes = [c_void_p, c_int]
        self.core.gst_element_get_state.argtypes = [c_void_p, c_void_p, c_void_p, c_uint64]
        self.core.gst_element_set_context.argtypes = [c_void_p, c_void_p]
        self.core.gst_element_get_bus.argtypes = [c_void_p]
        self.core.gst_bus_timed_pop_filtered.argtypes = [c_void_p, c_uint64, c_int]
        self.core.gst_message_parse_error.argtypes = [c_void_p, POINTER(c_void_p), POINTER(c_void_p)]
        self.core.gst_caps_from_string.argtypes = [c_char_p]
        self.core.gst_buffer_new_allocate.argtypes = [c_void_p, ctypes.c_size_t, c_void_p]
        self.core.gst_buffer_memset.argtypes = [c_void_p, ctypes.c_size_t, ctypes.c_uint8, ctypes.c_size_t]
        self.core.gst_buffer_extract.restype = ctypes.c_size_t
        self.core.gst_buffer_extract.argtypes = [c_void_p, ctypes.c_size_t, c_void_p, ctypes.c_size_t]
        self.core.gst_mini_object_get_qdata.argtypes = [c_void_p, c_uint]
        for name in (
            "gst_sample_get_buffer",
            "gst_sample_get_caps",
            "gst_object_unref",
            "gst_mini_object_unref",
            "gst_mini_object_ref",
            "gst_object_ref",
            "gst_caps_to_string",
        ):
            getattr(self.core, name).argtypes = [c_void_p]
        self.app.gst_app_sink_try_pull_sample.argtypes = [c_void_p, c_uint64]
        self.app.gst_app_sink_try_pull_preroll.argtypes = [c_void_p, c_uint64]
        self.app.gst_app_src_push_buffer.argtypes = [c_void_p, c_void_p]
        self.app.gst_app_src_end_of_stream.argtypes = [c_void_p]
        self.objects.g_object_set_property.argtypes = [c_void_p, c_char_p, c_void_p]

    @property
    def version(self):
        numbers = [c_uint() for _ in range(4)]
        self.core.gst_version(*map(byref, numbers))
        return tuple(number.value for number in numbers[:3])

    def has(self, *elements):
        """Whether all these elements are there."""
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
    """A sample of an appsink."""

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
    """A pipeline, which starts at once. `with` stops it."""

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
        """Waits for EOS."""
        message = self._core.gst_bus_timed_pop_filtered(self._bus, seconds * 10**9, EOS | ERROR)
        if not message:
            raise RuntimeError(f"no EOS after {seconds} s")
        kind = c_int.from_address(message + 64).value  # GstMessage::type
        if kind == ERROR:
            error, debug = c_void_p(), c_void_p()
            self._core.gst_message_parse_error(message, byref(error), byref(debug))
            raise RuntimeError(self._text(error))
        self._core.gst_mini_object_unref(message)
