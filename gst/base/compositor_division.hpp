// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "kernels/blend/blend.hpp"

namespace cudavision {

/// How GStreamer's compositor divides by 255 on this machine: as its ORC library does, or to the nearest without ORC.
blend::Division compositor_division();

}  // namespace cudavision
