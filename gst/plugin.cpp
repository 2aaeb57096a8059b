// SPDX-License-Identifier: LGPL-2.1-or-later
#include <gst/gst.h>

#include <string>

#include "gst/base/doc_uri.hpp"
#include "gst/elements/elements.hpp"
#include "kernels/core/backend.hpp"
#include "kernels/cpu/threads.hpp"

static gboolean plugin_init(GstPlugin* plugin) {
  if constexpr (cudavision::built_with(cudavision::Backend::cpu)) cudavision::cpu::use_threads_of_environment();
  bool registered = true;
#define REGISTER(name) registered = cudavision::register_##name(plugin) && registered;
  CUDAVISION_OPERATIONS(REGISTER)
#undef REGISTER
  return registered;
}

/// The version of GStreamer, followed by the version of the plugin: gst-inspect-1.0 --exists does not find plugins
/// whose version is below GStreamer's.
static const gchar* version() {
  static gchar text[64];
  guint major, minor, micro, nano;
  gst_version(&major, &minor, &micro, &nano);
  g_snprintf(text, sizeof text, "%u.%u.%u-" PACKAGE "-" VERSION, major, minor, micro);
  return text;
}

/// The address of the project's front page.
static const gchar* origin() {
  static const std::string uri = cudavision::doc_uri("README.md");
  return uri.empty() ? PACKAGE : uri.c_str();
}

GST_PLUGIN_DEFINE(GST_VERSION_MAJOR, GST_VERSION_MINOR, cudavision, "Image processing on CUDA, or on the CPU",
                  plugin_init, version(), "LGPL", PACKAGE " " VERSION, origin())
