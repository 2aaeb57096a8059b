// SPDX-License-Identifier: LGPL-2.1-or-later
// Runs random cases against every element of the plugin: sizes, formats, layouts, settings, metas, caps,
// events, queries, threads.
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
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "tests/fuzz/cases.hpp"
#include "tests/fuzz/complaints.hpp"
#include "tests/fuzz/plugin.hpp"
#include "tests/fuzz/workers.hpp"

using namespace cudavision::fuzz;

// A report of a sanitizer aborts the case. Leak detection is off,
// because a worker ends without freeing GStreamer's global memory.
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
  std::uint64_t seed = 1, first = 0, cases = 1000, jobs = std::clamp(std::thread::hardware_concurrency(), 1u, 8u),
                limit = 60, max_failures = 50;
  std::string element, backend = "auto";
  bool list = false;
};

/// Reads the value of `--name value` or `--name=value`, and moves `i` to the last argument that it used.
bool take_option(int argc, char** argv, int& i, const char* name, std::string& value) {
  const std::size_t length = std::strlen(name);
  if (std::strncmp(argv[i], name, length) != 0) return false;
  if (argv[i][length] == '=') {
    value = argv[i] + length + 1;
    return true;
  }
  if (argv[i][length] != '\0' || i + 1 >= argc) return false;
  value = argv[++i];
  return true;
}

bool read_options(int argc, char** argv, Options& options) {
  struct {
    const char* name;
    std::uint64_t& number;
  } numbers[] = {{"--seed", options.seed}, {"--first", options.first}, {"--cases", options.cases},
                 {"--jobs", options.jobs}, {"--limit", options.limit}, {"--max-failures", options.max_failures}};
  for (int i = 1; i < argc; ++i) {
    std::string value;
    bool known = std::strcmp(argv[i], "--list") == 0;
    if (known) options.list = true;
    for (auto& [name, number] : numbers) {
      if (known || !take_option(argc, argv, i, name, value)) continue;
      char* end;
      number = std::strtoull(value.c_str(), &end, 10);
      known = !value.empty() && *end == '\0';
    }
    if (!known && !take_option(argc, argv, i, "--element", options.element) &&
        !take_option(argc, argv, i, "--backend", options.backend)) {
      std::fprintf(stderr, "wrong option: %s\n", argv[i]);
      return false;
    }
  }
  for (const char* backend : {"cpu", "cuda", "auto"})
    if (options.backend == backend) return true;
  std::fprintf(stderr, "--backend is %s: it must be cpu, cuda or auto\n", options.backend.c_str());
  return false;
}

void prepare() {
  load_plugin();
  watch_log();
}

bool run(const Options& options, std::uint64_t number) {
  const Case c = draw_case(options.seed, number, options.backend, options.element);
  std::fprintf(stderr, "%s\n", describe(c).c_str());
  run_case(c);
  const auto complaints = take_complaints();
  for (const std::string& complaint : complaints) std::fprintf(stderr, "  %s\n", complaint.c_str());
  return complaints.empty();
}

/// Checks that the elements and the backend can be used. Returns 0 if so, otherwise the exit status of this program.
int check(const Options& options) {
  const std::vector<std::string> names = element_names();
  std::string reason;
  if (names.empty()) {
    std::printf("the plugin is not there: set GST_PLUGIN_PATH_1_0 to the folder of libgstcudavision.so\n");
  } else if (!options.element.empty() && std::find(names.begin(), names.end(), options.element) == names.end()) {
    std::printf("--element is %s: the plugin has no such element\n", options.element.c_str());
  } else if (!works(names[0], options.backend, reason)) {
    std::printf("skipped: %s\n", reason.c_str());
    return 77;
  } else {
    return 0;
  }
  return 2;
}

/// Calls check() in a process of its own, because the threads and the CUDA context that it
/// creates do not survive fork().
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
    for (std::uint64_t i = options.first; i < options.first + options.cases; ++i)
      std::printf("%s\n", describe(draw_case(options.seed, i, options.backend, options.element)).c_str());
    return 0;
  }
  Counts counts;
  if (options.jobs == 0) {
    prepare();
    for (std::uint64_t i = options.first; i < options.first + options.cases; ++i)
      ++(run(options, i) ? counts.passed : counts.failed);
  } else {
    counts = run_in_workers(options.first, options.cases, int(options.jobs), int(options.limit), options.max_failures,
                            prepare, [&](std::uint64_t number) { return run(options, number); });
  }
  if (counts.failed >= options.max_failures)
    std::printf("ended early, after %" PRIu64 " failures (--max-failures)\n", counts.failed);
  std::printf("seed %" PRIu64 ", backend %s\n%" PRIu64 " passed, %" PRIu64 " failed, 0 skipped\n", options.seed,
              options.backend.c_str(), counts.passed, counts.failed);
  return counts.failed > 0;
}
