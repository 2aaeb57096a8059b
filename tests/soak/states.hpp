// SPDX-License-Identifier: LGPL-2.1-or-later
// The states of the elements of a pipeline, read without their state locks, which a hanging change would hold.
#pragma once

#include <gst/gst.h>

#include <string>
#include <type_traits>

namespace cudavision::soak {

/// Calls f(element) with the pipeline and each element of it.
template <typename F>
void each_element(GstElement* pipeline, F&& f) {
  f(pipeline);
  g_autoptr(GstIterator) elements = gst_bin_iterate_recurse(GST_BIN(pipeline));
  const auto call = [](const GValue* element, gpointer f) {
    (*static_cast<std::remove_reference_t<F>*>(f))(GST_ELEMENT(g_value_get_object(element)));
  };
  while (gst_iterator_foreach(elements, call, &f) == GST_ITERATOR_RESYNC) gst_iterator_resync(elements);
}

/// The state of an element as a line of text.
inline std::string state_of(GstElement* element) {
  GST_OBJECT_LOCK(element);
  const std::string text = std::string(GST_OBJECT_NAME(element)) + ": " +
                           gst_element_state_get_name(GST_STATE(element)) + ", on its way to " +
                           gst_element_state_get_name(GST_STATE_PENDING(element)) + ", last " +
                           gst_element_state_change_return_get_name(GST_STATE_RETURN(element));
  GST_OBJECT_UNLOCK(element);
  return text;
}

/// The states of a pipeline and of its elements, one per line.
inline std::string states_of(GstElement* pipeline) {
  std::string text;
  each_element(pipeline, [&](GstElement* element) { text += "  " + state_of(element) + "\n"; });
  return text;
}

/// The state of the first element that is in another state or changing to one; empty if there is none.
inline std::string element_not_in(GstElement* pipeline, GstState state) {
  std::string text;
  each_element(pipeline, [&](GstElement* element) {
    GST_OBJECT_LOCK(element);
    const bool is_there = GST_STATE(element) == state && GST_STATE_PENDING(element) == GST_STATE_VOID_PENDING;
    GST_OBJECT_UNLOCK(element);
    if (!is_there && text.empty()) text = state_of(element);
  });
  return text;
}

/// Whether no element of a pipeline is changing to another state.
inline bool is_resting(GstElement* pipeline) {
  bool rests = true;
  each_element(pipeline, [&](GstElement* element) {
    GST_OBJECT_LOCK(element);
    rests &= GST_STATE_PENDING(element) == GST_STATE_VOID_PENDING;
    GST_OBJECT_UNLOCK(element);
  });
  return rests;
}

}  // namespace cudavision::soak
