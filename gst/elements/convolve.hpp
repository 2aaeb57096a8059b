// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <gst/gst.h>

namespace cudavision {

/// cudaconvolve: any K×K kernel (docs/elements/cudaconvolve.md).
bool register_convolve(GstPlugin* plugin);

}  // namespace cudavision
