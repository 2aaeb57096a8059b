// SPDX-License-Identifier: LGPL-2.1-or-later
// Times one pipeline, and prints a line of JSON:
//   pipeline_timing [--runs N] [--rendered N] [--limit SECONDS] PIPELINE …
// first_ms    for each run, the milliseconds from the state NULL to the first frame at the element named `last`, a
//             sink. The first run includes everything that a process does once (the start of CUDA, loading kernels);
//             the other runs show what is reused.
// latency_us  the microseconds from a frame's entry into the element named `timed`, if there is one, to its exit:
//             median, 99th and 99.9th percentile, and worst of the last run.
// rendered, dropped  the frames that the sink counted in the last run. With --rendered, the exit status is 1 if fewer
//                    than N were rendered or any was dropped (a live mixer may make one more than its sources).
#include <gst/gst.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace {

struct Times {
  std::mutex mutex;
  gint64 start = 0, first = 0;             // µs
  std::map<GstClockTime, gint64> entered;  // by PTS
  std::vector<gint64> latencies;
};

GstPadProbeReturn came(GstPad*, GstPadProbeInfo*, gpointer data) {
  Times& times = *static_cast<Times*>(data);
  const gint64 now = g_get_monotonic_time();
  const std::lock_guard<std::mutex> lock(times.mutex);
  if (!times.first) times.first = now;
  return GST_PAD_PROBE_REMOVE;
}

GstPadProbeReturn enters(GstPad*, GstPadProbeInfo* info, gpointer data) {
  Times& times = *static_cast<Times*>(data);
  const std::lock_guard<std::mutex> lock(times.mutex);
  times.entered[GST_BUFFER_PTS(GST_PAD_PROBE_INFO_BUFFER(info))] = g_get_monotonic_time();
  return GST_PAD_PROBE_OK;
}

GstPadProbeReturn leaves(GstPad*, GstPadProbeInfo* info, gpointer data) {
  Times& times = *static_cast<Times*>(data);
  const gint64 now = g_get_monotonic_time();
  const std::lock_guard<std::mutex> lock(times.mutex);
  const auto found = times.entered.find(GST_BUFFER_PTS(GST_PAD_PROBE_INFO_BUFFER(info)));
  if (found == times.entered.end()) return GST_PAD_PROBE_OK;
  times.latencies.push_back(now - found->second);
  times.entered.erase(found);
  return GST_PAD_PROBE_OK;
}

bool probe(GstElement* pipeline, const char* element, const char* pad_name, GstPadProbeCallback callback,
           Times& times) {
  g_autoptr(GstElement) found = gst_bin_get_by_name(GST_BIN(pipeline), element);
  if (!found) return false;
  GstPad* pad = gst_element_get_static_pad(found, pad_name);
  if (pad) gst_pad_add_probe(pad, GST_PAD_PROBE_TYPE_BUFFER, callback, &times, nullptr);
  g_clear_object(&pad);
  return true;
}

/// Plays the pipeline to its end. Returns whether it succeeded.
bool play(GstElement* pipeline, Times& times, int limit) {
  times.start = g_get_monotonic_time();
  gst_element_set_state(pipeline, GST_STATE_PLAYING);
  g_autoptr(GstBus) bus = gst_element_get_bus(pipeline);
  g_autoptr(GstMessage) message = gst_bus_timed_pop_filtered(bus, GstClockTime(limit) * GST_SECOND,
                                                             GstMessageType(GST_MESSAGE_EOS | GST_MESSAGE_ERROR));
  const bool ended = message && GST_MESSAGE_TYPE(message) == GST_MESSAGE_EOS;
  if (message && !ended) {
    g_autoptr(GError) error = nullptr;
    gst_message_parse_error(message, &error, nullptr);
    std::fprintf(stderr, "ERROR: %s: %s\n", GST_MESSAGE_SRC_NAME(message), error->message);
  } else if (!ended) {
    std::fprintf(stderr, "ERROR: no end of stream in %d s\n", limit);
  }
  return ended;
}

void read_stats(GstElement* pipeline, guint64& rendered, guint64& dropped) {
  g_autoptr(GstElement) sink = gst_bin_get_by_name(GST_BIN(pipeline), "last");
  g_autoptr(GstStructure) stats = nullptr;
  g_object_get(sink, "stats", &stats, nullptr);
  gst_structure_get_uint64(stats, "rendered", &rendered);
  gst_structure_get_uint64(stats, "dropped", &dropped);
}

}  // namespace

int main(int argc, char** argv) {
  int runs = 1, limit = 60;
  long expected = -1;
  int next = 1;
  for (; next + 1 < argc && std::strncmp(argv[next], "--", 2) == 0; next += 2) {
    if (std::strcmp(argv[next], "--runs") == 0)
      runs = std::atoi(argv[next + 1]);
    else if (std::strcmp(argv[next], "--limit") == 0)
      limit = std::atoi(argv[next + 1]);
    else if (std::strcmp(argv[next], "--rendered") == 0)
      expected = std::atol(argv[next + 1]);
  }
  std::string description;
  for (; next < argc; ++next) description += std::string(argv[next]) + " ";
  gst_init(nullptr, nullptr);
  std::string starts;
  std::vector<gint64> latencies;
  guint64 rendered = 0, dropped = 0;
  for (int run = 0; run < runs; ++run) {
    GError* error = nullptr;
    g_autoptr(GstElement) pipeline = gst_parse_launch(description.c_str(), &error);
    if (error) {
      std::fprintf(stderr, "ERROR: %s\n", error->message);
      return 1;
    }
    Times times;
    if (!probe(pipeline, "last", "sink", came, times)) {
      std::fprintf(stderr, "usage: %s [--runs N] [--rendered N] PIPELINE …, with a sink named last\n", argv[0]);
      return 1;
    }
    probe(pipeline, "timed", "sink", enters, times);
    probe(pipeline, "timed", "src", leaves, times);
    const bool ended = play(pipeline, times, limit);
    read_stats(pipeline, rendered, dropped);
    gst_element_set_state(pipeline, GST_STATE_NULL);
    if (!ended || !times.first) return 1;
    starts += (run ? ", " : "") + std::to_string(double(times.first - times.start) / 1000);
    latencies = std::move(times.latencies);
  }
  std::printf("{\"first_ms\": [%s]", starts.c_str());
  if (!latencies.empty()) {
    std::sort(latencies.begin(), latencies.end());
    const auto at = [&](double share) { return long(latencies[std::size_t(double(latencies.size() - 1) * share)]); };
    std::printf(", \"latency_us\": {\"median\": %ld, \"p99\": %ld, \"p999\": %ld, \"worst\": %ld, \"count\": %zu}",
                at(0.5), at(0.99), at(0.999), at(1), latencies.size());
  }
  std::printf(", \"rendered\": %ld, \"dropped\": %ld}\n", long(rendered), long(dropped));
  return expected >= 0 && (long(rendered) < expected || dropped) ? 1 : 0;
}
