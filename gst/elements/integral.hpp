// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <gst/gst.h>

namespace cudavision {

/// cudaintegral: summed-area tables, and filters on them (docs/elements/cudaintegral.md).
bool register_integral(GstPlugin* plugin);

}  // namespace cudavision
