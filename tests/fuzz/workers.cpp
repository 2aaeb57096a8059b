// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tests/fuzz/workers.hpp"

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <vector>

namespace cudavision::fuzz {
namespace {

std::int64_t now_ms() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return std::int64_t(time.tv_sec) * 1000 + time.tv_nsec / 1000000;
}

/// Memory that all workers and their parent share.
struct Shared {
  std::atomic<std::int64_t> next, passed, failed;
};
/// Memory that one worker and its parent share.
struct Progress {
  std::atomic<std::int64_t> began_ms;  // start time of the current case; 0: none
};

template <typename T>
T* share() {
  void* address = mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED) std::abort();
  return new (address) T();
}

struct Worker {
  pid_t process = -1;
  Progress* progress = share<Progress>();
  std::FILE* log = std::tmpfile();  // stderr of the current case
  bool timed_out = false;
};

void empty(std::FILE* log) {
  if (ftruncate(fileno(log), 0) == 0) lseek(fileno(log), 0, SEEK_SET);
}

/// Copies at most 20000 bytes of a worker's log to stdout in one write.
void print_failure(std::FILE* log, const std::string& closing) {
  std::string text(20000, '\0');
  const ssize_t length = pread(fileno(log), text.data(), text.size(), 0);
  text.resize(length > 0 ? std::size_t(length) : 0);
  text = "FAIL " + text + closing + "\n";
  if (write(STDOUT_FILENO, text.data(), text.size()) < 0) std::abort();
}

/// The main loop of a worker: takes one case after another until none is left.
[[noreturn]] void work(Worker& worker, Shared& shared, std::int64_t end, std::int64_t most_failures,
                       const std::function<void()>& prepare, const RunCase& run) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // without the parent nobody reads the results
  dup2(fileno(worker.log), STDERR_FILENO);
  prepare();
  while (shared.failed < most_failures) {
    const std::int64_t number = shared.next++;
    if (number >= end) break;
    empty(worker.log);
    worker.progress->began_ms = now_ms();
    const bool good = run(number);
    worker.progress->began_ms = 0;
    ++(good ? shared.passed : shared.failed);
    if (!good) print_failure(worker.log, "");
  }
  _exit(0);
}

void start(Worker& worker, Shared& shared, std::int64_t end, std::int64_t most_failures,
           const std::function<void()>& prepare, const RunCase& run) {
  std::fflush(nullptr);
  empty(worker.log);
  worker.progress->began_ms = 0;
  worker.timed_out = false;
  worker.process = fork();
  if (worker.process == 0) work(worker, shared, end, most_failures, prepare, run);
}

/// Records the end of a worker. Returns whether it ended while a case was running.
bool bury(Worker& worker, Shared& shared, int status, int limit_s) {
  worker.process = -1;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return false;
  ++shared.failed;
  const std::string how = worker.timed_out      ? "did not end within " + std::to_string(limit_s) + " s"
                          : WIFSIGNALED(status) ? std::string("ended by signal: ") + strsignal(WTERMSIG(status))
                                                : "ended with exit status " + std::to_string(WEXITSTATUS(status));
  print_failure(worker.log, "  " + how);
  return worker.progress->began_ms != 0;
}

}  // namespace

Counts run_in_workers(std::int64_t first, std::int64_t count, int jobs, int limit_s, std::int64_t most_failures,
                      const std::function<void()>& prepare, const RunCase& run) {
  Shared& shared = *share<Shared>();
  shared.next = first;
  std::vector<Worker> workers{std::size_t(jobs)};
  for (Worker& worker : workers) start(worker, shared, first + count, most_failures, prepare, run);
  for (bool busy = true; busy;) {
    usleep(5000);
    busy = false;
    for (Worker& worker : workers) {
      if (worker.process < 0) continue;
      busy = true;
      int status;
      if (waitpid(worker.process, &status, WNOHANG) == worker.process) {
        if (bury(worker, shared, status, limit_s) && shared.failed < most_failures)
          start(worker, shared, first + count, most_failures, prepare, run);
        continue;
      }
      const std::int64_t began = worker.progress->began_ms, taken = began ? now_ms() - began : 0;
      if (taken > (limit_s + 5) * 1000) {
        kill(worker.process, SIGKILL);
      } else if (taken > limit_s * 1000 && !worker.timed_out) {
        worker.timed_out = true;
        kill(worker.process, SIGABRT);  // lets a sanitizer or a debugger show the stack
      }
    }
  }
  return {shared.passed, shared.failed};
}

}  // namespace cudavision::fuzz
