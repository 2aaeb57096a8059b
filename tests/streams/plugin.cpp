// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tests/streams/plugin.hpp"

#include <unistd.h>

#include <algorithm>
#include <mutex>

namespace cudavision::streams {
namespace {

std::mutex context_mutex;
GstContext* cuda_context = nullptr;

template <typename F>
void each_sink_template(const std::string& element, F&& f) {
  g_autoptr(GstElementFactory) factory = gst_element_factory_find(element.c_str());
  const GList* item = factory ? gst_element_factory_get_static_pad_templates(factory) : nullptr;
  for (; item; item = item->next)
    if (auto* pad = static_cast<GstStaticPadTemplate*>(item->data); pad->direction == GST_PAD_SINK) f(*pad);
}

/// Appends the formats in caps with this memory.
void add_formats(GstCaps* caps, const char* feature, std::vector<std::string>& formats) {
  for (guint i = 0; i < gst_caps_get_size(caps); ++i) {
    const GstCapsFeatures* features = gst_caps_get_features(caps, i);
    const GValue* list = gst_structure_get_value(gst_caps_get_structure(caps, i), "format");
    if (!list || !GST_VALUE_HOLDS_LIST(list)) continue;
    if (!(feature ? gst_caps_features_contains(features, feature)
                  : gst_caps_features_is_equal(features, GST_CAPS_FEATURES_MEMORY_SYSTEM_MEMORY)))
      continue;
    for (guint j = 0; j < gst_value_list_get_size(list); ++j)
      formats.push_back(g_value_get_string(gst_value_list_get_value(list, j)));
  }
}

}  // namespace

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

std::vector<std::string> element_names() {
  std::vector<std::string> names;
  GList* features = gst_registry_get_feature_list_by_plugin(gst_registry_get(), "cudavision");
  for (const GList* item = features; item; item = item->next)
    if (GST_IS_ELEMENT_FACTORY(item->data)) names.push_back(GST_OBJECT_NAME(item->data));
  gst_plugin_feature_list_free(features);
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::string> formats_of(const std::string& element, const char* feature) {
  std::vector<std::string> formats;
  each_sink_template(element, [&](GstStaticPadTemplate& pad) {
    g_autoptr(GstCaps) caps = gst_static_pad_template_get_caps(&pad);
    add_formats(caps, feature, formats);
  });
  return formats;
}

bool is_mixer(const std::string& element) {
  bool found = false;
  each_sink_template(element, [&](const GstStaticPadTemplate& pad) { found |= pad.presence == GST_PAD_REQUEST; });
  return found;
}

GstElement* make_element(const std::string& name, const std::string& backend) {
  GstElement* element = gst_element_factory_make(name.c_str(), nullptr);
  gst_object_ref_sink(element);
  gst_util_set_object_arg(G_OBJECT(element), "backend", backend.c_str());
  const std::lock_guard<std::mutex> lock(context_mutex);
  if (cuda_context) gst_element_set_context(element, cuda_context);
  return element;
}

bool works(const std::string& name, const std::string& backend, std::string& reason) {
  g_autoptr(GstElement) element = make_element(name, backend);
  g_autoptr(GstBus) bus = gst_bus_new();
  gst_element_set_bus(element, bus);
  const bool opened = gst_element_set_state(element, GST_STATE_READY) != GST_STATE_CHANGE_FAILURE;
  if (g_autoptr(GstMessage) message = gst_bus_pop_filtered(bus, GST_MESSAGE_ERROR)) {
    g_autoptr(GError) error = nullptr;
    gst_message_parse_error(message, &error, nullptr);
    reason = error->message;
  }
  gst_element_set_state(element, GST_STATE_NULL);
  gst_element_set_bus(element, nullptr);
  return opened;
}

void share_context(GstMessage* message) {
  const std::lock_guard<std::mutex> lock(context_mutex);
  if (GST_MESSAGE_TYPE(message) == GST_MESSAGE_HAVE_CONTEXT) {
    GstContext* context = nullptr;
    gst_message_parse_have_context(message, &context);
    if (!cuda_context && gst_context_has_context_type(context, "gst.cuda.context"))
      cuda_context = context;
    else
      gst_context_unref(context);
  } else if (GST_MESSAGE_TYPE(message) == GST_MESSAGE_NEED_CONTEXT) {
    const gchar* type = nullptr;
    gst_message_parse_context_type(message, &type);
    if (cuda_context && g_strcmp0(type, "gst.cuda.context") == 0)
      gst_element_set_context(GST_ELEMENT(GST_MESSAGE_SRC(message)), cuda_context);
  }
}

}  // namespace cudavision::streams
