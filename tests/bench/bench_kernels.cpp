// SPDX-License-Identifier: LGPL-2.1-or-later
// Measures the time of Filter::submit alone, and compares it with a copy of the same bytes and with peer libraries.
// Each row is one Google Benchmark, whose time is the median measured by a Runner. `--benchmark_out=FILE` writes all
// rows as JSON; `--benchmark_filter=REGEX` selects rows.
//   bench_kernels [--backend=cuda|cpu] [--sizes=8K,4K,1440p,1080p,720p,360p] [--peers=LIBRARY.so] [--benchmark_…]
// Exit status: 0; 77 if the backend has no device; 1 for a wrong option or if a submit failed.
#include <benchmark/benchmark.h>
#include <dlfcn.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/bench/peer.h"
#include "tests/bench/rows.hpp"
#include "tests/bench/runner.hpp"

namespace cudavision::bench {
namespace {

struct Size {
  const char* name;
  int width, height;
  bool of_curves = false;  ///< only for rows that show how the time depends on the size
};
constexpr Size sizes[] = {{"8K", 7680, 4320},    {"4K", 3840, 2160},        {"1440p", 2560, 1440, true},
                          {"1080p", 1920, 1080}, {"720p", 1280, 720, true}, {"360p", 640, 360, true}};

constexpr std::size_t longest_copy = 256u << 20;  ///< number of bytes read; fits in the memory of the runners
constexpr double fma_rate = 33.5e12;  ///< multiply-adds per second of an H200: half of its 67 TFLOP/s in float32

/// The limit in µs for one 1080p frame, for rows without their own limit. Non-local means and mixtures have none.
double limit_at_1080p(const Row& row) {
  if (row.name.rfind("nlm", 0) == 0 || row.name.rfind("diff-mog2", 0) == 0) return 0;
  return row.format == Format::GRAY8 || row.format == Format::NV12 ? 5 : row.format == Format::RGBA ? 8 : 15;
}

std::vector<Row> rows() {
  std::vector<Row> list;
  const auto add = [&](std::vector<Row> more) { list.insert(list.end(), more.begin(), more.end()); };
#define CUDAVISION_ADD(name) add(name##_rows());
  CUDAVISION_OPERATIONS(CUDAVISION_ADD)
#undef CUDAVISION_ADD
  add(local_rows());
  for (Row& row : list)
    if (row.must_us_1080p == 0) row.must_us_1080p = limit_at_1080p(row);
  return list;
}

/// The number of samples that a filter computes in a picture. Copied alpha and padding do not count.
double filtered_samples(const Geometry& geometry) {
  const FormatInfo& format = info(geometry.format);
  double samples = 0;
  for (int i = 0; i < format.set_count; ++i) {
    const Rect grid = geometry.grid(format.sets[i]);
    for (int c = 0; c < format.sets[i].channels; ++c) {
      const Role role = format.sets[i].roles[c];
      if (role != Role::alpha && role != Role::padding && role != Role::other)
        samples += double(grid.width) * grid.height;
    }
  }
  return samples;
}

struct Bench {
  std::unique_ptr<Runner> runner;
  Backend backend = Backend::cuda;
  std::vector<PeerEntry> peers;
  /// Number of bytes → µs of the system's copy and of the copy kernel.
  std::map<std::size_t, std::pair<double, double>> copies;
  double peer_logs = 0;  ///< Σ log(peer ÷ ours), for the geometric mean
  int measured = 0, unavailable = 0, failed = 0, over_mark = 0, with_peer = 0, slower_than_peer = 0;

  Result<std::pair<double, double>> copy_of(std::size_t bytes) {
    if (bytes > longest_copy) {  // the time of long copies is proportional to the number of bytes
      auto copy = copy_of(longest_copy);
      if (!copy.ok()) return copy.error();
      const double ratio = double(bytes) / longest_copy;
      return std::pair(copy.value().first * ratio, copy.value().second * ratio);
    }
    if (auto known = copies.find(bytes); known != copies.end()) return known->second;
    auto copy = runner->copy(bytes);
    if (!copy.ok()) return copy.error();
    auto kernel = runner->copy_kernel(bytes);
    if (!kernel.ok()) return kernel.error();
    return copies[bytes] = {copy.value().us, kernel.value().us};
  }

  /// Times every peer that accepts the work, on the pictures in the ring. Returns the fastest one, or a null name if
  /// there is none. Stores all times in counters named peer_<name><suffix>.
  std::pair<const char*, Timing> fastest_peer(const Row& row, const Geometry& geometry, const std::string& suffix,
                                              benchmark::State& state) {
    std::pair<const char*, Timing> best{};
    const FormatInfo& format = info(geometry.format);
    if (!row.peer.operation || peers.empty() || format.planes > 1 || format.depth > 8) return best;
    const PeerWork work{row.peer.operation,      geometry.width, geometry.height,
                        format.sets[0].channels, row.peer.taps,  runner->upload(row.peer.weights)};
    if (!work.weights) return best;
    for (const PeerEntry& peer : peers) {
      if (std::strcmp(peer.operation, work.operation) != 0) continue;
      const auto submit = [&](int i, Queue queue) -> Status {
        const auto& slots = runner->slots();
        const std::size_t before =
            row.peer.with_first ? 0 : (std::size_t(i) + slots.size() * diff_interval - diff_interval) % slots.size();
        const Plane &src = slots[i].src.planes[0], &dst = slots[i].dst.planes[0],
                    &reference = slots[before].src.planes[0];
        const PeerPictures pictures{src.data,       dst.data,       reference.data,
                                    int(src.pitch), int(dst.pitch), int(reference.pitch)};
        const int error = peer.submit(&work, &pictures, queue.stream);
        return error == 0 ? Status() : Status::resource(std::to_string(error));
      };
      const auto timing = runner->time(submit, int(runner->slots().size()), {100, 10, 3e5});
      if (!timing.ok()) continue;
      state.counters["peer_" + (peer.name + suffix)] = timing.value().us;
      if (!best.first || timing.value().us < best.second.us) best = {peer.name, timing.value()};
    }
    return best;
  }

  /// Stores a limit in a counter. Prints the limit if the value exceeds it. 0 means no limit.
  void compare(const char* counter, double value, double limit, benchmark::State& state) {
    if (limit <= 0) return;
    state.counters[counter] = limit;
    if (value <= limit) return;
    ++over_mark;
    std::printf("  !> %g%s", limit, std::strcmp(counter, "must_us") == 0 ? " us" : "");
  }

  /// Measures a row, fills in its counters and prints its line.
  Status measure(const Row& row, const Size& size, const std::string& name, benchmark::State& state,
                 double& measured_us) {
    const Geometry geometry{row.format, size.width, size.height};
    auto operation = row.make(geometry, backend);
    if (!operation.ok()) return operation.error();
    Timing ours, ours_equal;
    std::pair<const char*, Timing> peer_of{}, peer_of_equal{};
    for (Data data : {Data::equal, row.data}) {
      // Leave room for the additional row of padded tables, and for padding at the end of each row.
      const std::size_t room = std::size_t(row.table_bytes) * (geometry.width + 256) * (geometry.height + 1);
      if (Status status = runner->prepare(geometry, data, room); !status.ok()) return status;
      const auto& slots = runner->slots();
      if (data == Data::motion)  // with a reference of equal samples, every pixel would change
        if (operation = row.make(geometry, backend); !operation.ok()) return operation.error();
      auto timing = runner->time([&](int i, Queue queue) { return operation.value()(slots[i], queue); },
                                 int(slots.size()), runner->budget());
      if (!timing.ok()) return timing.error();
      (data == Data::equal ? ours_equal : ours) = timing.value();
      if (data != Data::equal)
        peer_of = fastest_peer(row, geometry, "_us", state);
      else if (row.peer.equal_too)
        peer_of_equal = fastest_peer(row, geometry, "_equal_us", state);
    }
    measured_us = ours.us;
    const double equal_us = ours_equal.us;
    auto copy = copy_of(std::size_t(double(payload(geometry)) * row.moved / 2));
    if (!copy.ok()) return copy.error();
    // A system copy of a small frame is mostly start-up time, so small frames are compared with the plain copy kernel.
    const bool small = size.height <= 1080;
    const double copy_us = small ? copy.value().second : copy.value().first;
    const auto [peer_name, peer] = peer_of;
    const auto [equal_name, equal_peer] = peer_of_equal;
    const double floor_us = row.multiplies * filtered_samples(geometry) / fma_rate * 1e6;

    state.counters["pixels"] = double(size.width) * size.height;
    state.counters["samples"] = ours.samples;
    state.counters["graph"] = ours.graph;
    state.counters["equal_us"] = equal_us;
    state.counters["copy_us"] = copy.value().first;
    state.counters["copy_kernel_us"] = copy.value().second;
    state.counters["over_copy"] = ours.us / copy_us;
    if (floor_us > 0 && backend == Backend::cuda) state.counters["over_floor"] = ours.us / floor_us;
    if (peer_name) state.counters["peer_us"] = peer.us;
    if (peer_name) state.counters["peer_over_ours"] = peer.us / ours.us;
    if (equal_name) state.counters["peer_over_ours_equal"] = equal_peer.us / equal_us;

    std::printf("%-52s %9.2f %6.2f %7.2f", name.c_str(), ours.us, equal_us / ours.us, ours.us / copy_us);
    ++measured;
    if (backend == Backend::cuda) {
      if (floor_us > 0)
        std::printf(" %6.2f", ours.us / floor_us);
      else
        std::printf(" %6s", "");
      if (peer_name) {
        std::printf(" %7.2f %s%s", peer.us / ours.us, peer_name, peer.graph || peer.per_sample == 1 ? "" : "*");
        if (equal_name) std::printf(" (equal %.2f %s)", equal_peer.us / equal_us, equal_name);
        ++with_peer;
        peer_logs += std::log(peer.us / ours.us);
        slower_than_peer += peer.us < ours.us;
      }
      const bool largest = &size == &sizes[0];
      if (largest) compare("must", floor_us > 0 ? ours.us / floor_us : ours.us / copy_us, row.must, state);
      if (largest || size.height == 1080) compare("must_us", ours.us, largest ? row.must_us : row.must_us_1080p, state);
    }
    std::printf("\n");
    std::fflush(stdout);
    return {};
  }

  void run(const Row& row, const Size& size, const std::string& name, benchmark::State& state) {
    double us = 0;
    if (Status status = measure(row, size, name, state, us); !status.ok()) {
      // Settings that this build refuses are not a failure of the benchmark. An error of the device is one.
      const bool refused = status.code() == Status::Code::settings;
      const std::string why = (refused ? "unavailable: " : "FAILED: ") + status.message();
      std::printf("%-52s %s\n", name.c_str(), why.c_str());
      ++(refused ? unavailable : failed);
      state.SkipWithError(why.c_str());
      return;
    }
    for (auto _ : state) state.SetIterationTime(us * 1e-6);
  }
};

/// Replaces Google Benchmark's own table, because each line is printed as soon as it is measured.
class Silent : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>&) override {}
};

const char* option(const char* argument, const char* name) {
  const std::size_t length = std::strlen(name);
  return std::strncmp(argument, name, length) == 0 && argument[length] == '=' ? argument + length + 1 : nullptr;
}

/// The build and the bundle put the library of peers in the folder of this program.
std::string default_peers() {
  char path[4096];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  const std::string self(path, length > 0 ? std::size_t(length) : 0);
  return self.substr(0, self.rfind('/') + 1) + "libcudavision-bench-npp.so";
}

std::vector<PeerEntry> open_peers(const std::string& library) {
  std::vector<PeerEntry> found;
  void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  const auto entries = handle ? reinterpret_cast<PeerEntries>(dlsym(handle, PEER_ENTRIES_SYMBOL)) : nullptr;
  if (!entries) {
    std::printf("# no peers: %s\n", dlerror());
    return found;
  }
  for (const PeerEntry* entry = entries(); entry->name; ++entry) found.push_back(*entry);
  return found;
}

int run_all(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  Bench bench;
  std::string wanted, peers = default_peers();
  for (int i = 1; i < argc; ++i) {
    if (const char* backend = option(argv[i], "--backend"); backend && std::strcmp(backend, "cpu") == 0) {
      bench.backend = Backend::cpu;
    } else if (backend && std::strcmp(backend, "cuda") == 0) {
      bench.backend = Backend::cuda;
    } else if (const char* names = option(argv[i], "--sizes")) {
      wanted = names;
    } else if (const char* library = option(argv[i], "--peers")) {
      peers = library;
    } else {
      std::fprintf(stderr, "%s: unknown option %s\n", argv[0], argv[i]);
      return 1;
    }
  }
  const bool cuda = bench.backend == Backend::cuda;
  if (wanted.empty() && !cuda) wanted = "1080p";
  auto runner = cuda ? make_cuda_runner() : make_cpu_runner();
  if (!runner.ok()) {
    std::printf("skipped: %s\n", runner.error().message().c_str());
    return 77;
  }
  bench.runner = std::move(runner.value());
  if (cuda) bench.peers = open_peers(peers);
  benchmark::AddCustomContext("backend", cuda ? "cuda" : "cpu");
  benchmark::AddCustomContext("device", bench.runner->device());

  for (const Row& row : rows())
    for (const Size& size : sizes) {
      const bool by_default = wanted.empty() && (row.all_sizes || !size.of_curves);
      if (!by_default && ("," + wanted + ",").find("," + std::string(size.name) + ",") == std::string::npos) continue;
      if (row.only_8k && &size != &sizes[0]) continue;
      const std::string name = row.name + "/" + info(row.format).name + "/" + size.name;
      benchmark::RegisterBenchmark(
          name.c_str(), [&bench, row, &size, name](benchmark::State& state) { bench.run(row, size, name, state); })
          ->UseManualTime()
          ->Iterations(1)
          ->Unit(benchmark::kMicrosecond);
    }

  std::printf("# %s: median time of one submit; copy: of the same bytes%s\n%-52s %9s %6s %7s%s\n",
              bench.runner->device().c_str(),
              cuda ? " (cudaMemcpyAsync; at 1080p a plain kernel); floor: multiply-adds at 33.5 T/s; peer: the fastest "
                     "of NPP and CUB, its time ÷ ours (*: not as a graph); !> over the mark"
                   : " (memcpy)",
              "", "us", "equal", "/copy", cuda ? " /floor    peer" : "");
  Silent silent;
  benchmark::RunSpecifiedBenchmarks(&silent);
  std::printf("# %d measured, %d unavailable, %d failed", bench.measured, bench.unavailable, bench.failed);
  if (cuda) std::printf(", %d over their mark", bench.over_mark);
  if (bench.with_peer)
    std::printf(", %d slower than the peer of %d, peers take %.2f times as long (geometric mean)",
                bench.slower_than_peer, bench.with_peer, std::exp(bench.peer_logs / bench.with_peer));
  std::printf("\n");
  return bench.failed > 0;
}

}  // namespace
}  // namespace cudavision::bench

int main(int argc, char** argv) { return cudavision::bench::run_all(argc, argv); }
