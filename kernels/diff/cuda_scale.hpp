// SPDX-License-Identifier: LGPL-2.1-or-later
// Shrinking and enlarging on the device, for the plan in cuda.cu.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "kernels/diff/plan.hpp"

namespace cudavision::diff {

/// The channels of a picture, and of the same picture at 1 / 2^log2_scale of its size. Samples are as stored.
struct Scaling {
  struct Channel {
    const unsigned char* from;  ///< null: `value` is written
    unsigned char* to;
    std::ptrdiff_t from_pitch, to_pitch;
    int step;                     ///< from sample to sample, in samples
    int width, height;            ///< samples of `to`
    int from_width, from_height;  ///< samples of `from`
    bool copied;                  ///< enlarging: `from` already has the size of `to`
    unsigned value;               ///< as stored
  };
  Channel channels[4];
  int count = 0;
  int log2_scale = 0;
  int shift = 0, max = 255;  ///< of the format, see sample_of()
};

/// The compared channels of `whole`, a picture of the size of the frame, and of `small`, which has the size of the
/// analysis. When enlarging, also the copied channels of `src`, and black for channels that are not compared.
Scaling scaling_of(const Plan& plan, const Image& small, const Image& whole, bool shrinks, const Image& src);
/// Loads both kernels. Errors: resource.
Status load_scaling(int sample_bytes);
/// `shrinks`: writes the means of blocks, see class Diff; otherwise repeats samples. Errors: resource.
Status launch_scaling(const Scaling& job, int sample_bytes, bool shrinks, cudaStream_t stream);

}  // namespace cudavision::diff
