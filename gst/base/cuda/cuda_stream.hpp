// SPDX-License-Identifier: LGPL-2.1-or-later
// How elements pass on memory that the GPU is still writing. This depends on the version of GStreamer's CUDA library:
//
//   since 1.24  Memory has a stream. Work submitted to it is in order with the memory's writers and readers, in all
//               elements.
//   1.22        Memory has no stream, and elements pass on finished memory. Elements of this plugin, which recognise
//               each other by handover_api() in allocation queries, pass on unfinished memory together with an event.
#pragma once

#include "gst/base/compat.hpp"

#if CUDAVISION_CUDA_STREAMS
#include "gst/base/cuda/cuda_stream_1_24.hpp"
#else
#include "gst/base/cuda/cuda_stream_1_22.hpp"
#endif
