// SPDX-License-Identifier: LGPL-2.1-or-later
// Runs pipelines in parallel in one process, disturbs each one at random, and compares every frame with the expected
// one:
//   soak [--backend cuda|cpu] [--pipelines N] [--seconds S] [--actions N] [--seed N] [--only N[,N…]] [--patience S]
//        [--journal FILE] [--replay FILE [--twin]] [--fault ACTION]
// README.md beside this file explains the options and the checks. Pipeline i depends on the seed plus i (and on the
// timing of threads, as any real pipeline does); --only runs only some of them. Ends immediately if a pipeline delivers
// no frame for `patience` seconds, which pass more slowly on a busy machine (fair_time.hpp). After a fifth of the time,
// the memory of the process and of the GPU must stay constant.
// Exit status: 0; 1 if something failed; 77 if the backend does not work here.
#include <gst/gst.h>
#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>

#include "tests/soak/lane.hpp"
#include "tests/soak/levels.hpp"
#include "tests/streams/complaints.hpp"
#include "tests/streams/options.hpp"
#include "tests/streams/plugin.hpp"

namespace {

using namespace cudavision;
using Clock = std::chrono::steady_clock;

// A line fitted to the samples may grow by this much, in MiB, for heaps of new threads and caches that fill late.
constexpr double process_bound = 32, heap_bound = 16, device_bound = 16;

struct Arguments {
  soak::Options options;
  soak::Run run;
  soak::Recorded recorded;  ///< the run to repeat
  bool replays = false;
  double seconds = 600;
  long actions = std::numeric_limits<long>::max();  ///< of each pipeline
  std::vector<int> only;                            ///< numbers of the pipelines to run; empty: all
  std::string journal;                              ///< its file

  bool runs(int pipeline) const {
    if (replays && !recorded.steps.count(pipeline)) return false;
    return only.empty() || std::find(only.begin(), only.end(), pipeline) != only.end();
  }
};

/// Throws std::runtime_error with the reason.
Arguments parse_arguments(int argc, char** argv) {
  Arguments arguments;
  soak::Options& options = arguments.options;
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
    arguments.recorded = soak::read_journal(file);
    arguments.run = arguments.recorded.run;
    arguments.seconds = std::numeric_limits<double>::infinity();
  } else if (options.twin) {
    throw std::runtime_error("--twin needs --replay");
  } else if (arguments.journal.empty()) {
    arguments.journal = std::string(g_get_tmp_dir()) + "/soak-" + std::to_string(getpid()) + ".journal";
  }
  if (!arguments.journal.empty()) options.journal = std::make_shared<soak::Journal>(arguments.journal, arguments.run);
  options.backend = arguments.run.backend;
  return arguments;
}

using Lanes = std::vector<std::unique_ptr<soak::Lane>>;

/// In a twin, prints whether it failed. Otherwise makes the twins of the failed pipelines, and waits for their output.
void compare_with_twins(const Lanes& lanes, const Arguments& arguments) {
  std::string failed;
  for (const auto& lane : lanes) {
    soak::Report& report = lane->report();
    if (arguments.options.twin)
      std::printf("pipeline %d, %s: %s\n", report.number(), report.name().c_str(),
                  report.failures() ? ("also fails: " + report.first_failure()).c_str() : "does not fail");
    else if (report.failures())
      failed += (failed.empty() ? "" : ",") + std::to_string(report.number());
  }
  if (failed.empty() || arguments.journal.empty()) return;
  std::printf("the journal: %s\n", arguments.journal.c_str());
  std::fflush(stdout);
  const std::string patience = std::to_string(arguments.options.patience);
  const char* command[] = {"/proc/self/exe", "--replay",   arguments.journal.c_str(), "--twin", "--only",
                           failed.c_str(),   "--patience", patience.c_str(),          nullptr};
  GError* error = nullptr;
  int status = 0;
  if (!g_spawn_sync(nullptr, const_cast<char**>(command), nullptr, G_SPAWN_CHILD_INHERITS_STDIN, nullptr, nullptr,
                    nullptr, nullptr, &status, &error))
    std::printf("the twins do not start: %s\n", error->message);
  else if (!WIFEXITED(status))
    std::printf("pipelines %s without our elements: fail, too: the process ends by signal %d\n", failed.c_str(),
                WTERMSIG(status));
  g_clear_error(&error);
}

/// Ends the process, because the threads of a hanging pipeline do not end.
[[noreturn]] void end_hanging(const Lanes& lanes, soak::Lane& lane, const char* what, const Arguments& arguments) {
  lane.report().fail(what);
  std::printf("%s", lane.states().c_str());
  compare_with_twins(lanes, arguments);
  if (!arguments.options.twin) std::printf("0 passed, 1 failed, 0 skipped\n");
  std::fflush(stdout);
  _exit(1);
}

/// Runs the pipelines, or repeats their actions, until the time is over or all have ended.
void run(Lanes& lanes, const Arguments& arguments, soak::Levels& process, soak::Levels& heap, soak::Levels& device) {
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (auto& lane : lanes)
    threads.emplace_back([&lane, &stop, &arguments] {
      if (arguments.replays)
        lane->replay(stop, arguments.recorded.steps.at(lane->report().number()));
      else
        lane->run(stop, arguments.actions);
    });
  const auto begin = Clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
  const auto all_ended = [&] {
    for (auto& lane : lanes)
      if (!lane->report().ended()) return false;
    return true;
  };
  const double seconds = arguments.seconds, patience = arguments.options.patience;
  double next_sample = seconds / 5, stopping = 0;
  while (!all_ended()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(seconds < 1e6 ? 200 : 20));
    if (elapsed() >= seconds && !stop.exchange(true)) stopping = soak::fair_time();
    for (auto& lane : lanes) {
      const soak::Report& report = lane->report();
      if (report.ended()) continue;
      if (stop && soak::fair_time() - stopping > 3 * patience)
        end_hanging(lanes, *lane, "the pipeline does not stop", arguments);
      if (stop) continue;
      if (report.silence() > patience) end_hanging(lanes, *lane, "no more frames arrive", arguments);
      if (report.standstill() > 3 * patience) end_hanging(lanes, *lane, "an action does not end", arguments);
    }
    if (elapsed() < next_sample || stop) continue;
    next_sample = elapsed() + std::max(1.0, seconds / 200);
    process.add(elapsed(), soak::process_memory());
    if (const auto used = soak::heap_in_use()) heap.add(elapsed(), *used);
    if (const auto used = soak::device_memory(); used && arguments.run.backend == "cuda") device.add(elapsed(), *used);
  }
  for (std::thread& thread : threads) thread.join();
}

Arguments arguments_or_exit(int argc, char** argv) try {
  return parse_arguments(argc, argv);
} catch (const std::runtime_error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  std::exit(1);
}

}  // namespace

int main(int argc, char** argv) {
  // Otherwise the heaps of new threads, and the gaps that frames leave in them, would hide whether memory stays
  // constant.
  mallopt(M_ARENA_MAX, 4);
  mallopt(M_MMAP_THRESHOLD, 16 << 10);
  const Arguments arguments = arguments_or_exit(argc, argv);
  gst_init(nullptr, nullptr);
  g_autoptr(GstElementFactory) factory = gst_element_factory_find("cudagaussian");
  std::string reason = "the plugin is not there";
  if (!factory || !streams::works("cudagaussian", arguments.run.backend, reason)) {
    std::printf("skipped: backend=%s does not work here: %s\n", arguments.run.backend.c_str(), reason.c_str());
    if (!arguments.journal.empty()) std::remove(arguments.journal.c_str());
    return 77;
  }
  streams::watch_log();

  Lanes lanes;
  for (int i = 0; i < arguments.run.pipelines; ++i) {
    if (!arguments.runs(i)) continue;
    const std::uint64_t own_seed = arguments.run.seed + std::uint64_t(i);
    soak::Options options = arguments.options;
    options.number = i;
    lanes.push_back(i % 4 == 3 ? soak::new_mixer_lane(own_seed, options)
                               : soak::new_filter_lane(i / 4 * 3 + i % 4, own_seed, options));
  }
  soak::Levels process("process"), heap("heap"), device("device");
  run(lanes, arguments, process, heap, device);

  int passed = 0, failed = 0;
  long frames = 0, actions = 0, freed = 0, late_caps = 0;
  for (auto& lane : lanes) {
    ++(lane->report().failures() ? failed : passed);
    frames += lane->report().frames();
    actions += lane->report().actions();
    freed += lane->times_freed();
    late_caps += lane->late_caps();
  }
  compare_with_twins(lanes, arguments);
  if (arguments.options.twin) return failed ? 1 : 0;
  lanes.clear();
  for (const std::string& complaint : streams::take_complaints()) {
    std::printf("FAILED: %s\n", complaint.c_str());
    ++failed;
  }
  std::printf("%ld frames compared, %ld actions\n", frames, actions);
  if (freed)
    std::printf("%ld times GStreamer left a sink in PAUSED after two flushes (tests/soak/UPSTREAM.md)\n", freed);
  if (late_caps)
    std::printf("%ld times GStreamer kept new caps from a capsfilter after a flush (tests/soak/UPSTREAM.md)\n",
                late_caps);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  process.check(1e6);  // a sanitizer keeps freed memory
#else
  failed += !process.check(process_bound);
  failed += !heap.check(heap_bound);
#endif
  if (arguments.run.backend == "cuda") failed += !device.check(device_bound);
  if (!failed && !arguments.journal.empty()) std::remove(arguments.journal.c_str());
  std::printf("%d passed, %d failed, 0 skipped\n", passed, failed);
  return failed ? 1 : 0;
}
