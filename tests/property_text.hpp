// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <gst/gst.h>

#include <string>
#include <vector>

namespace cudavision::test {

/// Cuts off the first word. Spaces between double quotes belong to it; the quotes do not. Empty if there is no word.
inline std::string next_word(std::string& text) {
  std::string word;
  bool quoted = false;
  std::size_t at = text.find_first_not_of(' ');
  for (; at < text.size() && (quoted || text[at] != ' '); ++at) {
    if (text[at] == '"')
      quoted = !quoted;
    else
      word += text[at];
  }
  text.erase(0, at);
  return word;
}

/// Sets properties from command-line text (sigma=2 zones="a: 1,2 3,4 5,2"), all in one g_object_set. If the text is
/// wrong, sets none and returns the reason; otherwise returns an empty string.
inline std::string set_from_text(gpointer object, const std::string& settings) {
  std::vector<std::string> names;
  std::vector<GValue> values;
  std::string wrong;
  std::string rest = settings;
  for (std::string word = next_word(rest); wrong.empty() && !word.empty(); word = next_word(rest)) {
    const std::size_t equals = word.find('=');
    names.push_back(word.substr(0, equals));
    const std::string text = word.substr(equals + 1);
    GParamSpec* spec = g_object_class_find_property(G_OBJECT_GET_CLASS(object), names.back().c_str());
    if (!spec) {
      wrong = std::string(G_OBJECT_TYPE_NAME(object)) + " has no property " + names.back();
      break;
    }
    values.push_back(G_VALUE_INIT);
    g_value_init(&values.back(), spec->value_type);
    if (!gst_value_deserialize_with_pspec(&values.back(), text.c_str(), spec))
      wrong = text + " is no value of " + spec->name;
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
