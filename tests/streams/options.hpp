// SPDX-License-Identifier: LGPL-2.1-or-later
// The command line of a program.
#pragma once

#include <glib.h>

#include <string>

namespace cudavision::streams {

/// Parses the options. Returns false for a wrong option or an extra word; `wrong` then has the reason and lists the
/// options.
inline bool parse_options(int argc, char** argv, const GOptionEntry* entries, std::string& wrong) {
  g_autoptr(GOptionContext) context = g_option_context_new(nullptr);
  g_option_context_add_main_entries(context, entries, nullptr);
  g_autoptr(GError) error = nullptr;
  if (g_option_context_parse(context, &argc, &argv, &error) && argc < 2) return true;
  g_autofree gchar* help = g_option_context_get_help(context, TRUE, nullptr);
  wrong = std::string(error ? error->message : "there is no option " + std::string(argv[1])) + "\n" + help;
  return false;
}

}  // namespace cudavision::streams
