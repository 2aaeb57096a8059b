// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tests/streams/complaints.hpp"

#include <glib.h>

#include <cstring>
#include <mutex>
#include <utility>

namespace cudavision::streams {
namespace {

std::mutex mutex;
std::vector<std::string> complaints;

/// Critical messages that GstAggregator in GStreamer 1.22 itself causes in every mixer: for an EOS before the first
/// segment (fixed in newer versions), and for a flush while another thread examines a frame.
constexpr const char* of_aggregator[] = {
    "gst_event_set_seqnum: assertion 'seqnum != GST_SEQNUM_INVALID' failed",
    "gst_segment_to_running_time: assertion 'segment->format == format' failed",
};

void take_message(GLogLevelFlags level, const char* domain, const char* text) {
  if (!(level & (G_LOG_LEVEL_ERROR | G_LOG_LEVEL_CRITICAL | G_LOG_LEVEL_WARNING))) return;
  for (const char* known : of_aggregator)
    if (text && std::strcmp(text, known) == 0) return;
  const char* kind = level & G_LOG_LEVEL_WARNING ? "WARNING" : "CRITICAL";
  complain(std::string(domain ? domain : "GLib") + "-" + kind + ": " + (text ? text : ""));
}

void handle(const gchar* domain, GLogLevelFlags level, const gchar* text, gpointer) {
  take_message(level, domain, text);
}

/// g_log_structured() calls this function instead of the default handler.
GLogWriterOutput write(GLogLevelFlags level, const GLogField* fields, gsize count, gpointer) {
  const auto find = [&](const char* key) -> const char* {
    for (gsize i = 0; i < count; ++i)
      if (std::strcmp(fields[i].key, key) == 0) return static_cast<const char*>(fields[i].value);
    return nullptr;
  };
  take_message(level, find("GLIB_DOMAIN"), find("MESSAGE"));
  return G_LOG_WRITER_HANDLED;
}

}  // namespace

void complain(const std::string& what) {
  const std::lock_guard<std::mutex> lock(mutex);
  for (const std::string& known : complaints)
    if (known == what) return;
  complaints.push_back(what);
}

std::vector<std::string> take_complaints() {
  const std::lock_guard<std::mutex> lock(mutex);
  return std::exchange(complaints, {});
}

void watch_log() {
  g_log_set_default_handler(handle, nullptr);
  g_log_set_writer_func(write, nullptr, nullptr);
}

}  // namespace cudavision::streams
