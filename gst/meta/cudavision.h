// SPDX-License-Identifier: LGPL-2.1-or-later
/**
 * The metas that cudavision's elements add to buffers, for applications and other elements: plain C, without CUDA or
 * OpenCV. pkg-config: gstreamer-cudavision-1.0. Include as <gst/cudavision/cudavision.h>.
 */
#pragma once

#include "histogram_meta.h"
#include "integral_meta.h"
