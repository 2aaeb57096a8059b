// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tests/soak/arguments.hpp"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <stdexcept>

#include "tests/streams/options.hpp"

namespace cudavision::soak {

bool Arguments::runs(int pipeline) const {
  if (replays && !recorded.steps.count(pipeline)) return false;
  return only.empty() || std::find(only.begin(), only.end(), pipeline) != only.end();
}

Arguments parse_arguments(int argc, char** argv) {
  Arguments arguments;
  Options& options = arguments.options;
  gchar *backend = nullptr, *only = nullptr, *journal = nullptr, *replay = nullptr, *fault = nullptr;
  gint64 seed = 1, actions = arguments.actions;
  gboolean twin = FALSE;
  const GOptionEntry entries[] = {
      {"backend", 0, 0, G_OPTION_ARG_STRING, &backend, "cuda or cpu", "NAME"},
      {"pipelines", 0, 0, G_OPTION_ARG_INT, &arguments.run.pipelines, "how many run side by side", "N"},
      {"seconds", 0, 0, G_OPTION_ARG_DOUBLE, &arguments.seconds, "how long they run", "S"},
      {"actions", 0, 0, G_OPTION_ARG_INT64, &actions, "of each pipeline", "N"},
      {"seed", 0, 0, G_OPTION_ARG_INT64, &seed, "1 unless given", "N"},
      {"only", 0, 0, G_OPTION_ARG_STRING, &only, "the pipelines to run", "N[,N…]"},
      {"patience", 0, 0, G_OPTION_ARG_DOUBLE, &options.patience, "seconds without a frame", "S"},
      {"journal", 0, 0, G_OPTION_ARG_FILENAME, &journal, "where it is written", "FILE"},
      {"replay", 0, 0, G_OPTION_ARG_FILENAME, &replay, "the journal to repeat", "FILE"},
      {"twin", 0, 0, G_OPTION_ARG_NONE, &twin, "with GStreamer's own elements", nullptr},
      {"fault", 0, 0, G_OPTION_ARG_STRING, &fault, "puts in a fault", "ACTION"},
      {}};
  if (std::string wrong; !streams::parse_options(argc, argv, entries, wrong)) throw std::runtime_error(wrong);
  const auto text = [](gchar* given) {
    const std::string copy = given ? given : "";
    g_free(given);
    return copy;
  };
  if (backend) arguments.run.backend = text(backend);
  arguments.run.seed = std::uint64_t(seed);
  arguments.actions = actions;
  arguments.journal = text(journal);
  options.twin = twin;
  options.fault = text(fault);
  std::istringstream numbers(text(only));
  for (std::string number; std::getline(numbers, number, ',');) {
    char* end;
    arguments.only.push_back(int(std::strtol(number.c_str(), &end, 10)));
    if (number.empty() || *end) throw std::runtime_error("--only: " + number + " is no number");
  }
  if (const std::string file = text(replay); !file.empty()) {
    arguments.replays = true;
    if (std::error_code none; std::filesystem::equivalent(arguments.journal, file, none))
      throw std::runtime_error("--journal names the file that --replay reads: name another one");
    arguments.recorded = read_journal(file);
    arguments.run = arguments.recorded.run;
    arguments.seconds = std::numeric_limits<double>::infinity();
  } else if (options.twin) {
    throw std::runtime_error("--twin needs --replay");
  } else if (arguments.journal.empty()) {
    arguments.journal = std::string(g_get_tmp_dir()) + "/soak-" + std::to_string(getpid()) + ".journal";
  }
  if (!arguments.journal.empty()) options.journal = std::make_shared<Journal>(arguments.journal, arguments.run);
  options.backend = arguments.run.backend;
  return arguments;
}

}  // namespace cudavision::soak
