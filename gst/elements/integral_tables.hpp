// SPDX-License-Identifier: LGPL-2.1-or-later
// How cudaintegral outputs summed-area tables: in a meta, or instead of the frame as video/x-integral, whose caps are
// in integral_caps.cpp.
#pragma once

#include <gst/video/video.h>

#include <memory>
#include <string>

#include "gst/base/processor.hpp"
#include "gst/base/settings/properties.hpp"
#include "kernels/integral/integral.hpp"

namespace cudavision {

class Gpu;

inline constexpr Choice table_layouts[] = {
    {integral::TableLayout::inclusive, "inclusive", "W×H entries: (x, y) sums columns 0 to x, rows 0 to y"},
    {integral::TableLayout::padded, "padded", "(W+1)×(H+1) entries, the first row and column zero, as in OpenCV"}};

/// The tables in one buffer. All have the same type and size, and they are contiguous.
struct TableCaps {
  integral::SumType type;
  integral::TableLayout layout;
  int channels;  ///< number of tables: 1 (luma), or one for each component
};

/// The number of tables that channel=all gives, if all components have the size of the frame, so that one buffer can
/// hold the tables; otherwise 0.
int whole_channels(Format format);

/// The caps of the pad template. Width and height are numbers of entries: one more than the pixels of the frame if
/// layout=padded.
std::string table_caps_template();
/// (transfer full) The tables that can be made from the video in `caps` (GST_PAD_SINK), or the video from which the
/// tables in `caps` can be made (GST_PAD_SRC). Structures of the other kind are skipped.
GstCaps* transform_table_caps(GstPadDirection direction, GstCaps* caps);
/// (transfer full) The part of `choices` (taken) that is nearest to `wanted`, with a fixed format and number of
/// channels.
GstCaps* fixate_table_caps(GstCaps* choices, const TableCaps& wanted);
/// Reads fixed caps.
TableCaps read_table_caps(GstCaps* caps);

/// A processor that passes frames through and adds a GstCudaVisionIntegralMeta with the tables. `gpu`: the device, or
/// nullptr for the CPU backend.
std::unique_ptr<Processor> new_table_meta(std::unique_ptr<integral::Integral> integral, const integral::Params& params,
                                          const Gpu* gpu);

/// A processor that sends tables instead of the frame. All tables must have the same type and size; they are
/// contiguous, in the order R, G, B, A or Y, Cb, Cr. `gpu`: the device, or nullptr for the CPU backend. `on_device`:
/// whether the tables are sent in CUDA memory.
std::unique_ptr<Processor> new_table_data(std::unique_ptr<integral::Integral> integral, const Gpu* gpu, bool on_device);

}  // namespace cudavision
