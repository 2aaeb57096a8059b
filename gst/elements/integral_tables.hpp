// SPDX-License-Identifier: LGPL-2.1-or-later
// How summed-area tables leave cudaintegral.
#pragma once

#include <memory>

#include "gst/base/processor.hpp"
#include "kernels/integral/integral.hpp"

namespace cudavision {

class Gpu;

/// A processor that lets frames pass and adds a GstCudaVisionIntegralMeta with the tables. `gpu`: the device, or
/// nullptr for the CPU backend.
std::unique_ptr<Processor> new_table_meta(std::unique_ptr<integral::Integral> integral, const integral::Params& params,
                                          const Gpu* gpu);

/// A processor that sends tables instead of the frame. All tables must be of one type and size; they follow each other
/// in the order R, G, B, A or Y, Cb, Cr. `gpu`: the device, or nullptr for the CPU backend. `on_device`: whether the
/// tables go out in CUDA memory.
std::unique_ptr<Processor> new_table_data(std::unique_ptr<integral::Integral> integral, const Gpu* gpu, bool on_device);

}  // namespace cudavision
