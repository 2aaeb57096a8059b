// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <gst/gst.h>

#include <sstream>
#include <string>
#include <vector>

namespace cudavision::test {

/// Sets properties from command-line text ("sigma=2 regions=\"0,0 9,0 9,9\""), all in one g_object_set. Returns what is wrong with the text, and then
/// sets none; empty: nothing.
inline std::string set_from_text(gpointer object, const std::string& settings) {
  std::vector<std::string> names;
  std::vector<GValue> values;
  std::string wrong;
  std::istringstream words(settings);
  for (std::string word; wrong.empty() && words >> word;) {
    const std::size_t equals = word.find('=');
    names.push_back(word.substr(0, equals));
    std::string text = word.substr(equals + 1);
    if (text.size() > 1 && text[0] == '"') {  // up to the next quote
      std::string rest;
      if (text.back() == '"')
        text.pop_back();
      else
        std::getline(words, rest, '"');
      text = text.substr(1) + rest;
    }
    GParamSpec* spec = g_object_class_find_property(G_OBJECT_GET_CLASS(object), names.back().c_str());
    if (!spec) {
      wrong = std::string(G_OBJECT_TYPE_NAME(object)) + " has no property " + names.back();
      break;
    }
    values.push_back(G_VALUE_INIT);
    g_value_init(&values.back(), spec->value_type);
    if (!gst_value_deserialize_with_pspec(&values.back(), text.c_str(), spec)) wrong = text + " is no value of " + spec->name;
  }
  if (wrong.empty()) {
    std::vector<const char*> pointers;
    for (const std::string& name : names) pointers.push_back(name.c_str());
    g_object_setv(G_OBJECT(object), guint(names.size()), pointers.data(), values.data());
  }
  for (GValue& value : values) g_value_unset(&value);
  return wrong;
}

}  // namespace cudavision::test
