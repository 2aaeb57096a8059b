// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>

#include "kernels/core/queue.hpp"
#include "tests/kernels/reference/convolve.hpp"
#include "tests/kernels/reference/gaussian.hpp"

namespace cudavision::test {

using reference::Layout;
using reference::Picture;

/// Why this build or this machine cannot run the backend; nullptr: it can.
const char* unavailable(Backend backend);
#define SKIP_UNLESS_AVAILABLE(backend) \
  if (const char* why = ::cudavision::test::unavailable(backend)) GTEST_SKIP() << why

/// Contents: besides noise of full range, sums at both ends of the range, sums that cancel (flat: one value a component),
/// and sums that stay within it (faint: noise about the middle); and stored words with bits outside of the sample, of which `ones`
/// has all set, and `words` any.
enum class Data { random, zero, max, checkerboard, flat, faint, ones, words };
Picture make_picture(const Geometry& geometry, unsigned seed, Data data = Data::random, Layout layout = {});

/// What a plan does from a source to a destination.
using Work = std::function<Status(const Image& src, const Image& dst, Queue queue)>;

/// One picture on its way through a filter, in the backend's memory and on a stream of its own.
class Job {
 public:
  /// `dst` is the destination as it is before: its bytes, its layout.
  Job(Backend backend, const Picture& src, const Picture& dst);
  ~Job();
  /// Does not wait.
  Status submit(const Work& work);
  Status submit(Filter& filter, const Region& region = {}) {
    return submit([&](const Image& src, const Image& dst, Queue queue) { return filter.submit(src, dst, region, queue); });
  }
  /// Waits, and gives the destination. Fails the test if the source changed.
  Picture finish();

 private:
  struct Device;
  Backend backend_;
  Picture src_, dst_;
  std::unique_ptr<Device> device_;
};

/// Bytes in a backend's memory.
class Bytes {
 public:
  Bytes(Backend backend, std::vector<std::uint8_t> bytes);
  ~Bytes();
  Bytes(const Bytes&) = delete;
  void* data() const;
  /// Waits for the device, and gives what the bytes are now.
  const std::vector<std::uint8_t>& read();

 private:
  struct Device;
  std::vector<std::uint8_t> bytes_;
  std::unique_ptr<Device> device_;
};

/// Works on a GRAY8 picture whose rows lie 64 MiB apart, so that their distances leave 32 bits.
Picture run_far_apart(Backend backend, const Work& work, const Picture& src);
inline Picture run_far_apart(Backend backend, Filter& filter, const Picture& src) {
  return run_far_apart(
      backend, [&](const Image& from, const Image& to, Queue queue) { return filter.submit(from, to, {}, queue); }, src);
}

inline Result<std::unique_ptr<Filter>> make(const GaussianParams& params, const Geometry& geometry, Backend backend) {
  return make_gaussian(params, geometry, backend);
}
inline Result<std::unique_ptr<Filter>> make(const ConvolveParams& params, const Geometry& geometry, Backend backend) {
  return make_convolve(params, geometry, backend);
}
inline int tolerance(const GaussianParams&, Format) { return 0; }
inline int tolerance(const ConvolveParams& params, Format format) { return reference::tolerance(params, format); }

std::string describe(const GaussianParams& params);
std::string describe(const ConvolveParams& params);
std::string describe(const Geometry& geometry, const Layout& src, const Layout& dst, const Region& region, Data data);

/// Empty where the filter gives `expected` (its layout is the destination's) within `tolerance`; else what is wrong.
template <typename Params>
std::string check(Backend backend, const Params& params, const Picture& src, const Picture& expected, const Region& region = {}) {
  auto filter = make(params, src.geometry(), backend);
  if (!filter.ok()) return "no plan: " + filter.error().message();
  Job job(backend, src, expected.inverted());
  const Status status = job.submit(*filter.value(), region);
  const Picture actual = job.finish();
  if (!status.ok()) return "submit failed: " + status.message();
  return expected.difference(actual, tolerance(params, src.geometry().format));
}

/// Deterministic pairings for the sweeps, the same with every standard library.
class Random {
 public:
  explicit Random(unsigned seed) : engine_(seed) {}
  int below(int n) { return int(engine_() % unsigned(n)); }
  int between(int low, int high) { return low + below(high - low + 1); }
  double unit() { return double(engine_()) / 4294967296.0; }
  template <typename T>
  const T& pick(const std::vector<T>& from) {
    return from[below(int(from.size()))];
  }

 private:
  std::mt19937 engine_;
};

/// How often a sweep goes through its sizes, each time with other pairings: CUDAVISION_TEST_ROUNDS, or 3.
int rounds();
/// Sizes that sweeps go through: tiny, odd, about a tile, wider or higher than any tile.
extern const std::vector<std::pair<int, int>> sizes;
/// Places in memory, tight and aligned to badly aligned.
extern const std::vector<Layout> layouts;
BorderValue random_border_value(Random& random, Format format);
/// Mostly the whole frame; else inside or outside of rectangles: odd ones, overlapping ones, some beyond the frame.
Region random_region(Random& random, int width, int height);

/// One case of a sweep: a picture's place and content beside the parameters.
struct Case {
  Geometry geometry;
  Layout src, dst;
  Region region;
  Data data;
};
Case random_case(Random& random, Format format, std::pair<int, int> size);

/// Compares a filter with the reference; a failure says all of the case.
template <typename Params>
void expect_reference(Backend backend, const Params& params, const Case& c, unsigned seed) {
  const Picture src = make_picture(c.geometry, seed, c.data, c.src);
  const std::string wrong = check(backend, params, src, reference::apply(params, src, c.region, c.dst), c.region);
  EXPECT_EQ(wrong, "") << describe(c.geometry, c.src, c.dst, c.region, c.data) << "\n" << describe(params);
}

std::vector<Format> all_formats();

/// What is held against an oracle: a backend, or the reference itself.
struct Runner {
  const char* name;
  std::optional<Backend> backend;

  template <typename Params>
  std::string check(const Params& params, const Picture& src, const Picture& expected) const {
    return backend ? test::check(*backend, params, src, expected) : expected.sample_difference(reference::apply(params, src), 0);
  }
};
inline std::string runner_name(const ::testing::TestParamInfo<Runner>& item) { return item.param.name; }
#define INSTANTIATE_FOR_RUNNERS(suite)                                                                                           \
  INSTANTIATE_TEST_SUITE_P(All, suite,                                                                                           \
                           testing::Values(Runner{"Reference", {}}, Runner{"Cpu", Backend::cpu}, Runner{"Cuda", Backend::cuda}), \
                           runner_name)

/// The two backends as two instances, so that --gtest_filter='*Cuda*' runs those that need a device.
template <typename T = int>
using BackendAnd = std::tuple<Backend, T>;
inline std::string format_name(const ::testing::TestParamInfo<BackendAnd<Format>>& item) {
  return reference::definition(std::get<1>(item.param)).name;
}
#define INSTANTIATE_FOR_FORMATS(suite, formats)                                                                                   \
  INSTANTIATE_TEST_SUITE_P(Cpu, suite, testing::Combine(testing::Values(Backend::cpu), testing::ValuesIn(formats)), format_name); \
  INSTANTIATE_TEST_SUITE_P(Cuda, suite, testing::Combine(testing::Values(Backend::cuda), testing::ValuesIn(formats)), format_name)
#define INSTANTIATE_FOR_BACKENDS(suite)                                \
  INSTANTIATE_TEST_SUITE_P(Cpu, suite, testing::Values(Backend::cpu)); \
  INSTANTIATE_TEST_SUITE_P(Cuda, suite, testing::Values(Backend::cuda))

}  // namespace cudavision::test
