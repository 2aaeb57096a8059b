// SPDX-License-Identifier: LGPL-2.1-or-later
#include "../convolve.hpp"

namespace cudavision::detail {

Result<std::unique_ptr<Filter>> make_convolve_cuda(ConvolvePlan) { return Status::settings("not built yet"); }

}  // namespace cudavision::detail
