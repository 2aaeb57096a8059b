// SPDX-License-Identifier: LGPL-2.1-or-later
#include "../gaussian.hpp"

namespace cudavision::detail {

Result<std::unique_ptr<Filter>> make_gaussian_cuda(GaussianPlan) { return Status::settings("not built yet"); }

}  // namespace cudavision::detail
