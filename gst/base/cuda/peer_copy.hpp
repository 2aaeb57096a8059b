// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "gst/base/compat.hpp"
#include "kernels/core/image.hpp"
#include "kernels/core/status.hpp"

namespace cudavision {

/// A driver function that libgstcuda does not offer; nullptr if the driver is too old for it.
void* driver_function(const char* name);

/// Copies all planes from one CUDA context to another, which may belong to another device. The GPUs exchange them
/// directly if the hardware supports it and peer access is enabled (libgstcuda enables it). Otherwise the driver copies
/// through system memory. Errors: resource.
Status copy_from_peer(GstCudaContext* peer, const Image& from, GstCudaContext* own, const Image& to, CUstream stream);

/// The device number of a context.
int device_of(GstCudaContext* context);

}  // namespace cudavision
