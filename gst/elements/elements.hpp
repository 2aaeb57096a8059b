// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <gst/gst.h>

#include "operations.h"

namespace cudavision {

/// register_NAME(plugin) registers the element cudaNAME; its file is NAME.cpp. Returns false if GStreamer rejects it.
#define CUDAVISION_DECLARE(name) bool register_##name(GstPlugin* plugin);
CUDAVISION_OPERATIONS(CUDAVISION_DECLARE)
#undef CUDAVISION_DECLARE

}  // namespace cudavision
