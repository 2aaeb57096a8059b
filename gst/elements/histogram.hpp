// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <gst/gst.h>

namespace cudavision {

/// cudahistogram: statistics of every frame (docs/elements/cudahistogram.md).
bool register_histogram(GstPlugin* plugin);

}  // namespace cudavision
