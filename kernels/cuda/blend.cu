// SPDX-License-Identifier: LGPL-2.1-or-later
#include "../blend.hpp"
#include "filter.hpp"

namespace cudavision::detail {

Result<std::unique_ptr<Blend>> make_blend_cuda(const Geometry&, const BlendColor&) {
  return Status::settings("not there yet");
}

}  // namespace cudavision::detail
