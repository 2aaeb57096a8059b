// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tests/fuzz/plugin.hpp"

#include <gst/gst.h>
#include <unistd.h>

#include <climits>
#include <string>

namespace cudavision::fuzz {

void load_plugin() {
  g_setenv("GST_REGISTRY_DISABLE", "yes", TRUE);
  gst_init(nullptr, nullptr);
  const char* path = g_getenv("GST_PLUGIN_PATH_1_0");
  std::string searched = path ? path : "";
  char program[PATH_MAX];
  if (const ssize_t length = readlink("/proc/self/exe", program, sizeof program); searched.empty() && length > 0) {
    searched.assign(program, std::size_t(length));
    searched.resize(searched.rfind('/'));
  }
  gchar** folders = g_strsplit(searched.c_str(), ":", 0);
  for (gchar** folder = folders; *folder; ++folder) {
    const std::string file = std::string(*folder) + "/libgstcudavision.so";
    if (g_file_test(file.c_str(), G_FILE_TEST_EXISTS)) gst_object_unref(gst_plugin_load_file(file.c_str(), nullptr));
  }
  g_strfreev(folders);
}

}  // namespace cudavision::fuzz
