# SPDX-License-Identifier: LGPL-2.1-or-later
"""Arrays that other libraries read without a copy: DLPack (https://dmlc.github.io/dlpack/latest/python_spec.html) and
the CUDA array interface, version 3 (https://numba.readthedocs.io/en/stable/cuda/cuda_array_interface.html)."""

import ctypes
from ctypes import byref, c_char_p, c_void_p, py_object

from ._library import ArrayData, call, library

CPU, CUDA = 1, 2  # device types of DLPack
LEGACY, PER_THREAD = 1, 2  # default streams
NO_STREAM = -1
FIRST_HANDLE = 4096  # no stream has a lower address

_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype, _new_capsule.argtypes = py_object, [c_void_p, c_char_p, c_void_p]
_NAMES = (c_char_p(b"dltensor"), c_char_p(b"dltensor_versioned"))  # capsules point to them


class Owner:
    """A reference to what keeps the memory of arrays."""

    def __init__(self, address):
        self.address = address
        self._unref = library().cudavision_owner_unref

    def __del__(self):
        self._unref(self.address)


def device_name(kind, number):
    """The name of a device: "cpu", or "cuda:0"."""
    return f"cuda:{number}" if kind == CUDA else "cpu"


def device_of(name):
    """The device type and the number of a device such as "cpu", "cuda" or "cuda:1"."""
    kind, _, number = str(name).partition(":")
    if kind == "cpu" and not number:
        return CPU, 0
    if kind == "cuda" and (not number or number.isdecimal()):
        return CUDA, int(number or 0)
    raise ValueError(f'a device is "cpu", "cuda" or "cuda:NUMBER", not {name!r}')


def stream_number(stream):
    """The number of a CUDA stream: an int as in DLPack, or a stream of PyTorch, CuPy or Numba."""
    for attribute in ("cuda_stream", "ptr"):  # PyTorch, CuPy
        if isinstance(number := getattr(stream, attribute, None), int):
            return number or LEGACY
    handle = getattr(stream, "handle", None)  # Numba
    if handle is not None and isinstance(number := getattr(handle, "value", handle) or LEGACY, int):
        return number
    if isinstance(stream, bool) or not isinstance(stream, int):
        raise TypeError(f"a stream is an int, or a stream of PyTorch, CuPy or Numba, not {stream!r:.80}")
    if stream == 0:
        raise ValueError("stream 0 is ambiguous: 1 is the legacy default stream, 2 the per-thread default stream")
    if stream not in (NO_STREAM, LEGACY, PER_THREAD) and stream < FIRST_HANDLE:
        raise ValueError(
            f"{stream} is not a CUDA stream: -1 is none, 1 and 2 are the default streams, others are handles"
        )
    return stream


class Array:
    """An array in memory that belongs to a buffer. Libraries take it as it is: `torch.from_dlpack(array)`,
    `cupy.from_dlpack(array)`, `numpy.asarray(array)`, `numba.cuda.as_cuda_array(array)`. The buffer stays out of its
    pool until all of these arrays are dropped, and the GPU has done the work that was submitted until then.

    shape, strides: of the array; strides in bytes
    dtype: "uint8", "uint16", "uint32", "uint64", "float32" or "float64"
    device: "cpu" or "cuda:0"
    writable: whether it may be changed
    """

    def __init__(self, owner: Owner, data: ArrayData):
        self._owner = owner
        self._data = data
        self.shape = tuple(data.shape[: data.dimensions])
        self.strides = tuple(data.strides[: data.dimensions])
        self.dtype = f"{'float' if data.code == 2 else 'uint'}{data.bits}"
        self.device = device_name(data.device_type, data.device_id)
        self.writable = bool(data.writable)

    def __repr__(self):
        return f"<{type(self).__name__} {self.shape} {self.dtype} on {self.device}>"

    @property
    def address(self) -> int:
        """The address of the first element."""
        return self._data.data

    def __dlpack_device__(self):
        return self._data.device_type, self._data.device_id

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        """A capsule for one consumer. Work that is submitted to `stream` later follows the work that still writes the
        array. Raises ValueError for a wrong stream, and BufferError if the array would have to be copied."""
        if copy:
            raise BufferError(
                "this array is not copied: take it without a copy, and copy it there (tensor.clone(), array.copy())"
            )
        if dl_device is not None and tuple(map(int, dl_device)) != self.__dlpack_device__():
            raise BufferError(
                f"the array is on {self.device}, not on {device_name(*map(int, dl_device))}: copy it there first"
            )
        if self._data.device_type == CUDA:
            self._follow(LEGACY if stream is None else stream)
        elif stream is not None:
            raise ValueError("an array in system memory has no stream: stream must be None")
        versioned = int(max_version is not None and max_version[0] >= 1)
        plugin = library()
        managed = plugin.cudavision_dlpack_new(self._owner.address, byref(self._data), versioned)
        destructor = ctypes.cast(plugin.cudavision_capsule_destroyed, c_void_p)
        return _new_capsule(managed, _NAMES[versioned], destructor)

    def _follow(self, stream):
        """Makes later work of a stream follow the work that still writes the array, on the device."""
        call("cudavision_owner_wait", self._owner.address, stream_number(stream))

    def _interface(self):
        contiguous, stride = True, self._data.bits // 8
        for size, actual in zip(reversed(self.shape), reversed(self.strides)):
            contiguous &= size == 1 or actual == stride
            stride *= size
        kind = "f" if self._data.code == 2 else "u"
        size = self._data.bits // 8
        return {
            "shape": self.shape,
            "typestr": f"{'|' if size == 1 else '<'}{kind}{size}",
            "version": 3,
            "data": (self._data.data, not self.writable),
            "strides": None if contiguous else self.strides,
        }

    @property
    def __cuda_array_interface__(self):
        # The legacy default stream is ordered, and named, because some consumers (PyTorch) ignore the entry and use
        # that stream.
        if self._data.device_type != CUDA:
            raise AttributeError("the array is in system memory: it has no __cuda_array_interface__")
        self._follow(LEGACY)
        return dict(self._interface(), stream=LEGACY)

    @property
    def __array_interface__(self):
        if self._data.device_type != CPU:
            raise AttributeError(f"the array is on {self.device}, not in system memory: it has no __array_interface__")
        return self._interface()
