// SPDX-License-Identifier: LGPL-2.1-or-later
// Tests the exception boundary (gst/base/vfunc.hpp): an exception becomes one error message and a return value that
// means failure.
#include "gst/base/vfunc.hpp"

#include <stdexcept>

#include "tests/elements/harness.hpp"

namespace cudavision {

/// Replaces the function of the plugin, because the test program is not linked with the plugin.
void post_error(GstElement* element, const Status& status) {
  GST_ELEMENT_ERROR(element, RESOURCE, FAILED, ("%s", status.message().c_str()), (nullptr));
}

}  // namespace cudavision

using namespace cudavision::test;

namespace {

gboolean out_of_memory(GstObject*, int) { throw std::bad_alloc(); }
void out_of_range(GstObject*) { throw std::out_of_range("too far"); }
GstCaps* no_caps(GstObject*) { throw 1; }
int twice(GstObject*, int number) { return 2 * number; }

void expect_errors(GstObject* object, GstBus* bus) {
  using cudavision::vfunc;
  EXPECT_EQ((vfunc<twice, -1>(object, 21)), 42);
  EXPECT_EQ(pop_message(bus, GST_MESSAGE_ERROR).text, "");
  EXPECT_EQ((vfunc<out_of_memory, FALSE>(object, 1)), FALSE);
  EXPECT_CONTAINS(pop_message(bus, GST_MESSAGE_ERROR).text, "out of memory");
  vfunc<out_of_range>(object);
  EXPECT_CONTAINS(pop_message(bus, GST_MESSAGE_ERROR).text, "too far");
  const Caps caps(vfunc<no_caps, gst_caps_new_empty>(object));
  EXPECT(gst_caps_is_empty(caps.get()));
  EXPECT_CONTAINS(pop_message(bus, GST_MESSAGE_ERROR).text, "internal error");
}

}  // namespace

TEST(turns_exceptions_into_errors, Each::element) {
  g_autoptr(GstElement) element = GST_ELEMENT(gst_object_ref_sink(gst_element_factory_make("identity", nullptr)));
  g_autoptr(GstBus) bus = gst_bus_new();
  gst_element_set_bus(element, bus);
  expect_errors(GST_OBJECT(element), bus);
  // The element posts the error of a pad function.
  g_autoptr(GstPad) pad = gst_element_get_static_pad(element, "sink");
  expect_errors(GST_OBJECT(pad), bus);
  gst_element_set_bus(element, nullptr);
}

int main() { return run_tests("vfunc", "cudagaussian"); }
