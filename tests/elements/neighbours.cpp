// SPDX-License-Identifier: LGPL-2.1-or-later
// Links every GStreamer element with raw video pads before and after each element of the plugin. GLib must not warn.
// Each pipeline runs in its own process. A neighbour that also warns next to `identity` does not count. Prints a line
// for each pipeline that warned.
//   elements_neighbours [NEIGHBOUR]      (no argument: all neighbours)
#include <gst/gst.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "operations.h"

namespace {

enum Outcome { QUIET = 0, NOT_LINKED = 1, WARNED = 2 };

struct Neighbour {
  std::string name;
  bool takes, gives;  // whether it has sink pads and src pads for raw video
};

/// Whether a test may use the element. Elements that need hardware, a display, a sound device or a network are
/// excluded.
bool is_reachable(GstElementFactory* factory) {
  // These read beyond the frame and sometimes crash next to any element (GStreamer 1.22: in cv::dilate of
  // libgstopencv).
  for (const char* broken : {"cvdilate", "cverode"})
    if (g_str_equal(GST_OBJECT_NAME(factory), broken)) return false;
  const std::string name = GST_OBJECT_NAME(factory),
                    klass = gst_element_factory_get_metadata(factory, GST_ELEMENT_METADATA_KLASS);
  if (klass.find("Network") != std::string::npos || klass.find("Hardware") != std::string::npos) return false;
  const bool sink = klass.find("Sink") != std::string::npos, source = klass.find("Source") != std::string::npos;
  return !(sink || source) || name.find("fake") == 0 || name.find("test") != std::string::npos || name.find("app") == 0;
}

bool has_raw_video(GstElementFactory* factory, GstPadDirection direction) {
  g_autoptr(GstCaps) raw = gst_caps_from_string("video/x-raw");
  bool found = false;
  for (const GList* item = gst_element_factory_get_static_pad_templates(factory); item; item = item->next) {
    auto* pad = static_cast<GstStaticPadTemplate*>(item->data);
    if (pad->direction != direction || pad->presence == GST_PAD_SOMETIMES) continue;
    g_autoptr(GstCaps) caps = gst_static_pad_template_get_caps(pad);
    found = found || (!gst_caps_is_any(caps) && gst_caps_can_intersect(caps, raw));
    // Generic elements with ANY caps (queue, tee, capsfilter) also handle raw video.
    const std::string klass = gst_element_factory_get_metadata(factory, GST_ELEMENT_METADATA_KLASS);
    found = found || (gst_caps_is_any(caps) && klass == "Generic");
  }
  return found;
}

std::vector<Neighbour> find_neighbours(std::vector<std::string>& ours) {
  std::vector<Neighbour> found;
  GList* features = gst_registry_get_feature_list(gst_registry_get(), GST_TYPE_ELEMENT_FACTORY);
  for (GList* item = features; item; item = item->next) {
    auto* factory = GST_ELEMENT_FACTORY(item->data);
    const std::string plugin = gst_plugin_feature_get_plugin_name(GST_PLUGIN_FEATURE(factory)) ?: "";
    const bool takes = has_raw_video(factory, GST_PAD_SINK), gives = has_raw_video(factory, GST_PAD_SRC);
    if (plugin == "cudavision")
      ours.push_back(GST_OBJECT_NAME(factory));
    else if ((takes || gives) && is_reachable(factory))
      found.push_back({GST_OBJECT_NAME(factory), takes, gives});
  }
  gst_plugin_feature_list_free(features);
  const auto by_name = [](const Neighbour& a, const Neighbour& b) { return a.name < b.name; };
  std::sort(found.begin(), found.end(), by_name);
  std::sort(ours.begin(), ours.end());
  return found;
}

/// Whether GStreamer itself causes this warning. These neighbours copy the metas of a frame twice, which
/// GstAnalyticsRelationMeta refuses (GStreamer 1.26). `identity` adds no such meta, so it does not warn beside them.
bool is_expected(const std::string& neighbour, const char* message) {
  return (neighbour == "chopmydata" || neighbour == "fakevideodec" || neighbour == "rawvideoparse") &&
         g_str_equal(message, "Trying to copy GstAnalyticsRelationMeta into non-empty meta");
}

/// Runs "source ! element ! neighbour ! element ! sink". Omits the part before a neighbour without sink pads, and the
/// element after a neighbour without src pads.
[[noreturn]] void run(const std::string& element, const Neighbour& neighbour) {
  gst_debug_set_default_threshold(GST_LEVEL_NONE);
  static std::string warning;
  static const std::string beside = neighbour.name;
  const auto note = [](const gchar*, GLogLevelFlags level, const gchar* message, gpointer) {
    if (is_expected(beside, message)) return;
    if ((level & (G_LOG_LEVEL_WARNING | G_LOG_LEVEL_CRITICAL | G_LOG_LEVEL_ERROR)) && warning.empty())
      warning = message;
  };
  g_log_set_default_handler(note, nullptr);
  g_log_set_writer_func([](GLogLevelFlags, const GLogField*, gsize, gpointer) { return G_LOG_WRITER_HANDLED; }, nullptr,
                        nullptr);

  GstElement* pipeline = gst_pipeline_new(nullptr);
  std::vector<GstElement*> chain;
  const auto add = [&](const std::string& name) {
    GstElement* made = gst_element_factory_make(name.c_str(), nullptr);
    if (!made) _exit(NOT_LINKED);
    gst_bin_add(GST_BIN(pipeline), made);
    chain.push_back(made);
  };
  if (neighbour.takes) {
    add("videotestsrc");
    g_object_set(chain.back(), "num-buffers", 3, nullptr);
    add(element);
  }
  add(neighbour.name);
  if (!neighbour.takes && g_object_class_find_property(G_OBJECT_GET_CLASS(chain.back()), "num-buffers"))
    g_object_set(chain.back(), "num-buffers", 3, nullptr);
  if (neighbour.gives) add(element);
  // videorate needs a framerate after it, as in pipelines that change the framerate.
  if (neighbour.name == "videorate") {
    add("capsfilter");
    gst_util_set_object_arg(G_OBJECT(chain.back()), "caps", "video/x-raw(ANY),framerate=60/1");
    std::swap(chain[chain.size() - 1], chain[chain.size() - 2]);
  }
  add("fakesink");
  for (std::size_t i = 0; i + 1 < chain.size(); ++i)
    if (!gst_element_link(chain[i], chain[i + 1])) _exit(warning.empty() ? NOT_LINKED : WARNED);

  GstBus* bus = gst_element_get_bus(pipeline);
  if (gst_element_set_state(pipeline, GST_STATE_PLAYING) != GST_STATE_CHANGE_FAILURE) {
    g_autoptr(GstMessage) end =
        gst_bus_timed_pop_filtered(bus, GST_SECOND, GstMessageType(GST_MESSAGE_EOS | GST_MESSAGE_ERROR));
  }
  gst_element_set_state(pipeline, GST_STATE_NULL);
  if (!warning.empty()) std::fprintf(stderr, "  %s\n", warning.c_str());
  _exit(warning.empty() ? QUIET : WARNED);
}

struct Job {
  std::string element;
  const Neighbour* neighbour;
  Outcome outcome = NOT_LINKED;
};

/// Runs `at_once` jobs at a time, because most of them wait.
void run_all(std::vector<Job>& jobs) {
  constexpr std::size_t at_once = 16;
  std::map<pid_t, Job*> running;
  const auto wait_for_one = [&] {
    int status = 0;
    const pid_t child = wait(&status);
    Job& job = *running.at(child);
    job.outcome = WIFEXITED(status) ? Outcome(WEXITSTATUS(status)) : WARNED;
    if (!WIFEXITED(status))
      std::fprintf(stderr, "  %s beside %s: killed by signal %d\n", job.element.c_str(), job.neighbour->name.c_str(),
                   WTERMSIG(status));
    running.erase(child);
  };
  for (Job& job : jobs) {
    if (running.size() == at_once) wait_for_one();
    std::fflush(nullptr);
    const pid_t child = fork();
    if (child == 0) {
      alarm(60);
      run(job.element, *job.neighbour);
    }
    running[child] = &job;
  }
  while (!running.empty()) wait_for_one();
}

}  // namespace

int main(int argc, char** argv) {
#ifdef __SANITIZE_THREAD__
  std::puts("skipped: the neighbours are not built with the sanitizer, which then does not see how their threads wait");
  return 77;
#endif
  gst_init(&argc, &argv);
  // loaded once; all child processes inherit it
  if (GstPlugin* plugin = gst_plugin_load_by_name("cudavision")) gst_object_unref(plugin);
  std::vector<std::string> ours;
  std::vector<Neighbour> neighbours = find_neighbours(ours);
#define CUDAVISION_NAME(name) "cuda" #name,
  for (const char* name : {CUDAVISION_OPERATIONS(CUDAVISION_NAME)})
    if (std::find(ours.begin(), ours.end(), name) == ours.end()) {
      std::printf("the plugin has no element %s: is GST_PLUGIN_PATH set?\n", name);
      return 1;
    }
#undef CUDAVISION_NAME
  if (argc > 1) {
    const auto other = [&](const Neighbour& neighbour) { return neighbour.name != argv[1]; };
    neighbours.erase(std::remove_if(neighbours.begin(), neighbours.end(), other), neighbours.end());
  }
  std::vector<Job> jobs, suspects;
  for (const Neighbour& neighbour : neighbours)
    for (const std::string& element : ours) jobs.push_back({element, &neighbour});
  run_all(jobs);
  jobs.erase(std::remove_if(jobs.begin(), jobs.end(), [](const Job& job) { return job.outcome == NOT_LINKED; }),
             jobs.end());
  for (const Job& job : jobs)
    if (job.outcome == WARNED) suspects.push_back({"identity", job.neighbour});
  run_all(suspects);
  std::size_t suspect = 0, warned = 0;
  for (const Job& job : jobs) {
    if (job.outcome != WARNED || suspects[suspect++].outcome == WARNED) continue;
    std::printf("%s warns beside %s\n", job.element.c_str(), job.neighbour->name.c_str());
    ++warned;
  }
  std::printf("%zu neighbours of %zu elements: %zu pipelines ran, %zu warned\n", neighbours.size(), ours.size(),
              jobs.size(), warned);
  return jobs.empty() || warned > 0;
}
