# SPDX-License-Identifier: LGPL-2.1-or-later
"""cudavision: a GStreamer plugin of video filters on CUDA, and what Python programs need to work with its frames
(cudavision.frames).

A wheel carries the plugin in a folder of this package. The import lets GStreamer find it there, in this process and in
its children. `python3 -m cudavision selftest` says whether all of it works."""

import ctypes
import os
from pathlib import Path

PLUGIN_FOLDER = Path(__file__).resolve().parent / "gstreamer-1.0"  # only in a wheel


def _offer_plugin():
    """Puts the folder first in GStreamer's search path, or into its registry if GStreamer is initialised already."""
    if not PLUGIN_FOLDER.is_dir():
        return
    # GStreamer ignores GST_PLUGIN_PATH if the other variable is set.
    name = "GST_PLUGIN_PATH_1_0" if "GST_PLUGIN_PATH_1_0" in os.environ else "GST_PLUGIN_PATH"
    folder = str(PLUGIN_FOLDER)
    others = [path for path in os.environ.get(name, "").split(os.pathsep) if path and path != folder]
    os.environ[name] = os.pathsep.join([folder] + others)
    try:
        gst = ctypes.CDLL("libgstreamer-1.0.so.0", mode=os.RTLD_NOLOAD | os.RTLD_LAZY)
    except OSError:
        return  # this process has not loaded it yet
    if gst.gst_is_initialized():
        gst.gst_registry_get.restype = ctypes.c_void_p
        gst.gst_registry_scan_path.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
        gst.gst_registry_scan_path(gst.gst_registry_get(), os.fsencode(folder))


_offer_plugin()
