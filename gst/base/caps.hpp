// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <gst/gst.h>

#include "kernels/core/image.hpp"

namespace cudavision {

/// The caps feature "memory:CUDAMemory". Also defined in a build without libgstcuda.
extern const char* const cuda_memory_feature;

/// Whether the installed GStreamer has the format. It may be older than the table of formats.
bool is_known(const FormatInfo& format);

/// (transfer full) The caps of a video pad template. CUDA memory: the formats that the installed libgstcuda can
/// allocate (none in a build without CUDA). System memory: all formats that GStreamer has. Sizes: 1×1 to
/// max_frame_side².
GstCaps* video_template_caps();

/// (transfer full) The raw video in `caps`, in each memory that an element may use: first in CUDA memory, if
/// `with_cuda`, and in system memory. Other structures are omitted.
GstCaps* any_memory_caps(GstCaps* caps, bool with_cuda);
/// (transfer full) The data other than video in `caps`, in any format and in the same memories. Raw video is omitted.
GstCaps* any_memory_data_caps(GstCaps* caps, bool with_cuda);
/// (transfer full) The structures of `caps` in memory that an element may use, without their features.
GstCaps* usable_caps(GstCaps* caps, bool with_cuda);

/// (transfer full) `caps` (taken) with the structures in CUDA memory moved to the front. A neighbour that can use both
/// memories then chooses CUDA memory.
GstCaps* cuda_memory_first(GstCaps* caps);
/// (transfer full) The answer to a caps query: the intersection of `filter` (nullptr: all) and `caps` (taken), in the
/// order of `filter` except that CUDA memory comes first.
GstCaps* filter_caps(GstCaps* caps, GstCaps* filter);

/// Whether the first structure of caps is in CUDA memory.
bool is_cuda_caps(GstCaps* caps);
/// Whether the first structure of caps is raw video.
bool is_video_caps(GstCaps* caps);

/// (transfer full) The structures of `choices` (taken) that have the first media type and one memory: CUDA memory if
/// the peer names it, system memory if the peer names only that, or the memory of `input` if the peer accepts anything.
GstCaps* choose_memory(GstCaps* choices, GstCaps* input, GstPad* peer);

/// (transfer full) `caps` (taken), the answer of a sink pad to a caps query with a filter, without structures in system
/// memory that upstream can also make in CUDA memory, if all consumers of upstream accept CUDA memory. So upstream
/// chooses CUDA memory even if elements in between (queue, tee, videorate) change the order of the answer. For an
/// element that uses CUDA.
GstCaps* insist_on_cuda(GstCaps* caps, GstPad* sink);
/// Whether frames of these fixed caps are in system memory at `pad`, although the peer names CUDA memory for them.
bool could_be_in_cuda(GstPad* pad, GstCaps* frames);

}  // namespace cudavision
