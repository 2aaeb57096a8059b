// SPDX-License-Identifier: LGPL-2.1-or-later
// The plugin under test, and the properties that its elements report.
#pragma once

#include <gst/gst.h>

#include <string>
#include <vector>

namespace cudavision::streams {

/// Initialises GStreamer and loads only this plugin: from GST_PLUGIN_PATH_1_0, or from the program's own folder. A
/// registry would scan every installed plugin.
void load_plugin();

/// The names of the plugin's elements. Empty if the plugin is not loaded.
std::vector<std::string> element_names();
/// The formats that the element's sink template lists for this memory (NULL: system memory).
std::vector<std::string> formats_of(const std::string& element, const char* feature);
/// Whether the element has request sink pads.
bool is_mixer(const std::string& element);

/// (transfer full) Makes an element on a backend. It shares the CUDA context of the others.
GstElement* make_element(const std::string& name, const std::string& backend);
/// Whether the element can leave the NULL state on this backend. `reason` is the element's error message.
bool works(const std::string& element, const std::string& backend, std::string& reason);

/// Handles a need-context or have-context message. As an application does, it gives all elements the first CUDA context
/// that one of them created. Creating one takes longer than a case.
void share_context(GstMessage* message);

}  // namespace cudavision::streams
