// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <memory>

#include "gst/base/compat.hpp"
#include "kernels/core/image.hpp"
#include "kernels/core/status.hpp"

namespace cudavision {

/// A picture in device memory. The context must be current. Errors: resource.
Result<std::shared_ptr<const Image>> new_device_picture(GstCudaContext* context, const Geometry& geometry);

}  // namespace cudavision
