// SPDX-License-Identifier: LGPL-2.1-or-later
// The debug category of the plugin, "cudavision", for the files of gst/base that log.
// ElementBackend::install_properties() initialises it.
#pragma once

#include <gst/gst.h>

GST_DEBUG_CATEGORY_EXTERN(cudavision_debug);
#define GST_CAT_DEFAULT cudavision_debug
