// SPDX-License-Identifier: LGPL-2.1-or-later
// The parameters and the results of the comparing and the opening kernel, for a plan and its frames.
#pragma once

#include <vector>

#include "kernels/diff/cuda_params.cuh"
#include "kernels/diff/plan.hpp"

namespace cudavision::diff {

View view_of(const Plane& plane);

/// The parameters that all frames share; they contain no addresses.
KernelParams params_of(const Plan& plan, const Schedule& schedule);
/// Sets the addresses of the planes of a frame, and the extent of whole strips. Planes that the kernels do not need
/// stay null.
void set_planes(KernelParams& p, const Plan& plan, const Layout& layout, const Frame& frame);

/// The references that restart with `src`, a picture of the analysis. p: the parameters for the analysis. ring: the
/// kept frames.
Restart restart_of(const Plan& plan, const KernelParams& p, const Image& src, const std::vector<Image>& ring);

/// The results of a frame; see Schedule::verdict_offset(). Adds the changed pixels of each cell to `changed`. record:
/// the record of the frame; stamp: its KernelParams::stamp.
FrameCounts collect_records(const Plan& plan, const Schedule& schedule, const unsigned char* record,
                            std::uint32_t stamp, std::vector<std::uint32_t>& changed);

}  // namespace cudavision::diff
