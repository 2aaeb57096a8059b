// SPDX-License-Identifier: LGPL-2.1-or-later
// Frames as arrays, for the Python module cudavision.frames, which calls these functions of the plugin through ctypes.
// Other programs must not use them: the module checks cudavision_frames_abi(), and both change together.
// gst/python/cudavision/_library.py has the same structures.
//
//   GstBuffer ──cudavision_frame_open()──▶ Owner ──cudavision_dlpack_new()──▶ DLManagedTensor ──▶ NumPy, PyTorch …
//      ▲                                    │ each tensor holds a reference to the owner; the owner holds the buffer,
//      └──── when the GPU has done all ─────┘ so the pool cannot reuse it
//   GstBuffer ◀──cudavision_maker_make()── arrays ◀── sources (tensors or Python objects), which the buffer keeps
//
// Functions that can fail return 0, or 1: wrong argument, 2: CUDA or memory failed, 3: the buffer does not hold such a
// frame, 4: the given time was exceeded. They write one sentence to `error`, which has room for `room` bytes.
#pragma once

#include <gst/gst.h>

#include <cstddef>
#include <cstdint>

#define CUDAVISION_FRAMES_API extern "C" __attribute__((visibility("default")))
#define CUDAVISION_FRAMES_ABI 4

/// An array: its address and layout. Elements of a row are contiguous; rows are `strides[0]` bytes apart.
struct CudavisionArray {
  void* data;
  std::int32_t device_type;  ///< 1: system memory, 2: CUDA memory, as in DLPack
  std::int32_t device_id;
  std::int32_t code;  ///< 1: unsigned integers, 2: floating point, as in DLPack
  std::int32_t bits;  ///< of an element: 8, 16, 32 or 64
  std::int32_t dimensions;
  std::int32_t writable;
  std::int64_t shape[3];
  std::int64_t strides[3];  ///< in bytes
};

struct CudavisionFrame {
  char format[16];  ///< the GStreamer name
  std::int32_t width, height;
  std::int32_t n_planes;
  CudavisionArray planes[4];
};

/// The object that owns the memory of an imported array: a DLManagedTensor (versioned or not), or a reference to a
/// Python object.
struct CudavisionSource {
  void* managed;
  std::int32_t versioned;
  void* object;
};

/// Functions of the Python interpreter.
struct CudavisionPython {
  int (*capsule_is_valid)(void* capsule, const char* name);
  void* (*capsule_pointer)(void* capsule, const char* name);
  int (*holds_gil)();
  int (*ensure_gil)();
  void (*release_gil)(int state);
  void (*decrement)(void* object);
};

namespace cudavision::frames {
class Owner;
class Maker;
}  // namespace cudavision::frames
using CudavisionOwner = cudavision::frames::Owner;
using CudavisionMaker = cudavision::frames::Maker;

CUDAVISION_FRAMES_API int cudavision_frames_abi();
/// Call this once, before any other function, and with nullptr when the interpreter ends. After that, references to
/// objects are not dropped.
CUDAVISION_FRAMES_API void cudavision_frames_python(const CudavisionPython* functions);

/// Opens a video frame. `caps`: the caps of the frame, or nullptr if the buffer has a GstVideoMeta. `most_refs`: 0 for
/// arrays that are only read; otherwise arrays may be written if the buffer has at most this many references (waits up
/// to 1 s for this).
CUDAVISION_FRAMES_API int cudavision_frame_open(GstBuffer* buffer, const GstCaps* caps, int most_refs,
                                                CudavisionFrame* frame, CudavisionOwner** owner, char* error,
                                                std::size_t room);
/// Opens the first `bytes` bytes of a memory that belongs to the buffer or one of its metas. Sets data, device and
/// `writable` of `array`.
CUDAVISION_FRAMES_API int cudavision_memory_open(GstBuffer* buffer, GstMemory* memory, std::size_t bytes,
                                                 CudavisionArray* array, CudavisionOwner** owner, char* error,
                                                 std::size_t room);
/// An owner that keeps a buffer alive, for data of its metas in system memory.
CUDAVISION_FRAMES_API CudavisionOwner* cudavision_buffer_keep(GstBuffer* buffer);
CUDAVISION_FRAMES_API void cudavision_owner_unref(CudavisionOwner* owner);
/// Makes later work of a stream wait, on the device, for the work that is still writing the memory. `stream`: 1 (legacy
/// default stream), 2 (per-thread default stream), a handle, or −1 for none: then it only records that others may use
/// the memory.
CUDAVISION_FRAMES_API int cudavision_owner_wait(CudavisionOwner* owner, std::intptr_t stream, char* error,
                                                std::size_t room);
/// Makes users of the buffer wait for the work submitted to a stream so far; −1: to all streams of the device's primary
/// context. If the memory has no stream, waits on the host, at most `milliseconds`.
CUDAVISION_FRAMES_API int cudavision_owner_hand_back(CudavisionOwner* owner, std::intptr_t stream, int milliseconds,
                                                     char* error, std::size_t room);
/// Makes a DLManagedTensor, or a DLManagedTensorVersioned, which holds a reference to the owner.
CUDAVISION_FRAMES_API void* cudavision_dlpack_new(CudavisionOwner* owner, const CudavisionArray* array, int versioned);
/// The destructor of a capsule: deletes a tensor that nobody consumed.
CUDAVISION_FRAMES_API void cudavision_capsule_destroyed(void* capsule);
/// The number of owners that were released but that the GPU may still use. Waits for them for at most `milliseconds`.
CUDAVISION_FRAMES_API int cudavision_frames_drain(int milliseconds);

/// (transfer full) The GstContext of a device's primary CUDA context. PyTorch, CuPy, JAX and Numba use this context.
CUDAVISION_FRAMES_API int cudavision_frames_context(int device_id, GstContext** context, char* error, std::size_t room);

/// Returns the planes of a frame with this format and size, with tightly packed rows and without data.
CUDAVISION_FRAMES_API int cudavision_frame_layout(const char* format, int width, int height, CudavisionFrame* frame,
                                                  char* error, std::size_t room);
/// Creates a maker of CUDA buffers for frames of one format and size. `stream` receives the stream on which the arrays
/// must be ready.
CUDAVISION_FRAMES_API int cudavision_maker_new(const char* format, int width, int height, int device_id,
                                               CudavisionMaker** maker, std::intptr_t* stream, char* error,
                                               std::size_t room);
CUDAVISION_FRAMES_API void cudavision_maker_free(CudavisionMaker* maker);
/// Makes the maker's stream wait for the work submitted to another stream so far.
CUDAVISION_FRAMES_API int cudavision_maker_wait(CudavisionMaker* maker, std::intptr_t stream, char* error,
                                                std::size_t room);
/// Makes a buffer (transfer full) from arrays that have the layout of cudavision_frame_layout(), except the distance
/// between rows. Takes ownership of the sources, even if it fails. `maker`: nullptr for system memory, which is never
/// copied. `copy`: 0: if necessary, 1: always, 2: never. `copied` receives whether the arrays were copied.
CUDAVISION_FRAMES_API int cudavision_maker_make(CudavisionMaker* maker, const CudavisionFrame* frame,
                                                const CudavisionSource* sources, int n_sources, int copy,
                                                int milliseconds, GstBuffer** buffer, int* copied, char* error,
                                                std::size_t room);
