// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tests/soak/arguments.hpp"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <stdexcept>

namespace cudavision::soak {
namespace {

constexpr const char* usage =
    "usage: soak [--backend cuda|cpu] [--pipelines N] [--seconds S] [--actions N] [--seed N] [--only N[,N…]] "
    "[--patience S]\n"
    "            [--journal FILE] [--replay FILE [--twin]] [--fault ACTION]";

template <typename T>
void read(const std::string& text, T& value) {
  std::istringstream from(text);
  if (!(from >> value) || !(from >> std::ws).eof()) throw std::runtime_error(text + " is no such number\n" + usage);
}

}  // namespace

bool Arguments::runs(int pipeline) const {
  if (replays && !recorded.steps.count(pipeline)) return false;
  return only.empty() || std::find(only.begin(), only.end(), pipeline) != only.end();
}

Arguments parse_arguments(int argc, char** argv) {
  Arguments arguments;
  std::string replay;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--twin") {
      arguments.options.twin = true;
      continue;
    }
    const std::string value = i + 1 < argc ? argv[++i] : "";
    if (value.empty()) throw std::runtime_error(usage);
    if (name == "--backend")
      arguments.run.backend = value;
    else if (name == "--pipelines")
      read(value, arguments.run.pipelines);
    else if (name == "--seconds")
      read(value, arguments.seconds);
    else if (name == "--actions")
      read(value, arguments.actions);
    else if (name == "--seed")
      read(value, arguments.run.seed);
    else if (name == "--patience")
      read(value, arguments.options.patience);
    else if (name == "--journal")
      arguments.journal = value;
    else if (name == "--replay")
      replay = value;
    else if (name == "--fault")
      arguments.options.fault = value;
    else if (name == "--only") {
      std::istringstream numbers(value);
      for (std::string number; std::getline(numbers, number, ',');) read(number, arguments.only.emplace_back());
    } else
      throw std::runtime_error(usage);
  }
  if (!replay.empty()) {
    arguments.replays = true;
    if (std::error_code none; std::filesystem::equivalent(arguments.journal, replay, none))
      throw std::runtime_error("--journal names the file that --replay reads: name another one");
    arguments.recorded = read_journal(replay);
    arguments.run = arguments.recorded.run;
    arguments.seconds = std::numeric_limits<double>::infinity();
  } else if (arguments.options.twin) {
    throw std::runtime_error("--twin needs --replay");
  } else if (arguments.journal.empty()) {
    arguments.journal = std::string(g_get_tmp_dir()) + "/soak-" + std::to_string(getpid()) + ".journal";
  }
  if (!arguments.journal.empty())
    arguments.options.journal = std::make_shared<Journal>(arguments.journal, arguments.run);
  arguments.options.backend = arguments.run.backend;
  return arguments;
}

}  // namespace cudavision::soak
