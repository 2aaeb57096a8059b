// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <gst/gst.h>

namespace cudavision {

/// cudablend: blends and composes the frames of its pads (docs/elements/cudablend.md).
bool register_blend(GstPlugin* plugin);

}  // namespace cudavision
