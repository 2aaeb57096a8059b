// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <gst/gst.h>

namespace cudavision {

/// cudagaussian: Gaussian blur (docs/elements/cudagaussian.md).
bool register_gaussian(GstPlugin* plugin);

}  // namespace cudavision
