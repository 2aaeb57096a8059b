// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tests/soak/journal.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <set>
#include <sstream>
#include <stdexcept>
#include <utility>

namespace cudavision::soak {

Journal::Journal(const std::string& file, const Run& run) : file_(file), to_(std::fopen(file.c_str(), "w")) {
  if (!to_) throw std::runtime_error(file + ": " + std::strerror(errno));
  std::fprintf(to_.get(), "soak-journal 1 backend=%s seed=%llu pipelines=%d\n", run.backend.c_str(),
               (unsigned long long)run.seed, run.pipelines);
  std::fflush(to_.get());
}

void Journal::write(int lane, long frames, char mark, const std::string& text) {
  std::string line = text;
  std::replace(line.begin(), line.end(), '\n', ';');
  const std::lock_guard<std::mutex> lock(mutex_);
  const std::chrono::duration<double> since = std::chrono::steady_clock::now() - begin_;
  std::fprintf(to_.get(), "%d\t%.3f\t%ld\t%c %s\n", lane, since.count(), frames, mark, line.c_str());
  std::fflush(to_.get());
}

Recorded read_journal(const std::string& file) {
  std::ifstream from(file);
  if (!from) throw std::runtime_error(file + ": " + std::strerror(errno));
  Recorded recorded;
  std::string line;
  std::getline(from, line);
  char backend[16] = "";
  unsigned long long seed = 0;
  if (std::sscanf(line.c_str(), "soak-journal 1 backend=%15s seed=%llu pipelines=%d", backend, &seed,
                  &recorded.run.pipelines) != 3)
    throw std::runtime_error(file + " is no journal of the soak");
  recorded.run.backend = backend;
  recorded.run.seed = seed;
  std::map<int, Step> before;
  std::set<int> failed;
  // a line without an end is incomplete
  for (int number = 2; std::getline(from, line) && !from.eof(); ++number) {
    std::istringstream columns(line);
    int lane = 0;
    Step step{};
    char mark = 0;
    if (!(columns >> lane >> step.seconds >> step.frames >> mark) || columns.get() != ' ')
      throw std::runtime_error(file + ", line " + std::to_string(number) + ": " + line);
    if (mark == '!') failed.insert(lane);
    if (mark != '>' || failed.count(lane)) continue;
    std::getline(columns, step.action);
    const Step last = std::exchange(before[lane], step);
    recorded.steps[lane].push_back({step.seconds - last.seconds, step.frames - last.frames, step.action});
  }
  return recorded;
}

}  // namespace cudavision::soak
