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
  return register_blend(plugin) && register_convolve(plugin) && register_diff(plugin) && register_gaussian(plugin) &&
         register_histogram(plugin) && register_integral(plugin);
}

/// GStreamer's version, then the plugin's own: gst-inspect-1.0 --exists answers yes only for versions from its own up.
static const gchar* version() {
  static gchar text[64];
  guint major, minor, micro, nano;
  gst_version(&major, &minor, &micro, &nano);
  g_snprintf(text, sizeof text, "%u.%u.%u-" PACKAGE "-" VERSION, major, minor, micro);
  return text;
}

GST_PLUGIN_DEFINE(GST_VERSION_MAJOR, GST_VERSION_MINOR, cudavision, "Image processing on CUDA, or on the CPU", plugin_init,
                  version(), "LGPL", "cudavision", "cudavision")
