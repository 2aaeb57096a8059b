# SPDX-License-Identifier: LGPL-2.1-or-later
"""Target: cudavision.frames. Tests DLPack tensors and arrays of the CUDA array interface with arbitrary fields, as from
a faulty library, and frames that become arrays."""
import collections
import ctypes
import time

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstVideo", "1.0")
import numpy  # noqa: E402
from gi.repository import Gst, GstVideo  # noqa: E402
from reader import Reader  # noqa: E402

from cudavision import _library, _sources, frames  # noqa: E402

Gst.init(None)
try:
    _library.library()
except RuntimeError as error:
    raise ImportError(error) from error  # a reason to skip
FILES = ("gst/python/cudavision/_sources.py", "gst/python/cudavision/_arrays.py", "gst/python/cudavision/frames.py")
REFUSALS = (ValueError, TypeError, BufferError, RuntimeError)
FORMATS = ("GRAY8", "RGB", "NV12", "I420", "YUY2", "RGBA", "GRAY16_LE", "P010_10LE", "RGBA64_LE", "v210", "ENCODED", "",
           "A420")
NAMES = (b"dltensor", b"dltensor_versioned")
ROOM = 1 << 16  # bytes after each tensor
without_deleter = collections.deque(maxlen=1000)  # tensors that nobody releases
Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Unversioned(ctypes.Structure):
    _fields_ = [("tensor", _sources._Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype, new_capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]

is_valid = ctypes.pythonapi.PyCapsule_IsValid
is_valid.argtypes = [ctypes.py_object, ctypes.c_char_p]


class Tensor:
    """An array with __dlpack__, similar to one that fits a plane."""

    def __init__(self, reader, shape, bits):
        self.memory = (ctypes.c_uint8 * ROOM)()
        self.versioned = reader.below(2)
        self.managed = _sources._Versioned() if self.versioned else Unversioned()
        if self.versioned:
            self.managed.major = reader.pick((1, 1, 1, 0, 2))
        self.capsule, self.deleted, self.deleter = None, 0, Deleter(self.delete)
        if reader.below(8) != 7:
            self.managed.deleter = ctypes.cast(self.deleter, ctypes.c_void_p)
        else:
            without_deleter.append(self)
        tensor, size = self.managed.tensor, bits // 8
        tensor.data = ctypes.addressof(self.memory) if reader.below(8) != 7 else None
        device = reader.pick(((1, 0), (1, 0), (1, 0), (1, 1), (2, 0), (13, 0))) if reader.below(4) == 3 else (1, 0)
        self.device = tensor.device_type, tensor.device_id = device
        shape = [reader.around(length) for length in shape]
        packed = _sources._packed([length if 0 < length < 99 else 1 for length in shape], 1)
        self.strides = (ctypes.c_int64 * 8)(*(reader.around(stride) for stride in packed))
        self.shape = (ctypes.c_int64 * 8)(*shape)
        tensor.ndim = reader.around(len(shape)) if reader.below(4) == 3 else len(shape)
        tensor.code, tensor.bits, tensor.lanes = (reader.around(1) & 255, reader.around(bits) & 255,
                                                  reader.around(1) & 65535)
        if reader.below(8) != 7:
            tensor.shape = ctypes.cast(self.shape, type(tensor.shape))
        if reader.below(4):
            tensor.strides = ctypes.cast(self.strides, type(tensor.strides))
        tensor.byte_offset = reader.around(0) & (2**64 - 1)
        # not the name of the other structure, which nobody could detect
        self.name = reader.pick((b"used_dltensor", b"another")) if reader.below(8) == 7 else NAMES[self.versioned]
        self.modern = reader.below(2)
        self.size = size

    def delete(self, _):
        """Called by a thread of the plugin, also after an error."""
        self.deleted += 1

    def wait(self):
        """Waits for the deletion of the tensor, if one is expected. Until then the tensor must live."""
        while (self.capsule is not None and self.managed.deleter and not self.deleted
               and is_valid(self.capsule, b"used_" + self.name)):
            time.sleep(0.0001)

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **options):
        if not self.modern and options.get("max_version"):
            raise TypeError("a library from before DLPack 1.0")
        if self.name == b"another" and not self.modern:
            return self
        self.capsule = new_capsule(ctypes.addressof(self.managed), self.name, None)
        return self.capsule

    def holds(self, shape, row_bytes):
        """Whether the tensor's memory contains the rows that it promises."""
        tensor = self.managed.tensor
        begin = (tensor.data or 0) + tensor.byte_offset - ctypes.addressof(self.memory)
        pitch = self.strides[0] * self.size if tensor.strides else row_bytes
        ends = (begin, begin + pitch * (shape[0] - 1) + row_bytes)
        return 0 <= min(ends) and max(ends) <= ROOM and pitch >= 0


class Interface:
    """An array with __cuda_array_interface__."""

    def __init__(self, reader, shape, bits):
        self.__cuda_array_interface__ = {}
        fields = {
            "shape": lambda: tuple(reader.around(length) for length in shape),
            "typestr": lambda: reader.text() if reader.below(2) else f"|u{bits // 8}",
            "data": lambda: reader.pick(((4096, False), (reader.around(0), True), (), None, "0")),
            "strides": lambda: reader.pick((None, tuple(reader.around(length) for length in shape), 5, "x")),
            "version": lambda: reader.below(5), "mask": lambda: reader.pick((None, None, 5)), "stream": lambda: None}
        missing = reader.number(1)
        for index, (name, value) in enumerate(fields.items()):
            if not (missing & 128 and missing >> index & 1):
                self.__cuda_array_interface__[name] = value()


def make(reader):
    """Makes a buffer from arrays."""
    try:
        maker = frames.BufferMaker(reader.pick(FORMATS), reader.around(8), reader.around(4), device="cpu")
    except REFUSALS:
        return
    if max(maker.shapes[0]) > 64:
        return
    bits = 16 if maker.dtype == "uint16" else 8
    tensors = [Tensor(reader, shape, bits) for shape in maker.shapes]
    options = {}
    if reader.below(4) == 3:
        options = {"pts": reader.pick((None, 5, -1, 2**64)), "copy": reader.pick((None, True, False))}
    try:
        check(maker, tensors, bits, maker(*tensors, **options))
    except REFUSALS:
        pass
    for tensor in tensors:
        tensor.wait()
        assert tensor.deleted <= 1, "a tensor is deleted twice"


def check(maker, tensors, bits, buffer):
    """Compares a buffer with the arrays that it was made from."""
    rows = [int(numpy.prod(shape[1:])) * bits // 8 for shape in maker.shapes]
    meta = GstVideo.buffer_get_video_meta(buffer)
    for tensor, shape, row, stride in zip(tensors, maker.shapes, rows, meta.stride):
        assert (shape[0] == 1 or stride == tensor.strides[0] * tensor.size
                or not tensor.managed.tensor.strides), "another stride"
        assert stride >= row, "rows overlap"
    if all(tensor.holds(shape, row) for tensor, shape, row in zip(tensors, maker.shapes, rows)):
        known, map = buffer.map(Gst.MapFlags.READ)
        assert known and sum(map.data) >= 0
        buffer.unmap(map)


def import_interface(reader):
    """Imports an array of the CUDA array interface, as far as this works without a GPU."""
    try:
        imported = _sources.Imported(Interface(reader, (4, 8), 8), "cuda:0", None)
    except REFUSALS:
        return
    assert all(isinstance(number, int) for number in (imported.address, *imported.shape, *imported.strides))


def export(reader):
    """Exports a frame to arrays."""
    format, width, height = reader.pick(FORMATS), reader.around(8), reader.around(4)
    text = f"video/x-raw,format={format or 'X'},width=(int){width % 2**31 - 5},height=(int){height % 2**31}"
    buffer = Gst.Buffer.new_wrapped(bytes(1 + reader.around(96) % ROOM))
    if reader.below(2):
        known = GstVideo.VideoFormat.from_string(format)
        if known != GstVideo.VideoFormat.UNKNOWN and known != GstVideo.VideoFormat.ENCODED:
            offsets, strides = ([reader.around(0) % 2**63 for _ in range(4)],
                                [reader.signed(4) if reader.below(4) == 3 else 8 for _ in range(4)])
            GstVideo.buffer_add_video_meta_full(buffer, 0, known, width % 2**32, height % 2**32, 1 + reader.below(4),
                                                offsets, strides)
            text = reader.pick((None, text))
    try:
        frame = frames.Frame(buffer, text, writable=bool(reader.below(8) == 7))
        for plane in frame.planes:
            options = {
                "stream": reader.pick((None, None, None, 0, 1, -1, 5, "x")),
                "max_version": reader.pick((None, (1, 0), (0, 8), (2, 1))),
                "dl_device": reader.pick((None, (1, 0), (2, 0))), "copy": reader.pick((None, False, True))}
            before = numpy.asarray(plane)
            assert before.shape == plane.shape and before.sum() >= 0
            if not reader.below(4):
                numpy.from_dlpack(plane)
            plane.__dlpack__(**options)
        frame.release()
    except REFUSALS:
        pass


def one_input(data):
    reader = Reader(data)
    (make, make, export, import_interface)[reader.below(4)](reader)
