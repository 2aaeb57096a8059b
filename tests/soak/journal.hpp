// SPDX-License-Identifier: LGPL-2.1-or-later
// The journal of a run: the actions on each pipeline, their times, and their results. A run can be repeated from it
// (--replay).
//
// The first line names the run: "soak-journal 1 backend=cpu seed=1 pipelines=16". Each other line has four columns,
// separated by tabs: the number of the pipeline, the seconds since the start, the frames that had arrived by then, and
// a mark with a text:
//   > ACTION   an action begins. Only these lines are repeated
//   # TEXT     a comment for people: the settings that the numbers of an action stand for
//   = STATE    the elements of the pipeline have reached this state
//   ! TEXT     a failure
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace cudavision::soak {

/// The run that a journal belongs to.
struct Run {
  std::string backend = "cuda";
  std::uint64_t seed = 1;
  int pipelines = 16;
};

/// Writes a journal. Each line is in the file when a function returns, so that it survives the end of the process.
class Journal {
 public:
  /// Throws std::runtime_error if the file cannot be written.
  Journal(const std::string& file, const Run& run);
  const std::string& file() const { return file_; }
  /// May be called in any thread.
  void write(int lane, long frames, char mark, const std::string& text);

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  const std::string file_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::mutex mutex_;
  std::unique_ptr<std::FILE, Close> to_;
};

/// An action of a journal, with the seconds and frames between the start of the previous action and its own.
struct Step {
  double seconds;
  long frames;
  std::string action;
};

struct Recorded {
  Run run;
  std::map<int, std::vector<Step>> steps;  ///< by the number of the pipeline
};
/// Reads a journal, which may be incomplete. Actions after the first failure of a pipeline are omitted. Throws
/// std::runtime_error with the line that it does not understand.
Recorded read_journal(const std::string& file);

}  // namespace cudavision::soak
