// SPDX-License-Identifier: LGPL-2.1-or-later
// Pipelines run side by side in one process while each is disturbed at random, and every frame is compared with what it should be:
//   soak [--backend cuda|cpu] [--pipelines N] [--seconds S] [--seed N] [--only N] [--patience S]
// Pipeline i depends on the seed plus i (and on the timing of threads, as any real pipeline does); --only runs that one alone. Ends at
// once if a pipeline delivers no frame for `patience` seconds, which pass more slowly on a busy machine (fair_time.hpp). From a fifth of
// the time on, the memory of the process and of the GPU must stay flat.
// Exit status: 0; 1 if something failed; 77 if the backend does not work here.
#include <gst/gst.h>
#include <malloc.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "tests/fuzz/complaints.hpp"
#include "tests/soak/lane.hpp"
#include "tests/soak/levels.hpp"

namespace {

using namespace cudavision;
using Clock = std::chrono::steady_clock;

// A line fitted to the samples may grow by this much, in MiB: the heaps of new threads, caches that fill late.
constexpr double process_bound = 32, device_bound = 16;

bool works(const std::string& backend) {
  GstElement* element = gst_element_factory_make("cudagaussian", nullptr);
  if (!element) return false;
  gst_util_set_object_arg(G_OBJECT(element), "backend", backend.c_str());
  const bool opened = gst_element_set_state(element, GST_STATE_READY) != GST_STATE_CHANGE_FAILURE;
  gst_element_set_state(element, GST_STATE_NULL);
  gst_object_unref(element);
  return opened;
}

/// Ends the process: the threads of a pipeline that hangs do not end.
[[noreturn]] void end_hanging(soak::Lane& lane, const char* what) {
  lane.report().fail(what);
  std::printf("%s", lane.states().c_str());
  std::printf("0 passed, 1 failed, 0 skipped\n");
  std::fflush(stdout);
  _exit(1);
}

}  // namespace

int main(int argc, char** argv) {
  soak::Options options;
  int pipelines = 16, only = -1;
  double seconds = 600;
  std::uint64_t seed = 1;
  for (int i = 1; i < argc; i += 2) {
    const std::string name = argv[i], value = i + 1 < argc ? argv[i + 1] : "";
    if (name == "--backend" && !value.empty())
      options.backend = value;
    else if (name == "--pipelines" && !value.empty())
      pipelines = std::atoi(value.c_str());
    else if (name == "--seconds" && !value.empty())
      seconds = std::atof(value.c_str());
    else if (name == "--seed" && !value.empty())
      seed = std::strtoull(value.c_str(), nullptr, 10);
    else if (name == "--only" && !value.empty())
      only = std::atoi(value.c_str());
    else if (name == "--patience" && !value.empty())
      options.patience = std::atof(value.c_str());
    else {
      std::fprintf(stderr, "usage: %s [--backend cuda|cpu] [--pipelines N] [--seconds S] [--seed N] [--only N] [--patience S]\n",
                   argv[0]);
      return 1;
    }
  }
  // Otherwise the heaps of ever new threads, and the holes that frames leave in them, hide whether memory stays flat.
  mallopt(M_ARENA_MAX, 4);
  mallopt(M_MMAP_THRESHOLD, 16 << 10);
  gst_init(nullptr, nullptr);
  if (!works(options.backend)) {
    std::printf("skipped: backend=%s does not work here\n", options.backend.c_str());
    return 77;
  }
  fuzz::watch_log();

  std::atomic<bool> stop{false};
  std::vector<std::unique_ptr<soak::Lane>> lanes;
  std::vector<std::thread> threads;
  for (int i = 0; i < pipelines; ++i) {
    if (only >= 0 && i != only) continue;
    const std::uint64_t own_seed = seed + std::uint64_t(i);
    lanes.push_back(i % 4 == 3 ? soak::new_mixer_lane(own_seed, options)
                               : soak::new_filter_lane(i / 4 * 3 + i % 4, own_seed, options));
  }
  for (auto& lane : lanes) threads.emplace_back([&lane, &stop] { lane->run(stop); });

  soak::Levels process("process"), device("device");
  const auto begin = Clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
  for (double next_sample = seconds / 5; elapsed() < seconds;) {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    for (auto& lane : lanes) {
      if (lane->report().silence() > options.patience) end_hanging(*lane, "no frame comes any more");
      if (lane->report().standstill() > 3 * options.patience) end_hanging(*lane, "an action does not end");
    }
    if (elapsed() < next_sample) continue;
    next_sample = elapsed() + std::max(1.0, seconds / 200);
    process.add(elapsed(), soak::process_memory());
    if (const auto used = soak::device_memory(); used && options.backend == "cuda") device.add(elapsed(), *used);
  }
  stop = true;
  const double stopping = soak::fair_time();
  std::atomic<bool> joined{false};
  std::thread last_watch([&] {
    while (!joined && soak::fair_time() - stopping < 3 * options.patience)
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    if (joined) return;
    for (auto& lane : lanes)
      if (!lane->report().ended()) end_hanging(*lane, "the pipeline does not stop");
    std::printf("FAILED: the pipelines do not stop\n");
    _exit(1);
  });
  for (std::thread& thread : threads) thread.join();
  joined = true;
  last_watch.join();

  int passed = 0, failed = 0;
  long frames = 0, actions = 0, freed = 0;
  for (auto& lane : lanes) {
    ++(lane->report().failures() ? failed : passed);
    frames += lane->report().frames();
    actions += lane->report().actions();
    freed += lane->times_freed();
  }
  lanes.clear();
  for (const std::string& complaint : fuzz::take_complaints()) {
    std::printf("FAILED: %s\n", complaint.c_str());
    ++failed;
  }
  std::printf("%ld frames compared, %ld actions\n", frames, actions);
  if (freed) std::printf("%ld times GStreamer left a sink in PAUSED after two flushes (tests/soak/UPSTREAM.md)\n", freed);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  process.check(1e6);  // a sanitizer keeps freed memory
#else
  failed += !process.check(process_bound);
#endif
  if (options.backend == "cuda") failed += !device.check(device_bound);
  std::printf("%d passed, %d failed, 0 skipped\n", passed, failed);
  return failed ? 1 : 0;
}
