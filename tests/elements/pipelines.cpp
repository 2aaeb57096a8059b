// SPDX-License-Identifier: LGPL-2.1-or-later
// Runs short pipelines with every element of the plugin:
//   elements_pipelines            on every backend that works, with the leaks tracer: no object may be alive at the end
//   elements_pipelines BACKEND    on this backend, without the tracer (for valgrind)
// Exit status: 0 if all passed, 1 if a pipeline failed or leaked, 77 without the tracer or a backend that works.
#include <cstdio>
#include <cstring>

#include "tests/elements/harness.hpp"

using namespace cudavision::test;

namespace {

/// Plays a pipeline until EOS or an error. Returns whether it ended as expected.
bool play(const std::string& text, bool should_fail = false) {
  g_autoptr(GError) error = nullptr;
  g_autoptr(GstElement) pipeline = gst_parse_launch(text.c_str(), &error);
  if (error) {
    std::printf("%s: %s\n", text.c_str(), error->message);
    return false;
  }
  g_autoptr(GstMessage) last = play_to_end(pipeline, 120 * GST_SECOND);
  const bool failed = !last || GST_MESSAGE_TYPE(last) == GST_MESSAGE_ERROR;
  gst_element_set_state(pipeline, GST_STATE_NULL);
  if (failed != should_fail) std::printf("%s: %s\n", text.c_str(), failed ? "an error" : "no error");
  return failed == should_fail;
}

std::string source(const char* format) {
  return "videotestsrc num-buffers=4 ! video/x-raw,width=67,height=45,format=" + std::string(format) + " ! ";
}

bool play_all(const Run& run) {
  const Profile& p = profile(run.element);
  const std::string filter = run.element + " backend=" + run.backend + " " + p.needs + " ";
  bool good = true;
  for (const char* format : {"NV12", "RGBA", "I420_10LE"}) good &= play(source(format) + filter + "! fakesink");
  good &= play(source("YUY2") + filter + p.second + (p.whole_frame ? "" : " region=roi") + " ! " + filter +
               "! queue ! " + filter + "! fakesink");
  good &= play(source("GRAY8") + filter + "! tee name=t ! queue ! fakesink t. ! queue ! " + filter + "! fakesink");
  if (!p.passing.empty())
    good &= play(source("RGBA") + filter + p.passing + " ! tee name=t ! queue ! fakesink t. ! queue ! " + filter +
                 p.passing + " ! fakesink");
  if (run.element == "cudaintegral")
    for (const char* ways_out :
         {"! ", "! tee ! queue ! ", "! video/x-integral ! ", "channel=all ! video/x-integral,format=F64LE ! queue ! "})
      good &= play(source("BGRA") + filter + "output=passthrough squared=true " + ways_out + "fakesink");
  const std::vector<BadSetting> bad = bad_settings(run.element);
  if (!bad.empty()) good &= play(source("NV12") + filter + bad[0].settings + " ! fakesink", true);
  return good;
}

/// Adds pads to a playing cudablend and releases them while they may hold frames.
bool come_and_go(const std::string& backend) {
  g_autoptr(GstElement) pipeline =
      gst_parse_launch(("cudablend name=b backend=" + backend +
                        " ! fakesink videotestsrc num-buffers=500 ! video/x-raw,width=67,height=45 ! b.")
                           .c_str(),
                       nullptr);
  g_autoptr(GstElement) blend = gst_bin_get_by_name(GST_BIN(pipeline), "b");
  gst_element_set_state(pipeline, GST_STATE_PLAYING);
  // A GstBin that changes its state while elements are added and removed may never reach PLAYING.
  gst_element_get_state(pipeline, nullptr, nullptr, 60 * GST_SECOND);
  for (const char* format : {"NV12", "RGBA", "GRAY8", "I420_10LE", "RGB", "YUY2"}) {
    GstElement* other = gst_parse_bin_from_description(
        ("videotestsrc ! video/x-raw,width=33,height=21,format=" + std::string(format)).c_str(), TRUE, nullptr);
    gst_element_set_locked_state(other, TRUE);
    gst_bin_add(GST_BIN(pipeline), other);
    GstPad *sink = gst_element_request_pad_simple(blend, "sink_%u"), *src = gst_element_get_static_pad(other, "src");
    gst_pad_link(src, sink);
    gst_element_set_state(other, GST_STATE_PLAYING);
    // GStreamer 1.26 may leak the caps of a source whose pad is removed while it negotiates.
    for (int waited = 0; waited < 5000 && !gst_pad_has_current_caps(sink); ++waited) g_usleep(1000);
    g_usleep(5000);
    gst_element_release_request_pad(blend, sink);  // its source then posts the error not-linked
    gst_element_set_state(other, GST_STATE_NULL);
    gst_bin_remove(GST_BIN(pipeline), other);
    gst_object_unref(src);
    gst_object_unref(sink);
  }
  g_autoptr(GstBus) bus = gst_element_get_bus(pipeline);
  g_autoptr(GstMessage) end = gst_bus_timed_pop_filtered(bus, 60 * GST_SECOND, GST_MESSAGE_EOS);
  if (!end) std::printf("pads that come and go: no end\n");
  gst_element_set_state(pipeline, GST_STATE_NULL);
  return end != nullptr;
}

bool play_blend(const std::string& backend) {
  const std::string blend = "cudablend name=b backend=" + backend + " ";
  const std::string pads =
      " ! fakesink " + source("NV12") + "b. " + source("RGBA") + "b. " + source("GRAY8") + "queue ! b. ";
  bool good = play(blend + "sink_1::alpha=0.5 sink_2::operator=screen sink_2::key=first-pixel" + pads);
  good &= play(blend + "layout=grid gap=2 ! video/x-raw,format=I420_10LE,width=101,height=99" + pads);
  good &= play(blend +
               "background=transparent sink_1::xpos=-5 sink_0::zorder=9 sink_2::width=300 sink_2::sizing-policy=fill ! "
               "cudagaussian backend=" +
               backend + pads);
  good &= come_and_go(backend);
  return good;
}

GstTracer* leaks_tracer() {
  GstTracer* found = nullptr;
  GList* tracers = gst_tracing_get_active_tracers();
  for (GList* item = tracers; item; item = item->next)
    if (std::strcmp(G_OBJECT_TYPE_NAME(item->data), "GstLeaksTracer") == 0)
      found = GST_TRACER(gst_object_ref(item->data));
  g_list_free_full(tracers, gst_object_unref);
  return found;
}

/// Prints the objects that are alive. Returns whether there are none.
bool nothing_alive(GstTracer* tracer) {
  g_autoptr(GstStructure) alive = nullptr;
  g_signal_emit_by_name(tracer, "get-live-objects", &alive);
  const GValue* list = gst_structure_get_value(alive, "live-objects-list");
  bool nothing = true;
  for (guint i = 0; list && i < gst_value_list_get_size(list); ++i) {
    g_autofree gchar* text = g_strdup_value_contents(gst_value_list_get_value(list, i));
    if (!std::strstr(text, "(GstCudaAllocator)")) {  // libgstcuda never frees its allocator
      std::printf("leaked: %s\n", text);
      nothing = false;
    }
  }
  return nothing;
}

}  // namespace

int main(int argc, char** argv) {
  const bool traced = argc < 2;
  if (traced) g_setenv("GST_TRACERS", "leaks", TRUE);
  gst_init(nullptr, nullptr);
  GstTracer* tracer = traced ? leaks_tracer() : nullptr;
  if (traced && !tracer) {
    std::printf("skipped: GStreamer's leaks tracer (plugin coretracers) is not there\n");
    return 77;
  }
  std::vector<Run> runs;
  std::vector<std::string> backends;
  for (const char* backend : {"cpu", "cuda"}) {
    if (!traced && std::strcmp(backend, argv[1]) != 0) continue;
    const auto found = find_filters(find_elements(), backend);
    runs.insert(runs.end(), found.begin(), found.end());
    if (!found.empty()) backends.push_back(backend);
  }
  if (runs.empty()) {
    std::printf("skipped: no backend that works here\n");
    return 77;
  }
  bool good = true;
  for (const Run& run : runs) good &= play_all(run);
  for (const std::string& backend : backends) good &= play_blend(backend);
  gst_task_cleanup_all();  // threads of stopped pipelines may still hold their tasks
  if (tracer) {
    good &= nothing_alive(tracer);
    gst_object_unref(tracer);
  }
  gst_deinit();
  std::printf("%zu elements and backends: %s\n", runs.size() + backends.size(), good ? "good" : "bad");
  return good ? 0 : 1;
}
