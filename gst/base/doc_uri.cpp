// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gst/base/doc_uri.hpp"

#include <dlfcn.h>
#include <glib.h>

namespace cudavision {

std::string doc_uri(const std::string& page) {
  if (*DOCS_URL != 0) return DOCS_URL "/" + page;
  Dl_info plugin;
  if (dladdr(reinterpret_cast<const void*>(&doc_uri), &plugin) == 0 || plugin.dli_fname == nullptr) return {};
  g_autofree gchar* folder = g_path_get_dirname(plugin.dli_fname);
  g_autofree gchar* file =
      g_canonicalize_filename((std::string(folder) + "/" DOCS_FROM_PLUGIN "/" + page).c_str(), nullptr);
  g_autofree gchar* uri = g_file_test(file, G_FILE_TEST_EXISTS) ? g_filename_to_uri(file, nullptr, nullptr) : nullptr;
  return uri == nullptr ? "" : uri;
}

}  // namespace cudavision
