// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <gst/gst.h>

namespace cudavision {

/// cudadiff: frame differencing and motion (docs/elements/cudadiff.md).
bool register_diff(GstPlugin* plugin);

}  // namespace cudavision
