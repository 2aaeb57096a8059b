// SPDX-License-Identifier: LGPL-2.1-or-later
// Runs random cases against every element of the plugin: sizes, formats, layouts, settings, metas, caps, events,
// queries, threads.
//   fuzz [--seed N] [--first K] [--cases N] [--element NAME] [--backend cpu|cuda|auto] [--jobs N] [--limit S]
//        [--max-failures N] [--list]
// A case depends only on the seed, its number and --element: `fuzz --first K --cases 1` repeats case K. --jobs 0 runs
// the cases in this process, for a debugger. --list prints the cases. Exit status: 0 if all passed, 1 if some failed, 2
// for a wrong option, 77 if the backend does not work on this machine.
#include <gst/gst.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <string>
#include <thread>

#include "tests/fuzz/cases.hpp"
#include "tests/fuzz/workers.hpp"
#include "tests/streams/complaints.hpp"
#include "tests/streams/options.hpp"
#include "tests/streams/plugin.hpp"

using namespace cudavision::fuzz;
using namespace cudavision::streams;

// A sanitizer report aborts the case. Leak detection is off, because a worker ends without freeing GStreamer's global
// memory.
extern "C" {
__attribute__((visibility("default"))) const char* __asan_default_options() {
  return "abort_on_error=1:detect_leaks=0:handle_abort=1";
}
__attribute__((visibility("default"))) const char* __ubsan_default_options() {
  return "halt_on_error=1:abort_on_error=1:print_stacktrace=1";
}
}

namespace {

struct Options {
  std::int64_t seed = 1, first = 0, cases = 1000, jobs = std::clamp(std::thread::hardware_concurrency(), 1u, 8u),
               limit = 60, max_failures = 50;
  gchar *element = nullptr, *backend = nullptr;
  gboolean list = FALSE;
};

bool read_options(int argc, char** argv, Options& options) {
  const GOptionEntry entries[] = {
      {"seed", 0, 0, G_OPTION_ARG_INT64, &options.seed, "1 unless given", "N"},
      {"first", 0, 0, G_OPTION_ARG_INT64, &options.first, "the first case", "K"},
      {"cases", 0, 0, G_OPTION_ARG_INT64, &options.cases, "how many", "N"},
      {"jobs", 0, 0, G_OPTION_ARG_INT64, &options.jobs, "processes; 0: this one", "N"},
      {"limit", 0, 0, G_OPTION_ARG_INT64, &options.limit, "of a case, in seconds", "S"},
      {"max-failures", 0, 0, G_OPTION_ARG_INT64, &options.max_failures, "stops after so many", "N"},
      {"element", 0, 0, G_OPTION_ARG_STRING, &options.element, "only this one", "NAME"},
      {"backend", 0, 0, G_OPTION_ARG_STRING, &options.backend, "cpu, cuda or auto", "NAME"},
      {"list", 0, 0, G_OPTION_ARG_NONE, &options.list, "prints the cases", nullptr},
      {}};
  std::string wrong;
  if (!parse_options(argc, argv, entries, wrong)) return std::fprintf(stderr, "%s\n", wrong.c_str()), false;
  if (!options.backend) options.backend = g_strdup("auto");
  for (const char* backend : {"cpu", "cuda", "auto"})
    if (g_str_equal(options.backend, backend)) return true;
  std::fprintf(stderr, "--backend is %s: it must be cpu, cuda or auto\n", options.backend);
  return false;
}

std::vector<std::string> elements(const Options& options) {
  return options.element ? std::vector<std::string>{options.element} : element_names();
}

std::string line_of(const Case& c, std::int64_t number) {
  return "case " + std::to_string(number) + ": " + describe(c);
}

Case case_of(const Options& options, std::int64_t number) {
  return draw_case(Random(std::uint64_t(options.seed), std::uint64_t(number)), elements(options), options.backend);
}

void prepare() {
  load_plugin();
  watch_log();
}

bool run(const Options& options, std::int64_t number) {
  const Case c = case_of(options, number);
  std::fprintf(stderr, "%s\n", line_of(c, number).c_str());
  run_case(c);
  const auto complaints = take_complaints();
  for (const std::string& complaint : complaints) std::fprintf(stderr, "  %s\n", complaint.c_str());
  return complaints.empty();
}

/// Checks that the elements and the backend can be used. Returns 0 or the exit status of this program.
int check(const Options& options) {
  const std::vector<std::string> names = element_names();
  std::string reason;
  if (names.empty()) {
    std::printf("the plugin is not there: set GST_PLUGIN_PATH_1_0 to the folder of libgstcudavision.so\n");
  } else if (options.element && std::find(names.begin(), names.end(), options.element) == names.end()) {
    std::printf("--element is %s: the plugin has no such element\n", options.element);
  } else if (!works(names[0], options.backend, reason)) {
    std::printf("skipped: %s\n", reason.c_str());
    return 77;
  } else {
    return 0;
  }
  return 2;
}

/// Calls check() in its own process, because the threads and the CUDA context that it creates do not survive fork().
int check_in_child(const Options& options) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    load_plugin();
    const int status = check(options);
    std::fflush(nullptr);
    _exit(status);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  if (!read_options(argc, argv, options)) return 2;
  if (const int status = check_in_child(options)) return status;
  if (options.list) {
    load_plugin();
    for (std::int64_t i = options.first; i < options.first + options.cases; ++i)
      std::printf("%s\n", line_of(case_of(options, i), i).c_str());
    return 0;
  }
  Counts counts;
  if (options.jobs == 0) {
    prepare();
    for (std::int64_t i = options.first; i < options.first + options.cases; ++i)
      ++(run(options, i) ? counts.passed : counts.failed);
  } else {
    counts = run_in_workers(options.first, options.cases, int(options.jobs), int(options.limit), options.max_failures,
                            prepare, [&](std::int64_t number) { return run(options, number); });
  }
  if (counts.failed >= options.max_failures)
    std::printf("ended early, after %" PRId64 " failures (--max-failures)\n", counts.failed);
  std::printf("seed %" PRId64 ", backend %s\n%" PRId64 " passed, %" PRId64 " failed, 0 skipped\n", options.seed,
              options.backend, counts.passed, counts.failed);
  return counts.failed > 0;
}
