# SPDX-License-Identifier: LGPL-2.1-or-later
"""The self-test: which parts of GStreamer, the GPU and the plugin are found, what is missing, and whether each element
works on each backend. It calls GStreamer by ctypes, so that it also works without PyGObject."""

import ctypes
import os
import platform
import re
import sys
import tempfile
import time
from ctypes import POINTER, byref, c_char_p, c_int, c_uint, c_uint64, c_void_p
from pathlib import Path

from . import PLUGIN_FOLDER
from ._library import FINDERS, declare, find_plugin

ELEMENTS = {
    "cudagaussian": "kernel-size=9",
    "cudaconvolve": "preset=sharpen",
    "cudadiff": "output=mask",
    "cudahistogram": "overlay=true",
    "cudaintegral": "output=box-mean radius=3",
    "cudablend": "background=black",
}
WIDTH, HEIGHT, FRAMES = 320, 240, 10
FRAME_BYTES = WIDTH * HEIGHT * 3 // 2  # NV12
SECONDS = 60  # limit for one element, which takes less than a second, or a few if the driver compiles PTX

# Which Debian package has a library. {} is the version in the library's name.
PACKAGES = {
    r"libopencv_(core|imgproc)\.so\.(\S+)": "libopencv-{0}{1}",
    r"libgst(cuda|analytics)-1\.0\.so\.0": "libgstreamer-plugins-bad1.0-0",
    r"libgst(video|app|allocators)-1\.0\.so\.0": "libgstreamer-plugins-base1.0-0",
    r"libgst(reamer|base|controller)-1\.0\.so\.0": "libgstreamer1.0-0",
    r"liborc-0\.4\.so\.0": "liborc-0.4-0",
}
STATE_NULL, STATE_PLAYING = 1, 4
MESSAGE_EOS, MESSAGE_ERROR = 1, 2


class Message(ctypes.Structure):
    """The beginning of GstMessage, after the 64 bytes of its GstMiniObject."""

    _fields_ = [("mini_object", ctypes.c_char * 64), ("type", c_int)]


class GError(ctypes.Structure):
    """GError"""

    _fields_ = [("domain", ctypes.c_uint32), ("code", c_int), ("message", c_char_p)]


FUNCTIONS = {
    **FINDERS,
    "gst_init": (None, [c_void_p, c_void_p]),
    "gst_version": (None, [POINTER(c_uint)] * 4),
    "gst_plugin_load_file": (c_void_p, [c_char_p, c_void_p]),
    "gst_element_factory_find": (c_void_p, [c_char_p]),
    "gst_parse_launch": (c_void_p, [c_char_p, POINTER(POINTER(GError))]),
    "gst_bin_get_by_name": (c_void_p, [c_void_p, c_char_p]),
    "gst_util_set_object_arg": (None, [c_void_p, c_char_p, c_char_p]),
    "gst_element_set_state": (c_int, [c_void_p, c_int]),
    "gst_element_get_bus": (c_void_p, [c_void_p]),
    "gst_bus_timed_pop_filtered": (POINTER(Message), [c_void_p, c_uint64, c_int]),
    "gst_message_parse_error": (None, [POINTER(Message), POINTER(POINTER(GError)), c_void_p]),
    "gst_mini_object_unref": (None, [c_void_p]),
    "g_error_free": (None, [POINTER(GError)]),
}


def load_gstreamer():
    """GStreamer, initialised. Raises OSError if it is not installed."""
    gst = ctypes.CDLL("libgstreamer-1.0.so.0")
    declare(gst, FUNCTIONS)
    gst.gst_init(None, None)
    return gst


def plugin_folder():
    """The folder of the plugin that GStreamer uses, or None."""
    try:
        found = find_plugin(load_gstreamer())
    except OSError:
        return None
    return found and os.path.dirname(found[0])


def package_of(library):
    """The Debian package with a library, or None."""
    for pattern, package in PACKAGES.items():
        if match := re.fullmatch(pattern, library):
            return package.format(*match.groups())
    return None


def missing_library(library, reason="is not installed"):
    package = package_of(library)
    return f"{library} {reason}" + (f": apt install {package}" if package else "")


def why_not_loaded(file):
    """What is wrong with a plugin file that GStreamer does not take: a list of sentences."""
    try:
        ctypes.CDLL(str(file))
    except OSError as error:
        reason = str(error)
    else:
        return [f"{file} can be loaded, but GStreamer remembers that it failed: touch that file"]
    missing = []
    # The names of the libraries are in the file's string table.
    for name in sorted(set(re.findall(rb"lib[\w.+-]+\.so\.[\d.]+", file.read_bytes()))):
        library = name.decode()
        if package_of(library):
            try:
                ctypes.CDLL(library)
            except OSError:
                missing.append(missing_library(library))
    if "undefined symbol" in reason or any("libopencv" in text for text in missing):
        missing.append(
            "if Debian has no such package: this build is for another Debian release, take the one for this release"
        )
    return missing or [reason]


def revive(gst, file):
    """Lets GStreamer try a plugin file again. It remembers one that failed until the file changes, although the
    libraries that were missing may have been installed since."""
    try:
        ctypes.CDLL(str(file))
        os.utime(file)
    except OSError:
        return
    if plugin := gst.gst_plugin_load_file(os.fsencode(file), None):
        gst.gst_object_unref(plugin)


def candidates():
    """The files at the places where GStreamer looks for the plugin."""
    paths = os.environ.get("GST_PLUGIN_PATH_1_0", os.environ.get("GST_PLUGIN_PATH", "")).split(os.pathsep)
    folders = [PLUGIN_FOLDER] + [Path(path) for path in paths if path]
    folders.append(Path(f"/usr/lib/{platform.machine()}-linux-gnu/gstreamer-1.0"))
    files = dict.fromkeys(folder / "libgstcudavision.so" for folder in folders)
    return [file for file in files if file.is_file()]


def nvidia_hardware():
    """Whether an NVIDIA GPU is in this machine, with or without a driver."""
    if Path("/dev/nvidiactl").exists() or Path("/dev/nvhost-gpu").exists():
        return True
    for device in Path("/sys/bus/pci/devices").glob("*"):
        try:
            if (
                (device / "vendor").read_text().strip() == "0x10de"
                and (device / "class").read_text().startswith("0x03")
            ):
                return True
        except OSError:
            continue
    return False


def find_gpus():
    """(lines of text about the GPUs, the version of CUDA that the driver has, and what is missing)."""
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        if nvidia_hardware():
            problem = "libcuda.so.1, the driver's library, is not installed: apt install libcuda1 nvidia-driver"
            return ["an NVIDIA GPU"], None, problem
        return [], None, None
    number = c_int()
    if error := cuda.cuInit(0):
        problem = f"the driver is installed, but cuInit() fails with error {error}: see dmesg and nvidia-smi"
        return [], None, problem if nvidia_hardware() else None
    cuda.cuDriverGetVersion(byref(number))
    version = f"{number.value // 1000}.{number.value % 1000 // 10}"
    cuda.cuDeviceGetCount(byref(number))
    gpus = []
    for device in range(number.value):
        name, major, minor = ctypes.create_string_buffer(96), c_int(), c_int()
        cuda.cuDeviceGetName(name, len(name), device)
        cuda.cuDeviceGetAttribute(byref(major), 75, device)  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR
        cuda.cuDeviceGetAttribute(byref(minor), 76, device)
        gpus.append(f"{device}: {name.value.decode(errors='replace')}, compute capability {major.value}.{minor.value}")
    return gpus, version, None


def driver_release():
    """The release of the kernel module of the driver, such as 580.95.05, or None."""
    try:
        match = re.search(r"Module.*?\s(\d+\.[\d.]+)\s", Path("/proc/driver/nvidia/version").read_text())
    except OSError:
        return None
    return match and match.group(1)


def take_error(gst, error):
    text = error.contents.message.decode(errors="replace")
    gst.g_error_free(error)
    return text


def run_element(gst, element, settings, backend, file):
    """Runs an element on FRAMES frames and writes them to a file. Returns what went wrong, or None."""
    error = POINTER(GError)()
    pipeline = gst.gst_parse_launch(
        f"videotestsrc num-buffers={FRAMES} pattern=ball ! "
        f"video/x-raw,format=NV12,width={WIDTH},height={HEIGHT},framerate=30/1 ! "
        f"{element} {settings} backend={backend} ! video/x-raw,format=NV12 ! filesink name=sink".encode(),
        byref(error),
    )
    if error:
        problem = take_error(gst, error)
        if pipeline:
            gst.gst_object_unref(pipeline)
        return problem
    sink = gst.gst_bin_get_by_name(pipeline, b"sink")
    gst.gst_util_set_object_arg(sink, b"location", os.fsencode(file))
    gst.gst_object_unref(sink)
    bus = gst.gst_element_get_bus(pipeline)
    gst.gst_element_set_state(pipeline, STATE_PLAYING)
    message = gst.gst_bus_timed_pop_filtered(bus, SECONDS * 10**9, MESSAGE_EOS | MESSAGE_ERROR)
    problem = None
    if not message:
        problem = f"did not finish within {SECONDS} seconds"
    elif message.contents.type == MESSAGE_ERROR:
        gst.gst_message_parse_error(message, byref(error), None)
        problem = take_error(gst, error)
    if message:
        gst.gst_mini_object_unref(message)
    gst.gst_element_set_state(pipeline, STATE_NULL)
    gst.gst_object_unref(bus)
    gst.gst_object_unref(pipeline)
    if not problem and os.path.getsize(file) != FRAMES * FRAME_BYTES:
        problem = f"gave {os.path.getsize(file)} bytes instead of {FRAMES * FRAME_BYTES}"
    return problem


def say(name, text):
    print(f"{name:<14}{text}", flush=True)


class Report:
    """What the self-test finds: prints it, and keeps what is missing."""

    def __init__(self):
        self.problems = []

    def problem(self, text):
        self.problems.append(text)

    def system(self):
        try:
            release = platform.freedesktop_os_release().get("PRETTY_NAME", "Linux")
        except OSError:
            release = "Linux"
        say("system", f"{release}, {platform.machine()}")
        say("Python", f"{platform.python_version()}, {sys.executable}")

    def gstreamer(self):
        """GStreamer, or None."""
        try:
            gst = load_gstreamer()
        except OSError:
            say("GStreamer", "not found")
            self.problem(missing_library("libgstreamer-1.0.so.0"))
            return None
        numbers = [c_uint() for _ in range(4)]
        gst.gst_version(*map(byref, numbers))
        say("GStreamer", ".".join(str(number.value) for number in numbers[:3]))
        return gst

    def bindings(self):
        try:
            import gi

            gi.require_version("Gst", "1.0")
            say("PyGObject", gi.__version__)
        except (ImportError, ValueError):
            say("PyGObject",
                "not found; programs in Python need it: apt install python3-gst-1.0 gir1.2-gst-plugins-base-1.0")

    def plugin(self, gst):
        """Whether GStreamer has the plugin."""
        found, files = find_plugin(gst), candidates()
        for file in files:
            if not found:
                revive(gst, file)
                found = find_plugin(gst)
        if found:
            file, version = found
            say("plugin", f"{version.rpartition('-')[2]}, {file}")
            return True
        say("plugin", "not found")
        for file in files:
            for text in why_not_loaded(file):
                self.problem(text)
        if not files:
            self.problem(
                "there is no libgstcudavision.so: install the wheel or the Debian package, or set GST_PLUGIN_PATH"
            )
        return False

    def gpu(self):
        """Whether there is a GPU with a driver."""
        gpus, cuda, problem = find_gpus()
        for gpu in gpus or ["none"]:
            say("GPU", gpu)
        release = driver_release()
        say("driver", ", ".join(filter(None, [release, cuda and f"CUDA {cuda}"])) or "none")
        if problem:
            self.problem(problem)
        return bool(gpus and cuda)

    def elements(self, gst, has_gpu):
        """Runs the elements on the backends that work."""
        if not gst.gst_element_factory_find(b"videotestsrc"):
            self.problem("GStreamer's own plugins are not installed: apt install gstreamer1.0-plugins-base")
            return
        with tempfile.TemporaryDirectory(prefix="cudavision-") as folder:
            pictures, works = {}, []
            for backend in ("cpu", "cuda"):
                if problem := run_element(gst, "cudagaussian", "", backend, os.path.join(folder, "trial")):
                    say("backend", f"{backend} does not work: {problem}")
                    if backend == "cuda" and has_gpu:
                        self.problem(f"there is a GPU, but the CUDA backend does not work: {problem}")
                    continue
                works.append(backend)
                say("backend", f"{backend} works")
            if not works:
                self.problem("no backend works")
            for element, settings in ELEMENTS.items():
                for backend in works:
                    began, file = time.monotonic(), os.path.join(folder, f"{element}.{backend}")
                    problem = run_element(gst, element, settings, backend, file)
                    pictures[element, backend] = None if problem else Path(file).read_bytes()
                    result = problem or f"ok, {FRAMES} frames in {1000 * (time.monotonic() - began):.0f} ms"
                    say(element, f"{backend}: {result}")
                    if problem:
                        self.problem(f"{element} backend={backend}: {problem}")
                ours, others = pictures.get((element, "cpu")), pictures.get((element, "cuda"))
                if ours and others and max(abs(a - b) for a, b in zip(ours, others)) > 1:
                    self.problem(f"{element}: the pictures of the two backends differ")


def run():
    """Runs the self-test and prints its report. Returns the exit status."""
    report = Report()
    report.system()
    gst = report.gstreamer()
    report.bindings()
    has_plugin = gst is not None and report.plugin(gst)
    has_gpu = report.gpu()
    if has_plugin:
        report.elements(gst, has_gpu)
    for text in report.problems:
        say("problem", text)
    print("the self-test failed" if report.problems else "all is well")
    return 1 if report.problems else 0
