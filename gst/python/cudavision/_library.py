# SPDX-License-Identifier: LGPL-2.1-or-later
"""The functions of the plugin that gst/frames/frames.h declares, called by ctypes, and the GStreamer functions that are
also needed. It works with PyGObject and without: objects of GStreamer are addresses here."""

import atexit
import ctypes
import functools
import os
import sys
from ctypes import (POINTER, Structure, byref, c_char, c_char_p, c_double, c_int, c_int32, c_int64, c_size_t, c_ssize_t,
                    c_uint32, c_uint64, c_void_p)

ABI = 4  # CUDAVISION_FRAMES_ABI
NONE = 2**64 - 1  # GST_CLOCK_TIME_NONE
PTS = 72  # where GstBuffer has its pts; then come dts and duration
DURATION = 88


class ArrayData(Structure):
    """CudavisionArray"""

    _fields_ = [
        ("data", c_void_p),
        *((name, c_int32) for name in ("device_type", "device_id", "code", "bits", "dimensions", "writable")),
        ("shape", c_int64 * 3),
        ("strides", c_int64 * 3),
    ]


class FrameData(Structure):
    """CudavisionFrame"""

    _fields_ = [("format", c_char * 16), ("width", c_int32), ("height", c_int32), ("n_planes", c_int32),
                ("planes", ArrayData * 4)]


class Source(Structure):
    """CudavisionSource"""

    _fields_ = [("managed", c_void_p), ("versioned", c_int32), ("object", c_void_p)]


class Interpreter(Structure):
    """CudavisionPython"""

    _fields_ = [
        (name, c_void_p)
        for name in ("capsule_is_valid", "capsule_pointer", "holds_gil", "ensure_gil", "release_gil", "decrement")
    ]


# name: result, arguments. The functions that can fail end with a buffer for the error and its size: call() adds both.
FALLIBLE = {
    "cudavision_frame_open": [c_void_p, c_void_p, c_int, POINTER(FrameData), POINTER(c_void_p)],
    "cudavision_memory_open": [c_void_p, c_void_p, c_size_t, POINTER(ArrayData), POINTER(c_void_p)],
    "cudavision_owner_wait": [c_void_p, c_ssize_t],
    "cudavision_owner_hand_back": [c_void_p, c_ssize_t, c_int],
    "cudavision_frames_context": [c_int, POINTER(c_void_p)],
    "cudavision_frame_layout": [c_char_p, c_int, c_int, POINTER(FrameData)],
    "cudavision_maker_new": [c_char_p, c_int, c_int, c_int, POINTER(c_void_p), POINTER(c_ssize_t)],
    "cudavision_maker_wait": [c_void_p, c_ssize_t],
    "cudavision_maker_make": [c_void_p, POINTER(FrameData), POINTER(Source), c_int, c_int, c_int, POINTER(c_void_p),
                              POINTER(c_int)],
}
OTHERS = {
    "cudavision_frames_python": (None, [c_void_p]),
    "cudavision_buffer_keep": (c_void_p, [c_void_p]),
    "cudavision_owner_unref": (None, [c_void_p]),
    "cudavision_dlpack_new": (c_void_p, [c_void_p, POINTER(ArrayData), c_int]),
    "cudavision_frames_drain": (c_int, [c_int]),
    "cudavision_maker_free": (None, [c_void_p]),
    "gst_cuda_vision_histogram_meta_api_get_type": (c_size_t, []),
    "gst_cuda_vision_integral_meta_api_get_type": (c_size_t, []),
    "gst_cuda_vision_entry_type_get_size": (c_size_t, [c_int]),
    "gst_buffer_peek_memory": (c_void_p, [c_void_p, ctypes.c_uint]),
    "gst_buffer_n_memory": (ctypes.c_uint, [c_void_p]),
    "gst_sample_get_buffer": (c_void_p, [c_void_p]),
    "gst_sample_get_caps": (c_void_p, [c_void_p]),
    "gst_caps_from_string": (c_void_p, [c_char_p]),
    "gst_caps_get_structure": (c_void_p, [c_void_p, ctypes.c_uint]),
    "gst_structure_get_name": (c_char_p, [c_void_p]),
    "gst_structure_get_string": (c_char_p, [c_void_p, c_char_p]),
    "gst_structure_get_int": (c_int, [c_void_p, c_char_p, POINTER(c_int)]),
    "gst_mini_object_unref": (None, [c_void_p]),
    "g_value_take_boxed": (None, [c_void_p, c_void_p]),
}
# These read what the caller holds, and wait for nothing. They keep Python's lock, because giving it away and taking it
# again takes longer than they do.
QUICK = {
    "gst_buffer_iterate_meta_filtered": (c_void_p, [c_void_p, POINTER(c_void_p), c_size_t]),
    "gst_structure_get_boolean": (c_int, [c_void_p, c_char_p, POINTER(c_int)]),
    "gst_structure_get_double": (c_int, [c_void_p, c_char_p, POINTER(c_double)]),
    "gst_structure_get_value": (c_void_p, [c_void_p, c_char_p]),
    "gst_value_array_get_size": (ctypes.c_uint, [c_void_p]),
    "gst_value_array_get_value": (c_void_p, [c_void_p, ctypes.c_uint]),
    "gst_video_crop_meta_api_get_type": (c_size_t, []),
    "gst_video_region_of_interest_meta_api_get_type": (c_size_t, []),
    "gst_video_region_of_interest_meta_get_param": (c_void_p, [c_void_p, c_char_p]),
    "g_quark_to_string": (c_char_p, [c_uint32]),
    "g_value_get_string": (c_char_p, [c_void_p]),
}
# Of GStreamer's library, to find the plugin.
FINDERS = {
    "gst_registry_get": (c_void_p, []),
    "gst_registry_find_plugin": (c_void_p, [c_void_p, c_char_p]),
    "gst_plugin_get_filename": (c_char_p, [c_void_p]),
    "gst_plugin_get_version": (c_char_p, [c_void_p]),
    "gst_object_unref": (None, [c_void_p]),
}
ERRORS = {1: ValueError, 2: RuntimeError, 3: BufferError, 4: TimeoutError}


def declare(loaded, functions):
    """Sets the results and arguments of functions of a loaded library. Raises AttributeError if it lacks one of
    them."""
    for name, (result, arguments) in functions.items():
        function = getattr(loaded, name)
        function.restype, function.argtypes = result, arguments


def find_plugin(gst):
    """The file and the version of the plugin that GStreamer uses, or None. `gst`: with the FINDERS."""
    plugin = gst.gst_registry_find_plugin(gst.gst_registry_get(), b"cudavision")
    if not plugin:
        return None
    found = os.fsdecode(gst.gst_plugin_get_filename(plugin)), gst.gst_plugin_get_version(plugin).decode()
    gst.gst_object_unref(plugin)
    return found


def _path():
    """The file of the plugin: CUDAVISION_LIBRARY, or the file that GStreamer uses."""
    if path := os.environ.get("CUDAVISION_LIBRARY"):
        return path
    gst = ctypes.CDLL("libgstreamer-1.0.so.0")
    if not gst.gst_is_initialized():
        raise RuntimeError("GStreamer is not initialised: call Gst.init(None) first")
    declare(gst, FINDERS)
    found = find_plugin(gst)
    if not found:
        raise RuntimeError(
            "GStreamer does not find the plugin cudavision: set GST_PLUGIN_PATH to the folder of libgstcudavision.so"
        )
    return found[0]


@functools.lru_cache(maxsize=None)
def library():
    """The plugin, loaded at the first call. Raises RuntimeError if it is missing or of another version than
    this module."""
    path = _path()
    try:
        plugin = ctypes.CDLL(path)
        abi = plugin.cudavision_frames_abi()
    except (OSError, AttributeError) as error:
        raise RuntimeError(f"{path} is not the plugin that this module needs: {error}") from error
    if abi != ABI:
        raise RuntimeError(
            f"{path} and this module are of different versions ({abi} and {ABI}): install both from the same package"
        )
    declare(plugin, {name: (c_int, arguments + [c_char_p, c_size_t]) for name, arguments in FALLIBLE.items()})
    declare(plugin, OTHERS)
    quick = ctypes.PyDLL(path)
    declare(quick, QUICK)
    vars(plugin).update((name, getattr(quick, name)) for name in QUICK)
    api = ctypes.pythonapi
    interpreter = Interpreter(
        *(
            ctypes.cast(function, c_void_p).value
            for function in (api.PyCapsule_IsValid, api.PyCapsule_GetPointer, api.PyGILState_Check,
                             api.PyGILState_Ensure, api.PyGILState_Release, api.Py_DecRef)
        )
    )
    plugin.cudavision_frames_python(byref(interpreter))
    atexit.register(plugin.cudavision_frames_python, None)
    return plugin


def call(name, *arguments):
    """Calls a function that can fail. Raises ValueError, RuntimeError (CUDA or memory), BufferError (not such a frame)
    or TimeoutError."""
    error = ctypes.create_string_buffer(512)
    result = getattr(library(), name)(*arguments, error, len(error))
    if result:
        raise ERRORS[result](error.value.decode(errors="replace"))


def address_of(value, kind):
    """The address of a GStreamer object of the type `kind` ("GstBuffer"), which PyGObject gives as its hash.
    Addresses pass."""
    if isinstance(value, c_void_p):
        value = value.value
    if isinstance(value, int) and not isinstance(value, bool) and value > 4096:
        return value
    gtype = getattr(type(value), "__gtype__", None)
    if gtype is None or gtype.name != kind:
        raise TypeError(f"this must be a {kind.replace('Gst', 'Gst.', 1)}, not {value!r:.80}")
    return hash(value)


def is_object(value):
    """Whether the value is an object of PyGObject, and not an address."""
    return hasattr(type(value), "__gtype__")


def to_object(address, kind):
    """(transfer full) The object of PyGObject for a boxed value, such as "Buffer"; the address itself in a program
    without PyGObject."""
    if "gi.repository.Gst" not in sys.modules:
        return address
    from gi.repository import GObject, Gst

    value = GObject.Value()
    value.init(getattr(Gst, kind))
    library().g_value_take_boxed(hash(value), address)
    return value.get_boxed()


assert ctypes.sizeof(c_void_p) == 8 and ctypes.sizeof(c_double) == ctypes.sizeof(c_uint64) == 8
