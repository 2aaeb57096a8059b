// SPDX-License-Identifier: LGPL-2.1-or-later
#include <gst/gst.h>

#include "elements/blend.hpp"
#include "elements/convolve.hpp"
#include "elements/diff.hpp"
#include "elements/gaussian.hpp"
#include "elements/histogram.hpp"
#include "elements/integral.hpp"

static gboolean plugin_init(GstPlugin* plugin) {
  using namespace cudavision;
  return register_blend(plugin) && register_convolve(plugin) && register_diff(plugin) && register_gaussian(plugin) && register_histogram(plugin) &&
         register_integral(plugin);
}

GST_PLUGIN_DEFINE(GST_VERSION_MAJOR, GST_VERSION_MINOR, cudavision, "Image processing on CUDA, or on the CPU", plugin_init, VERSION,
                  "LGPL", "cudavision", "cudavision")
