// SPDX-License-Identifier: LGPL-2.1-or-later
// Watches files, network streams and cameras for motion with cudadiff. Prints a line of JSON for each event, and saves
// a picture for each `begin`, with --every also for each `motion`.
#include <glib-unix.h>
#include <gst/gst.h>

#include <cerrno>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "input.hpp"
#include "uris.hpp"

namespace {

enum ExitStatus { all_well = 0, some_failed = 1, wrong_usage = 2 };

struct Arguments {
  gchar** inputs = nullptr;
  gchar** set = nullptr;
  gchar* snapshots = nullptr;
  gchar *backend = nullptr, *reference = nullptr, *threshold = nullptr, *motion_threshold = nullptr, *gap = nullptr;
  gchar *start = nullptr, *end = nullptr, *duration = nullptr, *shortest = nullptr, *rate = nullptr;
  gint skip = 0;
  gboolean boxes = FALSE, realtime = FALSE;
  gdouble every = NAN;

  ~Arguments() {
    for (gchar** list : {inputs, set}) g_strfreev(list);
    for (gchar* text :
         {snapshots, backend, reference, threshold, motion_threshold, gap, start, end, duration, shortest, rate})
      g_free(text);
  }
};

bool parse(Arguments& to, int argc, char** argv) {
  const GOptionEntry entries[] = {
      {"snapshots", 's', 0, G_OPTION_ARG_FILENAME, &to.snapshots,
       "Save the frame in which motion begins as JPEG, with --every also the frame of each `motion`", "FOLDER"},
      {"boxes", 'b', 0, G_OPTION_ARG_NONE, &to.boxes, "Mark the moving regions in snapshots", nullptr},
      {"every", 'e', 0, G_OPTION_ARG_DOUBLE, &to.every,
       "Also print whether there is motion, at most this often; 0: for every frame", "SECONDS"},
      {"realtime", 'r', 0, G_OPTION_ARG_NONE, &to.realtime,
       "Read files at playback speed instead of as fast as possible", nullptr},
      {"backend", 0, 0, G_OPTION_ARG_STRING, &to.backend, "Where to compute (auto)", "auto|cuda|cpu"},
      {"reference", 0, 0, G_OPTION_ARG_STRING, &to.reference, "The picture that frames are compared with (previous)",
       "previous|first|background|mog2|median"},
      {"threshold", 't', 0, G_OPTION_ARG_STRING, &to.threshold,
       "Pixels that differ by more have changed, 0 to 255 (15)", "STEPS"},
      {"motion-threshold", 'm', 0, G_OPTION_ARG_STRING, &to.motion_threshold,
       "Smallest share of changed pixels that counts as motion, 0 to 1 (0)", "SHARE"},
      {"gap", 'g', 0, G_OPTION_ARG_STRING, &to.gap, "Motion ends after this time without motion (5)", "SECONDS"},
      {"start", 0, 0, G_OPTION_ARG_STRING, &to.start, "Where in a clip to begin, in frames, seconds or hh:mm:ss",
       "TIME"},
      {"end", 0, 0, G_OPTION_ARG_STRING, &to.end, "Where in a clip to end, in the same forms", "TIME"},
      {"duration", 0, 0, G_OPTION_ARG_STRING, &to.duration, "Length of the part, instead of --end", "TIME"},
      {"frame-skip", 0, 0, G_OPTION_ARG_INT, &to.skip, "Skip N frames after each analysed frame (0)", "N"},
      {"min-event", 0, 0, G_OPTION_ARG_STRING, &to.shortest, "Omit shorter motions and visits", "TIME"},
      {"rate", 0, 0, G_OPTION_ARG_STRING, &to.rate,
       "Frames per second of a clip without times, such as a raw .h264 file", "RATE"},
      // The names of these options in other programs.
      {"start-time", 0, G_OPTION_FLAG_HIDDEN, G_OPTION_ARG_STRING, &to.start, nullptr, "TIME"},
      {"end-time", 0, G_OPTION_FLAG_HIDDEN, G_OPTION_ARG_STRING, &to.end, nullptr, "TIME"},
      {"min-event-length", 0, G_OPTION_FLAG_HIDDEN, G_OPTION_ARG_STRING, &to.shortest, nullptr, "TIME"},
      {"set", 0, 0, G_OPTION_ARG_STRING_ARRAY, &to.set, "Set any other property of cudadiff; may be repeated",
       "NAME=VALUE"},
      {G_OPTION_REMAINING, 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &to.inputs, nullptr, "INPUT…"},
      {}};
  GOptionContext* context = g_option_context_new(nullptr);
  g_option_context_set_summary(
      context,
      "Watches every INPUT for motion: a file, a URI (rtsp://…), a camera (/dev/video0), `test` (a live picture\n"
      "with a ball in it) or `test:FRAMES` (a clip of it). Each event is a line of JSON. Ctrl-C ends it cleanly.");
  g_option_context_add_main_entries(context, entries, nullptr);
  g_option_context_add_group(context, gst_init_get_option_group());
  GError* error = nullptr;
  const bool good = g_option_context_parse(context, &argc, &argv, &error);
  if (!good) g_printerr("motion-alarm: %s; try --help\n", error->message);
  g_clear_error(&error);
  g_option_context_free(context);
  return good;
}

/// Reads the options for the part of each clip to analyse. Prints an error and returns false if they are wrong.
bool read_part(const Arguments& arguments, Settings& to) {
  for (const auto& [name, text, time] : {std::tuple{"start", arguments.start, &to.part.start},
                                         {"end", arguments.end, &to.part.end},
                                         {"duration", arguments.duration, &to.part.duration},
                                         {"min-event", arguments.shortest, &to.shortest}})
    if (text && !(*time = time_of(text))) {
      g_printerr("motion-alarm: --%s: %s is not a time: it must be %s\n", name, text, time_forms);
      return false;
    }
  if (arguments.rate && !(to.part.rate = rate_of(arguments.rate))) {
    g_printerr("motion-alarm: --rate: %s is not a frame rate: it must be %s\n", arguments.rate, rate_form);
    return false;
  }
  if (arguments.skip < 0 || arguments.skip > 10000) {
    g_printerr("motion-alarm: --frame-skip is %d: it must be 0 to 10000\n", arguments.skip);
    return false;
  }
  to.part.skip = guint64(arguments.skip);
  const std::string error = error_of(to.part);
  if (!error.empty()) g_printerr("motion-alarm: %s\n", error.c_str());
  return error.empty();
}

/// Converts the arguments to settings and tries them on an element. Prints an error and returns nothing if they are
/// wrong.
std::optional<Settings> settings_of(const Arguments& arguments, GstElement* diff) {
  Settings settings;
  if (arguments.snapshots) settings.snapshots = arguments.snapshots;
  settings.realtime = arguments.realtime;
  settings.several = arguments.inputs && arguments.inputs[0] && arguments.inputs[1];
  settings.progress = !std::isnan(arguments.every);
  if (settings.progress && !(arguments.every >= 0 && arguments.every <= 1e9)) {
    g_printerr("motion-alarm: --every is %g: it must be 0 to 1e9 seconds\n", arguments.every);
    return {};
  }
  if (!read_part(arguments, settings)) return {};
  auto& properties = settings.properties;
  properties.emplace_back("output", arguments.boxes ? "overlay" : "passthrough");
  // Without --every, nobody reads the messages of frames between begin and end.
  const guint64 interval = settings.progress   ? guint64(arguments.every * GST_SECOND)
                           : settings.shortest ? 0  // Shortest has to know how long a motion lasts
                                               : G_MAXUINT64;
  properties.emplace_back("message-interval", std::to_string(interval));
  for (const auto& [name, value] : {std::pair{"backend", arguments.backend},
                                    {"reference", arguments.reference},
                                    {"threshold", arguments.threshold},
                                    {"motion-threshold", arguments.motion_threshold},
                                    {"gap", arguments.gap}})
    if (value) properties.emplace_back(name, value);
  for (gchar** set = arguments.set; set && *set; ++set) {
    const std::string text = *set;
    const auto equals = text.find('=');
    properties.emplace_back(text.substr(0, equals), equals == std::string::npos ? "" : text.substr(equals + 1));
  }

  for (const auto& [name, value] : properties)
    if (!set_property(diff, name, value)) {
      g_printerr("motion-alarm: cudadiff has no property %s that can be `%s`; see gst-inspect-1.0 cudadiff\n",
                 name.c_str(), value.c_str());
      return {};
    }
  return settings;
}

/// Runs until every input has ended, by itself or because of a signal.
class Alarm {
 public:
  ExitStatus run(char** locations, const Settings& settings) {
    std::set<std::string> labels;
    std::map<std::string, std::string> names;  // by location
    std::map<std::string, int> shown;          // how many locations look the same without their secrets
    for (; *locations; ++locations) {
      std::string& name = names[*locations];
      if (name.empty()) {
        name = shown_location(*locations);
        if (const int count = ++shown[name]; count > 1) name += " (" + std::to_string(count) + ')';
      }
      const std::string base = label_of(name);
      std::string label = base;
      for (int count = 2; !labels.insert(label).second; ++count) label = base + '-' + std::to_string(count);
      inputs_.push_back(std::make_unique<Input>(*locations, name, label, settings, [this] {
        if (--running_ == 0) g_main_loop_quit(loop_);
      }));
    }
    running_ = inputs_.size();
    for (const auto& input : inputs_) input->start();
    // Before the loop runs, a signal ends the program immediately.
    for (int signal : {SIGINT, SIGTERM})
      g_unix_signal_add(
          signal, [](gpointer self) { return static_cast<Alarm*>(self)->on_signal(); }, this);
    if (running_ > 0) g_main_loop_run(loop_);
    g_main_loop_unref(loop_);
    for (const auto& input : inputs_)
      if (input->failed()) return some_failed;
    return all_well;
  }

 private:
  /// A label for file names: the last part of the name, with plain characters only, and short enough to append a time.
  static std::string label_of(const std::string& name) {
    gchar* base = g_path_get_basename(name.c_str());
    std::string label = g_strcanon(base, G_CSET_A_2_Z G_CSET_a_2_z G_CSET_DIGITS "-_.", '_');
    g_free(base);
    return label.substr(0, 200);
  }

  /// Ends all inputs. Runs only once: a second signal has its default action, even if an input hangs.
  gboolean on_signal() {
    for (const auto& input : inputs_) input->drain();
    return G_SOURCE_REMOVE;
  }

  GMainLoop* const loop_ = g_main_loop_new(nullptr, FALSE);
  std::vector<std::unique_ptr<Input>> inputs_;
  std::size_t running_ = 0;
};

ExitStatus watch(int argc, char** argv) {
  Arguments arguments;
  if (!parse(arguments, argc, argv)) return wrong_usage;
  if (!arguments.inputs) {
    g_printerr("motion-alarm: no input was named; try --help\n");
    return wrong_usage;
  }
  GstElement* diff = gst_element_factory_make("cudadiff", nullptr);
  if (!diff) {
    g_printerr(
        "motion-alarm: the plugin cudavision was not found; set GST_PLUGIN_PATH to the folder of "
        "libgstcudavision.so\n");
    return some_failed;
  }
  gst_object_ref_sink(diff);
  const std::optional<Settings> settings = settings_of(arguments, diff);
  gst_object_unref(diff);
  if (!settings) return wrong_usage;
  if (arguments.snapshots && g_mkdir_with_parents(arguments.snapshots, 0777) != 0) {
    g_printerr("motion-alarm: cannot make the folder %s: %s\n", arguments.snapshots, g_strerror(errno));
    return some_failed;
  }
  return Alarm().run(arguments.inputs, *settings);
}

}  // namespace

int main(int argc, char** argv) {
  const ExitStatus status = watch(argc, argv);
  if (gst_is_initialized()) gst_deinit();
  return status;
}
