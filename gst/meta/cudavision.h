// SPDX-License-Identifier: LGPL-2.1-or-later
/**
 * What cudavision's elements leave on buffers, for applications and other elements: plain C, neither CUDA nor OpenCV needed.
 * pkg-config: gstreamer-cudavision-1.0. Include as <gst/cudavision/cudavision.h>.
 */
#pragma once

#include "histogram_meta.h"
#include "integral_meta.h"
