// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <gst/gst.h>

#include "kernels/core/queue.hpp"

namespace cudavision {

/// "memory:CUDAMemory", also where this build has no libgstcuda.
extern const char* const cuda_memory_feature;

/// (transfer full) What a video pad can carry: every format of the table in CUDA memory, as far as the installed libgstcuda
/// allocates it (none in a build without CUDA), and in system memory; sizes 1×1 to 16384×16384.
GstCaps* video_template_caps();

/// (transfer full) The same pictures as in `caps`, in each memory that an element may use: CUDA memory first, where `with_cuda`.
/// What is no raw video is left out.
GstCaps* any_memory_caps(GstCaps* caps, bool with_cuda);
/// (transfer full) The same for data other than video, of which libgstcuda need know nothing. Raw video is left out.
GstCaps* any_memory_data_caps(GstCaps* caps, bool with_cuda);
/// (transfer full) What of `caps` lies in memory that an element may use, without saying in which.
GstCaps* usable_caps(GstCaps* caps, bool with_cuda);

/// (transfer full) The structures of `caps` (taken) in their order, but those in CUDA memory before the others: a neighbour that takes or
/// gives both, in whatever order, then settles on CUDA memory.
GstCaps* cuda_memory_first(GstCaps* caps);
/// (transfer full) The answer to a caps query: `caps` (taken) as far as `filter` (may be NULL) has them, in its order but CUDA memory first.
GstCaps* filter_caps(GstCaps* caps, GstCaps* filter);

bool is_cuda_caps(GstCaps* caps);
/// Whether caps, of one media type, are of raw video.
bool is_video_caps(GstCaps* caps);

/// (transfer full) Picks the first media type, and one memory of several: CUDA memory where the peer names it, system memory where the
/// peer names but that; a peer that takes anything gets the memory of `input`. Takes `choices`.
GstCaps* choose_memory(GstCaps* choices, GstCaps* input, GstPad* peer);

}  // namespace cudavision
