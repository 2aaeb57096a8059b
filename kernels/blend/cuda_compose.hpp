// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <vector>

#include "kernels/blend/blend.hpp"

namespace cudavision::cuda {

/// Composes any layers. Launches one kernel.
void compose(const detail::BlendTarget& target, const std::vector<detail::BlendLayer>& layers, Queue queue);

}  // namespace cudavision::cuda
