// SPDX-License-Identifier: LGPL-2.1-or-later
// Time of Filter::submit alone, beside a copy of the same bytes and beside peers. Every row is one Google Benchmark whose time
// is the median that a Runner measured; `--benchmark_out=FILE` writes them all as JSON, `--benchmark_filter=REGEX` picks some.
//   bench_kernels [--backend=cuda|cpu] [--sizes=8K,4K,1080p] [--peers=LIBRARY.so] [--benchmark_…]
// Exit status: 0; 77 where the backend has no device; 1 for a wrong option, or where a submit failed.
#include <benchmark/benchmark.h>
#include <dlfcn.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "kernels/blend/blend.hpp"
#include "kernels/convolve/convolve.hpp"
#include "kernels/diff/diff.hpp"
#include "kernels/gaussian/gaussian.hpp"
#include "kernels/histogram/histogram.hpp"
#include "kernels/integral/integral.hpp"
#include "kernels/local/local.hpp"
#include "tests/bench/peer.h"
#include "tests/bench/runner.hpp"

namespace cudavision::bench {
namespace {

struct Size {
  const char* name;
  int width, height;
};
constexpr Size sizes[] = {{"8K", 7680, 4320}, {"4K", 3840, 2160}, {"1080p", 1920, 1080}};

/// What is made once for a row: the work on a place of the ring. It owns its plan.
using Operation = std::function<Result<std::function<Status(const Slot&, Queue)>>(const Geometry&, Backend)>;

/// The same work for peers; none where `operation` is null.
struct PeerShape {
  const char* operation = nullptr;
  int taps = 1;
  std::vector<float> weights = {1};
  bool equal_too = false;  ///< how the samples are distributed matters: peers are timed on equal ones as well
};

/// One operation on one format. A new operation adds rows to rows(), and nothing else.
struct Row {
  std::string name;
  Format format;
  Operation make;
  double moved = 2;       ///< bytes read and written for each byte of the picture
  double must = 0;        ///< the mark at 8K: time ÷ copy, or time ÷ floor where there is a floor; 0: none
  double multiplies = 0;  ///< for each filtered sample, where arithmetic is the floor; else 0
  PeerShape peer = {};
  bool only_8k = false;
  int table_bytes = 0;  ///< of an entry, where the result is a table in place of a picture
};

constexpr double fma_rate = 33.5e12;  ///< of an H200, in multiply-adds a second: half of its 67 TFLOP/s in float32

Operation filter(std::function<Result<std::unique_ptr<Filter>>(const Geometry&, Backend)> make) {
  return [make](const Geometry& geometry, Backend backend) -> Result<std::function<Status(const Slot&, Queue)>> {
    auto plan = make(geometry, backend);
    if (!plan.ok()) return plan.error();
    return std::function<Status(const Slot&, Queue)>(
        [filter = std::shared_ptr<Filter>(std::move(plan.value()))](const Slot& slot, Queue queue) {
          return filter->submit(slot.src, slot.dst, Region{}, queue);
        });
  };
}

Row gaussian(int taps, Format format, double must = 0, bool only_8k = false) {
  GaussianParams params;
  params.kernel_width = params.kernel_height = taps;
  Row row{"gaussian-" + std::to_string(taps), format,
          filter([=](const Geometry& geometry, Backend backend) { return make_gaussian(params, geometry, backend); })};
  row.must = must;
  row.only_8k = only_8k;
  row.peer = {taps <= 31 ? "gaussian" : nullptr, taps, {}};
  double sum = 0;
  const double sigma = 0.15 * taps + 0.35;
  for (int i = 0; i < taps; ++i) sum += row.peer.weights.emplace_back(std::exp(-0.5 * std::pow((i - taps / 2) / sigma, 2)));
  for (float& weight : row.peer.weights) weight /= float(sum);
  return row;
}

Row convolve(std::string name, const ConvolveParams& params, int taps, std::vector<double> weights, Format format, double must) {
  Row row{std::move(name), format,
          filter([=](const Geometry& geometry, Backend backend) { return make_convolve(params, geometry, backend); })};
  row.must = must;
  row.peer = {"convolve", taps, {weights.begin(), weights.end()}};
  return row;
}

/// Real weights of no structure: full rank.
Row convolve_full(int taps, Format format, double must) {
  std::mt19937 random(taps);
  ConvolveParams params;
  params.kernel_width = params.kernel_height = taps;
  for (int i = 0; i < taps * taps; ++i) params.weights.push_back(0.1 + random() / 4294967296.0);
  const std::string side = std::to_string(taps);
  Row row = convolve("convolve-" + side + "x" + side, params, taps, params.weights, format, must);
  if (taps >= 15) row.multiplies = taps * taps;
  return row;
}

/// Real weights of rank 1.
Row convolve_separable(int taps, Format format) {
  ConvolveParams params;
  params.kernel_width = params.kernel_height = taps;
  for (int y = 0; y < taps; ++y)
    for (int x = 0; x < taps; ++x) params.weights.push_back(std::sqrt(x + 1.5) * std::log(y + 2.5));
  const std::string side = std::to_string(taps);
  return convolve("separable-" + side + "x" + side, params, taps, params.weights, format, 0);
}

Row convolve_preset(Preset preset, Border border, Format format) {
  ConvolveParams params;
  params.preset = preset;
  params.border = border;
  const PresetInfo& found = presets()[int(preset)];
  const std::string name = found.nick + std::string(border == Border::fill ? "-fill" : "");
  Row row = convolve(name, params, found.width, found.weights, format, 0);
  if (!found.vertical.empty()) row.peer = {};  // no peer has the magnitude of two kernels in one call
  return row;
}

/// `read`: the part of the picture's bytes that is looked at.
Row histogram(std::string name, HistogramChannels channels, int bins, Format format, double read = 1, double must = 0) {
  HistogramParams params;
  params.bins = bins;
  params.channels = channels;
  Row row{std::move(name), format,
          [=](const Geometry& geometry, Backend backend) -> Result<std::function<Status(const Slot&, Queue)>> {
            auto plan = make_histogram(params, geometry, backend);
            if (!plan.ok()) return plan.error();
            return std::function<Status(const Slot&, Queue)>(
                [counter = std::shared_ptr<Histogram>(std::move(plan.value()))](const Slot& slot, Queue queue) {
                  return counter->submit(slot.src, Region{}, queue);
                });
          }};
  row.moved = read;
  row.must = must;
  if (bins == 256 && format == Format::GRAY8) row.peer = {"histogram", 1, {1}, true};
  return row;
}

Row equalize(Format format) {
  Row row{"equalize", format,
          filter([](const Geometry& geometry, Backend backend) { return make_equalize(LumaMatrix::bt601, geometry, backend); })};
  row.moved = 3;  // once to count, once to read again and write
  return row;
}

/// So far back that at 8K the L2 cache no longer holds the frame; odd, since of RGBA the ring has two places: it must be the other.
constexpr int diff_interval = 3;

/// `moved`: bytes for each byte of the picture.
Row diff(const std::string& name, Format format, double moved, double must, std::function<void(DiffParams&)> set) {
  DiffParams params;
  params.interval = diff_interval;
  params.borrow = true;
  params.open_radius = 0;
  params.output = DiffOutput::mask;
  set(params);
  Row row{"diff-" + name, format,
          [=](const Geometry& geometry, Backend backend) -> Result<std::function<Status(const Slot&, Queue)>> {
            auto plan = make_diff(params, geometry, backend);
            if (!plan.ok()) return plan.error();
            return std::function<Status(const Slot&, Queue)>(
                [plan = std::shared_ptr<Diff>(std::move(plan.value()))](const Slot& slot, Queue queue) {
                  return plan->submit(slot.src, slot.dst, queue);
                });
          }};
  row.moved = moved;
  row.must = must;
  if (params.reference == DiffReference::previous && params.output == DiffOutput::difference) row.peer = {"absdiff"};
  return row;
}

/// The table of the luma, rows tight or not.
Row integral(std::string name, SumType type, TableLayout layout, bool tight, Format format, double must) {
  IntegralParams params;
  params.sum_type = type;
  params.layout = layout;
  Row row{std::move(name), format,
          [=](const Geometry& geometry, Backend backend) -> Result<std::function<Status(const Slot&, Queue)>> {
            auto made = make_integral(params, geometry, backend);
            if (!made.ok()) return made.error();
            std::shared_ptr<Integral> plan = std::move(made.value());
            const std::ptrdiff_t row_bytes = std::ptrdiff_t(plan->tables()[0].width) * plan->tables()[0].entry_bytes();
            const std::ptrdiff_t pitch = tight ? row_bytes : (row_bytes + 511) / 512 * 512;
            return std::function<Status(const Slot&, Queue)>([=](const Slot& slot, Queue queue) {
              return plan->submit(slot.src, {{slot.dst.planes[0].data, pitch}}, queue);
            });
          }};
  row.table_bytes = type == SumType::u32 || type == SumType::f32 ? 4 : 8;
  row.must = must;
  // Of YUV only the luma is read.
  const FormatInfo& i = info(format);
  const double pixel = i.planes > 1 ? 1.5 * i.sample_bytes() : i.sets[0].channels * i.sample_bytes();
  row.moved = (row.table_bytes + (i.planes > 1 ? i.sample_bytes() : pixel)) / pixel;
  if (type == SumType::u32 && format == Format::GRAY8) row.peer = {"integral"};
  return row;
}

Row local(std::string name, LocalOperation operation, int radius, Format format) {
  LocalParams params;
  params.operation = operation;
  params.radius = radius;
  params.search_radius = 5;
  Row row{std::move(name), format,
          filter([=](const Geometry& geometry, Backend backend) { return make_local(params, geometry, backend); })};
  return row;
}

/// `cells` pads of the picture at hand, over the one of `diff_interval` frames before, which fills the output.
Row blend(const std::string& name, Format format, double moved, double must, int cells, std::function<void(BlendPad&)> set) {
  struct State {
    std::unique_ptr<Blend> plan;
    std::vector<Image> past;
    std::vector<BlendPad> pads;
  };
  Row row{"blend-" + name, format,
          [=](const Geometry& geometry, Backend backend) -> Result<std::function<Status(const Slot&, Queue)>> {
            auto plan = make_blend(geometry, {}, backend);
            if (!plan.ok()) return plan.error();
            const auto state = std::make_shared<State>();
            state->plan = std::move(plan.value());
            state->pads.resize(std::size_t(cells) + 1);
            state->pads[0].place = {0, 0, geometry.width, geometry.height};
            state->pads[0].op = BlendOperator::source;
            const std::vector<Rect> places = grid_layout(cells, 0, 0, 0, geometry.width, geometry.height);
            for (int i = 0; i < cells; ++i) {
              state->pads[i + 1].place = places[i];
              set(state->pads[i + 1]);
            }
            return std::function<Status(const Slot&, Queue)>([state](const Slot& slot, Queue queue) {
              state->past.push_back(slot.src);
              state->pads[0].src = state->past.front();
              for (std::size_t i = 1; i < state->pads.size(); ++i) state->pads[i].src = slot.src;
              if (state->past.size() > diff_interval) state->past.erase(state->past.begin());
              return state->plan->submit(slot.dst, {}, state->pads, queue);
            });
          }};
  row.moved = moved;
  row.must = must;
  return row;
}

std::vector<Row> rows() {
  std::vector<Row> list;
  for (Format format : {Format::GRAY8, Format::NV12, Format::RGBA}) {
    list.push_back(blend("over", format, 3, 1.15, 1, [](BlendPad& p) { p.alpha = 0.65; }));
    if (format == Format::RGBA) list.back().peer = {"alphacomp"};
    list.push_back(blend("average", format, 3, 1.15, 1, [](BlendPad& p) { p.op = BlendOperator::average, p.alpha = 0.65; }));
    list.push_back(blend("key", format, 3, 1.15, 1, [](BlendPad& p) {
      p.op = BlendOperator::average, p.alpha = 0.65;
      p.key.mode = BlendKey::Mode::first_pixel, p.key.tolerance = 10;
    }));
    list.push_back(blend("multiply", format, 3, 0, 1, [](BlendPad& p) { p.op = BlendOperator::multiply; }));
    list.push_back(blend("inset", format, 2, 0, 1, [](BlendPad& p) {
      p.place = {p.place.width / 2 + 1, p.place.height / 2 + 1, p.place.width / 3, p.place.height / 3};
    }));
    list.push_back(blend("grid-9", format, 2, 0, 9, [](BlendPad& p) { p.interpolation = Interpolation::area; }));
    list.push_back(blend("grid-63", format, 2, 0, 63, [](BlendPad&) {}));
  }
  for (Format format : {Format::GRAY8, Format::NV12, Format::RGBA}) {
    list.push_back(diff("mask", format, 3, 1.15, [](DiffParams&) {}));
    list.push_back(diff("absolute", format, 3, 1.15, [](DiffParams& p) { p.output = DiffOutput::difference; }));
    list.push_back(diff("mask-open", format, 3, 0, [](DiffParams& p) { p.open_radius = 1; }));
    list.push_back(diff("mask-keep", format, 4, 0, [](DiffParams& p) { p.borrow = false; }));
    list.push_back(diff("grid-open", format, 2, 0, [](DiffParams& p) { p.output = DiffOutput::none, p.open_radius = 1; }));
    list.push_back(diff("background", format, 6, 1.2, [](DiffParams& p) { p.reference = DiffReference::background; }));
  }
  list.push_back(diff("mask", Format::P010_10LE, 3, 0, [](DiffParams&) {}));
  // A mode of one channel is 12 bytes, read and written; 2 to 5 of them are in use.
  list.push_back(diff("mog2", Format::GRAY8, 3, 0, [](DiffParams& p) { p.reference = DiffReference::mog2; }));
  for (Format format : {Format::GRAY8, Format::RGBA, Format::NV12})
    for (auto [taps, must] : {std::pair(3, 1.5), {5, 1.5}, {7, 1.5}, {15, 2.2}, {31, 4.0}})
      list.push_back(gaussian(taps, format, must));
  for (int taps : {63, 255}) list.push_back(gaussian(taps, Format::GRAY8, 0, true));
  for (int taps : {5, 15}) list.push_back(gaussian(taps, Format::P010_10LE, 0, true));
  for (Format format : {Format::GRAY8, Format::RGBA}) {
    for (auto [taps, must] : {std::pair(3, 1.4), {5, 2.3}, {7, 4.0}, {15, 1 / 0.7}, {31, 1 / 0.7}})
      list.push_back(convolve_full(taps, format, must));
    list.push_back(convolve_separable(7, format));
    list.push_back(convolve_preset(Preset::sharpen, Border::reflect_101, format));
    list.push_back(convolve_preset(Preset::sharpen, Border::fill, format));
    list.push_back(convolve_preset(Preset::gradient, Border::reflect_101, format));
  }
  list.push_back(convolve_preset(Preset::sharpen, Border::reflect_101, Format::NV12));
  list.push_back(histogram("histogram", HistogramChannels::luma, 256, Format::GRAY8, 1, 2.0));
  list.push_back(histogram("histogram", HistogramChannels::luma, 256, Format::NV12, 2 / 3.0));
  list.push_back(histogram("histogram-components", HistogramChannels::components, 256, Format::NV12));
  for (Format format : {Format::RGBA, Format::RGB}) list.push_back(histogram("histogram", HistogramChannels::luma, 256, format));
  list.push_back(histogram("histogram-components", HistogramChannels::components, 256, Format::RGBA));
  list.push_back(histogram("histogram-1024", HistogramChannels::luma, 1024, Format::P010_10LE, 2 / 3.0));
  list.push_back(histogram("histogram-65536", HistogramChannels::luma, 65536, Format::GRAY16_LE));
  for (Format format : {Format::GRAY8, Format::RGBA, Format::NV12}) list.push_back(equalize(format));
  for (Format format : {Format::GRAY8, Format::NV12, Format::RGBA, Format::GRAY16_LE})
    list.push_back(integral("integral-u32", SumType::u32, TableLayout::inclusive, false, format, 1.35));
  list.push_back(integral("integral-u32-padded", SumType::u32, TableLayout::padded, true, Format::GRAY8, 1.35));
  for (auto [name, type] : {std::pair("integral-u64", SumType::u64), {"integral-f32", SumType::f32}})
    list.push_back(integral(name, type, TableLayout::inclusive, false, Format::GRAY8, 0));
  for (Format format : {Format::GRAY8, Format::NV12})
    for (int radius : {3, 63})
      list.push_back(local("box-mean-r" + std::to_string(radius), LocalOperation::box_mean, radius, format));
  list.push_back(local("threshold-r15", LocalOperation::threshold, 15, Format::NV12));
  list.push_back(local("deviation-r15", LocalOperation::deviation, 15, Format::GRAY8));
  for (int radius : {1, 7})
    list.push_back(local("nlm-r" + std::to_string(radius) + "-s5", LocalOperation::nlm, radius, Format::GRAY8));
  return list;
}

/// Samples of a picture that a filter computes: alpha and padding are copied.
double filtered_samples(const Geometry& geometry) {
  const FormatInfo& format = info(geometry.format);
  double samples = 0;
  for (int i = 0; i < format.set_count; ++i) {
    const Rect grid = geometry.grid(format.sets[i]);
    for (int c = 0; c < format.sets[i].channels; ++c) {
      const Role role = format.sets[i].roles[c];
      if (role != Role::alpha && role != Role::padding && role != Role::other) samples += double(grid.width) * grid.height;
    }
  }
  return samples;
}

struct Bench {
  std::unique_ptr<Runner> runner;
  Backend backend = Backend::cuda;
  std::vector<PeerEntry> peers;
  std::map<std::size_t, std::pair<double, double>> copies;  ///< by bytes: µs of the system's copy, of the copy kernel
  double peer_logs = 0;                                     ///< Σ log(peer ÷ ours), for the geometric mean
  int measured = 0, unavailable = 0, failed = 0, over_mark = 0, with_peer = 0, slower_than_peer = 0;

  Result<std::pair<double, double>> copy_of(std::size_t bytes) {
    if (auto known = copies.find(bytes); known != copies.end()) return known->second;
    auto copy = runner->copy(bytes);
    if (!copy.ok()) return copy.error();
    auto kernel = runner->copy_kernel(bytes);
    if (!kernel.ok()) return kernel.error();
    return copies[bytes] = {copy.value().us, kernel.value().us};
  }

  /// Times every peer that takes the work, on the pictures that lie in the ring; returns the fastest, or a null name. Counters of
  /// all are named peer_<name><suffix>.
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
        const std::size_t before = (std::size_t(i) + slots.size() * diff_interval - diff_interval) % slots.size();
        const Plane &src = slots[i].src.planes[0], &dst = slots[i].dst.planes[0], &reference = slots[before].src.planes[0];
        const PeerPictures pictures{src.data, dst.data, reference.data, int(src.pitch), int(dst.pitch), int(reference.pitch)};
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

  /// Measures a row, fills in its counters and prints its line.
  Status measure(const Row& row, const Size& size, const std::string& name, benchmark::State& state, double& random_us) {
    const Geometry geometry{row.format, size.width, size.height};
    auto operation = row.make(geometry, backend);
    if (!operation.ok()) return operation.error();
    Timing ours[2];
    std::pair<const char*, Timing> peers_of[2];
    for (Data data : {Data::equal, Data::random}) {
      // One row more, for padded tables, and a place at the end of each row.
      const std::size_t room = std::size_t(row.table_bytes) * (geometry.width + 256) * (geometry.height + 1);
      if (Status status = runner->prepare(geometry, data, room); !status.ok()) return status;
      const auto& slots = runner->slots();
      auto timing =
          runner->time([&](int i, Queue queue) { return operation.value()(slots[i], queue); }, int(slots.size()), runner->budget());
      if (!timing.ok()) return timing.error();
      ours[int(data)] = timing.value();
      if (data == Data::random || row.peer.equal_too)
        peers_of[int(data)] = fastest_peer(row, geometry, data == Data::random ? "_us" : "_equal_us", state);
    }
    const Timing& random = ours[int(Data::random)];
    random_us = random.us;
    const double equal_us = ours[int(Data::equal)].us;
    auto copy = copy_of(std::size_t(double(payload(geometry)) * row.moved / 2));
    if (!copy.ok()) return copy.error();
    // A copy of a small frame is all start-up: there the plain kernel is the fair measure.
    const bool small = size.height <= 1080;
    const double copy_us = small ? copy.value().second : copy.value().first;
    const auto [peer_name, peer] = peers_of[int(Data::random)];
    const auto [equal_name, equal_peer] = peers_of[int(Data::equal)];
    const double floor_us = row.multiplies * filtered_samples(geometry) / fma_rate * 1e6;

    state.counters["samples"] = random.samples;
    state.counters["graph"] = random.graph;
    state.counters["equal_us"] = equal_us;
    state.counters["copy_us"] = copy.value().first;
    state.counters["copy_kernel_us"] = copy.value().second;
    state.counters["over_copy"] = random.us / copy_us;
    if (floor_us > 0 && backend == Backend::cuda) state.counters["over_floor"] = random.us / floor_us;
    if (peer_name) state.counters["peer_us"] = peer.us;
    if (peer_name) state.counters["peer_over_ours"] = peer.us / random.us;
    if (equal_name) state.counters["peer_over_ours_equal"] = equal_peer.us / equal_us;

    std::printf("%-26s %9.2f %6.2f %7.2f", name.c_str(), random.us, equal_us / random.us, random.us / copy_us);
    ++measured;
    if (backend == Backend::cuda) {
      if (floor_us > 0)
        std::printf(" %6.2f", random.us / floor_us);
      else
        std::printf(" %6s", "");
      if (peer_name) {
        std::printf(" %7.2f %s%s", peer.us / random.us, peer_name, peer.graph || peer.per_sample == 1 ? "" : "*");
        if (equal_name) std::printf(" (equal %.2f %s)", equal_peer.us / equal_us, equal_name);
        ++with_peer;
        peer_logs += std::log(peer.us / random.us);
        slower_than_peer += peer.us < random.us;
      }
      const double marked = floor_us > 0 ? random.us / floor_us : random.us / copy_us;
      if (row.must > 0 && &size == &sizes[0]) {
        state.counters["must"] = row.must;
        if (marked > row.must) {
          ++over_mark;
          std::printf("  !> %.2f", row.must);
        }
      }
    }
    std::printf("\n");
    std::fflush(stdout);
    return {};
  }

  void run(const Row& row, const Size& size, const std::string& name, benchmark::State& state) {
    double us = 0;
    if (Status status = measure(row, size, name, state, us); !status.ok()) {
      // Settings that a build refuses are no failure of the benchmark; a device that fails is.
      const bool refused = status.code() == Status::Code::settings;
      const std::string why = (refused ? "unavailable: " : "FAILED: ") + status.message();
      std::printf("%-26s %s\n", name.c_str(), why.c_str());
      ++(refused ? unavailable : failed);
      state.SkipWithError(why.c_str());
      return;
    }
    for (auto _ : state) state.SetIterationTime(us * 1e-6);
  }
};

/// The lines are printed as they are measured; Google Benchmark's own table would repeat them.
class Silent : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>&) override {}
};

/// The value of `--name=value`, or nullptr.
const char* option(const char* argument, const char* name) {
  const std::size_t length = std::strlen(name);
  return std::strncmp(argument, name, length) == 0 && argument[length] == '=' ? argument + length + 1 : nullptr;
}

/// Where the build and the bundle put the peers: beside this program.
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
  if (wanted.empty()) wanted = cuda ? "8K,4K,1080p" : "1080p";
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
      if (("," + wanted + ",").find("," + std::string(size.name) + ",") == std::string::npos) continue;
      if (row.only_8k && &size != &sizes[0]) continue;
      const std::string name = row.name + "/" + info(row.format).name + "/" + size.name;
      benchmark::RegisterBenchmark(name.c_str(),
                                   [&bench, row, &size, name](benchmark::State& state) { bench.run(row, size, name, state); })
          ->UseManualTime()
          ->Iterations(1)
          ->Unit(benchmark::kMicrosecond);
    }

  std::printf("# %s: median time of one submit; copy: of the same bytes%s\n%-26s %9s %6s %7s%s\n", bench.runner->device().c_str(),
              cuda ? " (cudaMemcpyAsync; at 1080p a plain kernel); floor: multiply-adds at 33.5 T/s; peer: the fastest of NPP and "
                     "CUB, its time ÷ ours (*: not as a graph); !> over the mark"
                   : " (memcpy)",
              "", "us", "equal", "/copy", cuda ? " /floor    peer" : "");
  Silent silent;
  benchmark::RunSpecifiedBenchmarks(&silent);
  std::printf("# %d measured, %d unavailable, %d failed", bench.measured, bench.unavailable, bench.failed);
  if (cuda) std::printf(", %d over their mark", bench.over_mark);
  if (bench.with_peer)
    std::printf(", %d slower than the peer of %d, peers take %.2f times as long (geometric mean)", bench.slower_than_peer,
                bench.with_peer, std::exp(bench.peer_logs / bench.with_peer));
  std::printf("\n");
  return bench.failed > 0;
}

}  // namespace
}  // namespace cudavision::bench

int main(int argc, char** argv) { return cudavision::bench::run_all(argc, argv); }
