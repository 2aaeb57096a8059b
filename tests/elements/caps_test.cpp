// SPDX-License-Identifier: LGPL-2.1-or-later
// Tests which memory is chosen when other elements are between a producer of CUDA memory and an element of this plugin.
// The test works without a GPU: its own elements negotiate as both do, and their "CUDA memory" is system memory.
//   testupload   lists system memory first, as cudaupload does
//   testfilter   negotiates as the filters of this plugin do when they use CUDA
//   testtaker    a sink that answers as these filters do
#include "gst/base/caps.hpp"

#include <gst/base/gstbasesink.h>
#include <gst/base/gstbasetransform.h>
#include <gst/gst.h>

#include <string>

#include "tests/elements/expect.hpp"

namespace {

using namespace cudavision;

using test::expect;

// testupload ----------------------------------------------------------------------------------------------------------

using Upload = GstBaseTransform;
using UploadClass = GstBaseTransformClass;
G_DEFINE_TYPE(Upload, test_upload, GST_TYPE_BASE_TRANSFORM)

/// Follows gst_cuda_memory_copy_transform_caps() of cudaupload.
GstCaps* upload_transform_caps(GstBaseTransform*, GstPadDirection direction, GstCaps* caps, GstCaps* filter) {
  GstCaps* other = gst_caps_copy(caps);
  for (guint i = 0; i < gst_caps_get_size(other); ++i)
    gst_caps_set_features(
        other, i,
        gst_caps_features_new(direction == GST_PAD_SINK ? cuda_memory_feature : "memory:SystemMemory", nullptr));
  g_autoptr(GstCaps) result = gst_caps_merge(gst_caps_copy(caps), other);
  if (!filter) return g_steal_pointer(&result);
  return gst_caps_intersect_full(filter, result, GST_CAPS_INTERSECT_FIRST);
}

void add_template(GstElementClass* klass, const char* name, GstPadDirection direction) {
  g_autoptr(GstCaps) caps = video_template_caps();
  gst_element_class_add_pad_template(klass, gst_pad_template_new(name, direction, GST_PAD_ALWAYS, caps));
}

void test_upload_init(Upload*) {}
void test_upload_class_init(UploadClass* klass) {
  add_template(GST_ELEMENT_CLASS(klass), "sink", GST_PAD_SINK);
  add_template(GST_ELEMENT_CLASS(klass), "src", GST_PAD_SRC);
  gst_element_class_set_static_metadata(GST_ELEMENT_CLASS(klass), "upload", "Filter/Video", "Test", "Test");
  klass->passthrough_on_same_caps = TRUE;
  klass->transform_caps = upload_transform_caps;
  klass->transform = [](GstBaseTransform*, GstBuffer*, GstBuffer*) { return GST_FLOW_OK; };
}

// testfilter ----------------------------------------------------------------------------------------------------------

using Filter = GstBaseTransform;
using FilterClass = GstBaseTransformClass;
G_DEFINE_TYPE(Filter, test_filter, GST_TYPE_BASE_TRANSFORM)

gboolean filter_query(GstBaseTransform* trans, GstPadDirection direction, GstQuery* query) {
  if (!GST_BASE_TRANSFORM_CLASS(test_filter_parent_class)->query(trans, direction, query)) return FALSE;
  if (GST_QUERY_TYPE(query) != GST_QUERY_CAPS) return TRUE;
  GstCaps *caps, *filter;
  gst_query_parse_caps_result(query, &caps);
  gst_query_parse_caps(query, &filter);
  caps = cuda_memory_first(gst_caps_ref(caps));
  if (direction == GST_PAD_SINK && filter) caps = insist_on_cuda(caps, trans->sinkpad);
  gst_query_set_caps_result(query, caps);
  gst_caps_unref(caps);
  return TRUE;
}

GstCaps* filter_fixate_caps(GstBaseTransform* trans, GstPadDirection direction, GstCaps* caps, GstCaps* other) {
  g_autoptr(GstPad) peer = gst_pad_get_peer(direction == GST_PAD_SINK ? trans->srcpad : trans->sinkpad);
  other = choose_memory(other, caps, peer);
  return gst_caps_fixate(other);
}

void test_filter_init(Filter*) {}
void test_filter_class_init(FilterClass* klass) {
  add_template(GST_ELEMENT_CLASS(klass), "sink", GST_PAD_SINK);
  add_template(GST_ELEMENT_CLASS(klass), "src", GST_PAD_SRC);
  gst_element_class_set_static_metadata(GST_ELEMENT_CLASS(klass), "filter", "Filter/Video", "Test", "Test");
  klass->query = filter_query;
  klass->fixate_caps = filter_fixate_caps;
  klass->transform_caps = [](GstBaseTransform*, GstPadDirection, GstCaps* caps, GstCaps* filter) {
    return filter_caps(any_memory_caps(caps, true), filter);
  };
  klass->transform = [](GstBaseTransform*, GstBuffer*, GstBuffer*) { return GST_FLOW_OK; };
}

// testtaker -----------------------------------------------------------------------------------------------------------

using Taker = GstBaseSink;
using TakerClass = GstBaseSinkClass;
G_DEFINE_TYPE(Taker, test_taker, GST_TYPE_BASE_SINK)

GstCaps* taker_get_caps(GstBaseSink* sink, GstCaps* filter) {
  g_autoptr(GstCaps) all = video_template_caps();
  GstCaps* caps = filter_caps(any_memory_caps(all, true), filter);
  return filter ? insist_on_cuda(caps, sink->sinkpad) : caps;
}

void test_taker_init(Taker*) {}
void test_taker_class_init(TakerClass* klass) {
  add_template(GST_ELEMENT_CLASS(klass), "sink", GST_PAD_SINK);
  gst_element_class_set_static_metadata(GST_ELEMENT_CLASS(klass), "taker", "Sink/Video", "Test", "Test");
  klass->get_caps = taker_get_caps;
}

// Tests ---------------------------------------------------------------------------------------------------------------

constexpr char source[] = "videotestsrc num-buffers=3 ! video/x-raw,format=NV12,width=64,height=48,framerate=30/1 ! ";

GstPad* pad_of(GstElement* pipeline, const char* element, const char* name) {
  g_autoptr(GstElement) one = gst_bin_get_by_name(GST_BIN(pipeline), element);
  GstPad* pad = gst_element_get_static_pad(one, name);
  return pad;
}

/// Plays a pipeline to its end. Returns the memories that reached the takers a, b …, one letter for each: C(UDA),
/// S(ystem), or - for none. If there is an error, returns it instead.
std::string memories(const std::string& text, guint takers = 1) {
  GError* error = nullptr;
  g_autoptr(GstElement) pipeline = gst_parse_launch(text.c_str(), &error);
  if (error) return error->message;
  gst_element_set_state(pipeline, GST_STATE_PLAYING);
  g_autoptr(GstBus) bus = gst_element_get_bus(pipeline);
  g_autoptr(GstMessage) last =
      gst_bus_timed_pop_filtered(bus, 10 * GST_SECOND, GstMessageType(GST_MESSAGE_EOS | GST_MESSAGE_ERROR));
  std::string found;
  if (last && GST_MESSAGE_TYPE(last) == GST_MESSAGE_EOS) {
    for (guint i = 0; i < takers; ++i) {
      g_autoptr(GstPad) pad = pad_of(pipeline, std::string(1, char('a' + i)).c_str(), "sink");
      g_autoptr(GstCaps) caps = gst_pad_get_current_caps(pad);
      found += !caps ? '-' : is_cuda_caps(caps) ? 'C' : 'S';
    }
  } else {
    found = last ? "error" : "hangs";
  }
  gst_element_set_state(pipeline, GST_STATE_NULL);
  return found;
}

void expect_memories(const char* text, const char* expected) {
  const std::string found = memories(std::string(source) + text, guint(std::string(expected).size()));
  expect(found == expected, std::string(text) + " gives " + found + ", not " + expected);
}

void prefers_cuda_memory() {
  const std::string taker = " ! testtaker name=a";
  for (const char* between :
       {"", "! queue", "! queue ! queue", "! tee", "! queue ! tee ! queue", "! identity", "! valve", "! queue2",
        "! videorate ! video/x-raw(ANY),framerate=60/1", "! videorate ! queue ! video/x-raw(ANY),framerate=15/1 ! tee",
        "! imagefreeze num-buffers=3", "! imagefreeze num-buffers=3 ! queue", "! multiqueue", "! funnel",
        "! video/x-raw(ANY)", "! queue ! video/x-raw(memory:CUDAMemory)"})
    expect_memories((std::string("testupload ") + between + taker).c_str(), "C");
}

void prefers_cuda_memory_in_chains() {
  const char* const more = " ! testfilter ! queue ! testfilter ! tee ! testfilter ! testfilter ! testtaker name=a";
  expect_memories((std::string("testupload") + more).c_str(), "C");
  expect_memories(
      (std::string("testupload ! queue ! tee name=t ! queue ! fakesink async=false  t. ! queue") + more).c_str(), "C");
  expect_memories((std::string("testupload ! videorate ! video/x-raw(ANY),framerate=60/1") + more).c_str(), "C");
  // With two filters at one branch, and system memory at the other, the filters convert.
  expect_memories(
      "testupload ! tee name=t ! queue ! testfilter ! queue ! testtaker name=a  t. ! queue ! video/x-raw ! fakesink "
      "name=b  "
      "t. ! queue ! testfilter ! queue ! video/x-raw ! fakesink name=c",
      "CSS");
}

void knows_where_cuda_memory_begins() {
  expect_memories("queue ! testtaker name=a", "S");
  expect_memories("tee ! queue ! testtaker name=a", "S");
  expect_memories("testupload ! video/x-raw ! queue ! testtaker name=a", "S");
  expect_memories("testupload ! queue ! video/x-raw ! testtaker name=a", "S");
  expect_memories("testupload ! videoflip ! queue ! testtaker name=a", "S");
  // A source of system memory plays beside it. The memory must not alternate.
  expect_memories(("testupload ! funnel name=f ! videorate ! video/x-raw(ANY),framerate=60/1 ! testtaker name=a " +
                   std::string(source) + "f.")
                      .c_str(),
                  "S");
}

void agrees_with_other_branches() {
  expect_memories("testupload ! tee name=t ! queue ! testtaker name=a  t. ! queue ! testtaker name=b", "CC");
  expect_memories("testupload ! queue ! tee name=t ! queue ! testtaker name=a  t. ! queue ! fakesink name=b", "CC");
  expect_memories("testupload ! tee name=t ! queue ! testtaker name=a  t. ! queue ! video/x-raw ! fakesink name=b",
                  "SS");
  expect_memories("testupload ! tee name=t ! queue ! video/x-raw ! fakesink name=a  t. ! queue ! testtaker name=b",
                  "SS");
  expect_memories("testupload ! tee name=t ! queue ! testtaker name=a  t. ! queue ! videoflip ! fakesink name=b", "SS");
  expect_memories(
      "testupload ! tee name=t ! queue ! testtaker name=a  t. ! video/x-raw(memory:CUDAMemory) ! queue ! fakesink "
      "name=b",
      "CC");
  expect_memories(
      "testupload ! tee name=t ! queue ! videorate ! video/x-raw(ANY),framerate=60/1 ! testtaker name=a  "
      "t. ! queue ! video/x-raw(ANY),framerate=30/1 ! fakesink name=b",
      "CC");
  // nested, with the other branch at the first and at the second tee
  expect_memories(
      "testupload ! tee name=t ! queue ! tee name=u ! queue ! testtaker name=a  u. ! queue ! testtaker name=b  "
      "t. ! queue ! video/x-raw ! fakesink name=c",
      "SSS");
  expect_memories(
      "testupload ! tee name=t ! queue ! tee name=u ! queue ! testtaker name=a  u. ! queue ! video/x-raw ! fakesink "
      "name=b  "
      "t. ! queue ! testtaker name=c",
      "SSS");
  expect_memories(
      "testupload ! tee name=t ! queue ! tee name=u ! queue ! testtaker name=a  u. ! queue ! testtaker name=b  "
      "t. ! queue ! videorate ! video/x-raw(ANY),framerate=60/1 ! testtaker name=c",
      "CCC");
  // formats for which only one branch accepts CUDA memory
  expect_memories(
      "testupload ! tee name=t ! queue ! testtaker name=a  "
      "t. ! queue ! video/x-raw(memory:CUDAMemory),format=RGBA;video/x-raw ! fakesink name=b",
      "SS");
  // branches before the producer of CUDA memory, and before a decoder
  expect_memories(
      "videoconvert ! pngenc ! tee name=t ! queue ! pngdec ! videoconvert ! video/x-raw,format=NV12,framerate=30/1 ! "
      "testupload ! "
      "videorate ! "
      "video/x-raw(ANY),framerate=60/1 ! testtaker name=a  t. ! queue ! fakesink async=false",
      "C");
  expect_memories(
      "tee name=t ! queue ! testupload ! queue ! testtaker name=a  t. ! queue ! video/x-raw ! fakesink name=b", "CS");
  // in bins
  expect_memories(
      "testupload ! bin.( tee name=t ! queue ! testtaker name=a  t. ! queue ! video/x-raw ! fakesink name=b )", "SS");
}

/// Whether a pad of a pipeline in state NULL could carry these frames in CUDA memory.
bool could_be(const std::string& text, const char* element, const char* name, const char* frames) {
  GError* error = nullptr;
  g_autoptr(GstElement) pipeline = gst_parse_launch(text.c_str(), &error);
  if (error) {
    expect(false, text + ": " + error->message);
    return false;
  }
  g_autoptr(GstPad) pad = pad_of(pipeline, element, name);
  g_autoptr(GstCaps) caps = gst_caps_from_string(frames);
  const bool could = could_be_in_cuda(pad, caps);
  return could;
}

void finds_needless_copies() {
  const char* const frames = "video/x-raw,format=NV12,width=64,height=48,framerate=30/1";
  const auto after = [&](const std::string& text, bool could, const char* caps = nullptr) {
    expect(could_be("testupload name=u ! " + text, "u", "src", caps ? caps : frames) == could,
           "after the pad: " + text);
  };
  for (const char* text : {"testtaker", "queue ! testtaker", "tee ! queue ! testtaker", "videorate ! testtaker",
                           "tee name=t ! queue ! testtaker  t. ! queue ! fakesink"})
    after(text, true);
  for (const char* text : {"fakesink", "queue ! fakesink", "tee ! queue ! fakesink", "tee", "identity ! fakesink",
                           "videoconvert ! fakesink", "video/x-raw(ANY) ! fakesink", "video/x-raw ! testtaker",
                           "queue ! video/x-raw ! fakesink", "videoflip ! testtaker",
                           "video/x-raw(memory:CUDAMemory),format=RGBA ! fakesink", "appsink",
                           "tee name=t ! queue ! testtaker  t. ! queue ! video/x-raw ! fakesink"})
    after(text, false);
  after("testtaker", false, "video/x-raw(memory:CUDAMemory),format=NV12,width=64,height=48,framerate=30/1");
  // libgstcuda fails at this size
  after("testtaker", false, "video/x-raw,format=YUY2,width=63,height=48,framerate=30/1");
  after("testtaker", false, "video/x-other");

  const auto before = [&](const std::string& text, bool could) {
    expect(could_be(text + " ! testtaker name=t", "t", "sink", frames) == could, "before the pad: " + text);
  };
  for (const char* text :
       {"testupload", "videotestsrc ! testupload ! queue", "testupload ! videorate", "testupload ! tee ! queue"})
    before(text, true);
  for (const char* text : {"videotestsrc", "videotestsrc ! queue", "appsrc", "appsrc ! queue", "fakesrc ! tee ! queue",
                           "testupload ! video/x-raw", "testupload ! videoflip", "queue",
                           "testupload ! tee name=x ! video/x-raw ! fakesink  x. ! queue"})
    before(text, false);
}

}  // namespace

int main() {
  gst_init(nullptr, nullptr);
  gst_element_register(nullptr, "testupload", GST_RANK_NONE, test_upload_get_type());
  gst_element_register(nullptr, "testfilter", GST_RANK_NONE, test_filter_get_type());
  gst_element_register(nullptr, "testtaker", GST_RANK_NONE, test_taker_get_type());
  for (const auto test : {prefers_cuda_memory, prefers_cuda_memory_in_chains, knows_where_cuda_memory_begins,
                          agrees_with_other_branches, finds_needless_copies})
    test();
  return cudavision::test::exit_status();
}
