// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

namespace cudavision::fuzz {

/// Initialises GStreamer and loads only this plugin: from GST_PLUGIN_PATH_1_0, or from the program's own folder. A
/// registry would scan every installed plugin.
void load_plugin();

}  // namespace cudavision::fuzz
