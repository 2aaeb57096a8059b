# SPDX-License-Identifier: LGPL-2.1-or-later
"""Arrays of other libraries, read through DLPack or the CUDA array interface."""

import ctypes
import operator
from ctypes import (POINTER, Structure, c_char_p, c_int32, c_int64, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p,
                    py_object)

from ._arrays import CUDA, device_name, device_of
from ._library import Source, call


class _Tensor(Structure):
    _fields_ = [("data", c_void_p), ("device_type", c_int32), ("device_id", c_int32), ("ndim", c_int32),
                ("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16), ("shape", POINTER(c_int64)),
                ("strides", POINTER(c_int64)), ("byte_offset", c_uint64)]


class _Versioned(Structure):
    _fields_ = [("major", c_uint32), ("minor", c_uint32), ("context", c_void_p), ("deleter", c_void_p),
                ("flags", c_uint64), ("tensor", _Tensor)]


_api = ctypes.pythonapi
_api.PyCapsule_IsValid.argtypes = [py_object, c_char_p]
_api.PyCapsule_GetPointer.restype, _api.PyCapsule_GetPointer.argtypes = c_void_p, [py_object, c_char_p]
_api.PyCapsule_SetName.argtypes = [py_object, c_char_p]
MOST_DIMENSIONS = 64  # no library has more
_NAMES = {
    False: (b"dltensor", c_char_p(b"used_dltensor")),
    True: (b"dltensor_versioned", c_char_p(b"used_dltensor_versioned")),
}


class Imported:
    """An array of another library: its address, shape, strides in bytes, type and device. Until take() it may
    be dropped."""

    def __init__(self, array, device, maker):
        """`device`: where it must be; `maker`: the address of the maker whose stream must follow the work on it, or
        None for system memory. Raises BufferError if the array is elsewhere, and TypeError if it is not an array."""
        self.address = self.shape = self.strides = self.dtype = None
        self._capsule = self._object = None
        if hasattr(array, "__dlpack__"):
            where = tuple(map(int, array.__dlpack_device__()))
            if device_name(*where) != device or where[0] not in (1, CUDA):
                raise BufferError(
                    f"an array is on {device_name(*where)}, and the buffer on {device}: copy the array there first"
                )
            self._from_dlpack(array, {"stream": maker.stream} if where[0] == CUDA else {})
        elif device_of(device)[0] == CUDA and hasattr(array, "__cuda_array_interface__"):
            self._from_interface(array, maker)
        else:
            raise TypeError(
                f"{type(array).__name__} is not an array that can be used on {device}: it has no __dlpack__"
                + (" and no __cuda_array_interface__" if device != "cpu" else "")
            )

    def _from_dlpack(self, array, stream):
        try:
            self._capsule = array.__dlpack__(max_version=(1, 0), **stream)
        except TypeError:  # a library from before DLPack 1.0
            self._capsule = array.__dlpack__(**stream)
        self._versioned = bool(_api.PyCapsule_IsValid(self._capsule, _NAMES[True][0]))
        self._managed = _api.PyCapsule_GetPointer(self._capsule, _NAMES[self._versioned][0])
        if self._versioned:
            versioned = _Versioned.from_address(self._managed)
            if versioned.major != 1:
                raise BufferError(f"the array is of DLPack {versioned.major}, which this module does not support")
            tensor = versioned.tensor
        else:
            tensor = _Tensor.from_address(self._managed)
        size = tensor.bits // 8
        if not 0 <= tensor.ndim <= MOST_DIMENSIONS:
            raise BufferError(f"the array has {tensor.ndim} dimensions: planes have two or three")
        if not tensor.shape:  # which ctypes would read
            raise BufferError("the array has no shape")
        self.address = (tensor.data or 0) + tensor.byte_offset
        self.shape = tuple(tensor.shape[: tensor.ndim])
        self.strides = (
            tuple(stride * size for stride in tensor.strides[: tensor.ndim])
            if tensor.strides
            else _packed(self.shape, size)
        )
        self._check_numbers()
        kinds = {0: "int", 1: "uint", 2: "float"}
        self.dtype = f"{kinds.get(tensor.code, 'unknown')}{tensor.bits}" + (
            f"x{tensor.lanes}" if tensor.lanes != 1 else ""
        )

    def _from_interface(self, array, maker):
        interface = array.__cuda_array_interface__
        if interface.get("mask") is not None:
            raise BufferError("an array with a mask cannot become a buffer")
        try:
            kind, size = interface["typestr"][1:2], int(interface["typestr"][2:])
            self.address = operator.index(interface["data"][0])
            self.shape = tuple(map(operator.index, interface["shape"]))
            self.strides = tuple(map(operator.index, interface.get("strides") or _packed(self.shape, size)))
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise BufferError(
                f"the array's __cuda_array_interface__ is wrong: {type(error).__name__}: {error}"
            ) from error
        self._check_numbers()
        self.dtype = f"{dict(u='uint', i='int', f='float').get(kind, 'unknown')}{8 * size}"
        self._object = array
        stream = interface.get("stream")
        if stream is not None:  # None: the work on the array is done
            call("cudavision_maker_wait", maker.address, stream)

    def _check_numbers(self):
        """ctypes would truncate numbers of more than 64 bits."""
        if not 0 <= self.address < 2**64 or not all(-(2**63) <= stride < 2**63 for stride in self.strides):
            raise BufferError("the array is beyond the end of memory")
        if len(self.strides) != len(self.shape):
            raise BufferError(f"the array has {len(self.shape)} dimensions, but {len(self.strides)} strides")

    def take(self) -> Source:
        """Takes the array from its capsule. The plugin releases it when the buffer no longer needs it."""
        if self._capsule is None:
            _api.Py_IncRef(py_object(self._object))
            return Source(None, 0, id(self._object))
        _api.PyCapsule_SetName(self._capsule, _NAMES[self._versioned][1])
        return Source(self._managed, int(self._versioned), None)


def _packed(shape, size):
    strides = []
    for length in reversed(shape):
        strides.insert(0, size)
        size *= length
    return tuple(strides)
