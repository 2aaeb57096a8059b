// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <type_traits>

#include "kernels/core/filter.hpp"
#include "kernels/core/queue.hpp"
#include "tests/kernels/reference/picture.hpp"

namespace cudavision::test {

using reference::Component;
using reference::Grid;
using reference::Layout;
using reference::Picture;

/// Why this build or machine cannot run the backend; nullptr if it can.
const char* unavailable(Backend backend);
#define SKIP_UNLESS_AVAILABLE(backend) \
  if (const char* why = ::cudavision::test::unavailable(backend)) GTEST_SKIP() << why

/// The contents of a picture. `random` is noise over the full range. zero, max and checkerboard make sums at both ends
/// of the range. `flat` has one value per component, so that sums cancel. `faint` is noise around the middle, so that
/// sums stay in range. `ones` and `words` also set the bits outside the samples, to ones or at random.
enum class Data { random, zero, max, checkerboard, flat, faint, ones, words };
Picture make_picture(const Geometry& geometry, unsigned seed, Data data = Data::random, Layout layout = {});

/// The work of a plan from a source to a destination.
using Work = std::function<Status(const Image& src, const Image& dst, Queue queue)>;

/// Runs a filter on one picture, in the memory of the backend and on its own stream.
class Job {
 public:
  /// `dst` provides the initial bytes and the layout of the destination.
  Job(Backend backend, const Picture& src, const Picture& dst);
  ~Job();
  Status submit(const Work& work);
  Status submit(Filter& filter, const Region& region = {}) {
    return submit(
        [&](const Image& src, const Image& dst, Queue queue) { return filter.submit(src, dst, region, queue); });
  }
  /// Waits and returns the destination. The test fails if the source changed.
  Picture finish();

 private:
  struct Device;
  Backend backend_;
  Picture src_, dst_;
  std::unique_ptr<Device> device_;
};

void run_on(Backend backend, const Picture& src, const std::function<Status(const Image& src, Queue queue)>& work);
Picture run_filter(Filter& filter, Backend backend, const Picture& src, const Region& region = {});

/// Calls work(0) to work(count − 1) at the same time, each on its own thread.
void in_threads(int count, const std::function<void(int)>& work);

/// Bytes in the memory of a backend.
class Bytes {
 public:
  Bytes(Backend backend, std::vector<std::uint8_t> bytes);
  ~Bytes();
  Bytes(const Bytes&) = delete;
  void* data() const;
  /// Waits for the device and returns the current bytes.
  const std::vector<std::uint8_t>& read();

 private:
  struct Device;
  std::vector<std::uint8_t> bytes_;
  std::unique_ptr<Device> device_;
};

/// Runs `work` on a GRAY8 picture with a row pitch of 64 MiB, so that offsets exceed 32 bits.
Picture run_far_apart(Backend backend, const Work& work, const Picture& src);

std::string describe(const Geometry& geometry, const Layout& src, const Layout& dst, const Region& region, Data data);

/// Runs the filter with a destination in the layout of `expected`. Returns an empty string if the result equals
/// `expected` within the tolerance, otherwise a description of the difference.
template <typename Params>
std::string check(Backend backend, const Params& params, const Picture& src, const Picture& expected,
                  const Region& region = {}) {
  auto filter = make(params, src.geometry(), backend);
  if (!filter.ok()) return "no plan: " + filter.error().message();
  Job job(backend, src, expected.inverted());
  const Status status = job.submit(*filter.value(), region);
  const Picture actual = job.finish();
  if (!status.ok()) return "submit failed: " + status.message();
  return expected.difference(actual, tolerance(params, src.geometry().format));
}

/// Random numbers for the sweeps, identical with every standard library.
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

/// The number of rounds that a sweep makes through its sizes, each with different random cases: CUDAVISION_TEST_ROUNDS,
/// or 2.
int rounds();
/// The sizes of the sweeps: tiny, odd, close to the size of a tile, and wider or taller than any tile.
extern const std::vector<std::pair<int, int>> sizes;
extern const std::vector<Geometry> longest_frames;
/// Memory layouts: tight, aligned, and badly aligned ones.
extern const std::vector<Layout> layouts;
BorderValue random_border_value(Random& random, Format format);
/// Returns a random region: mostly the whole frame, otherwise the inside or outside of rectangles, ellipses and
/// polygons. Shapes may be odd, overlap, or extend beyond the frame. Polygons may cross themselves.
Region random_region(Random& random, int width, int height);

/// One case of a sweep: everything except the parameters of the operation.
struct Case {
  Geometry geometry;
  Layout src, dst;
  Region region;
  Data data;
};
Case random_case(Random& random, Format format, std::pair<int, int> size);

/// Compares a filter with the reference (reference::apply). A failure prints the whole case.
template <typename Params>
void expect_reference(Backend backend, const Params& params, const Case& c, unsigned seed) {
  const Picture src = make_picture(c.geometry, seed, c.data, c.src);
  const std::string wrong = check(backend, params, src, apply(params, src, c.region, c.dst), c.region);
  EXPECT_EQ(wrong, "") << describe(c.geometry, c.src, c.dst, c.region, c.data) << "\n" << describe(params);
}

/// Checks that validate() and make() of both backends refuse `good` with each value in the property, and name the
/// property. `part` is the member, or a function that sets the value in the parameters.
template <typename Params, typename Part>
void expect_refused(const Params& good, const std::string& property, const std::vector<double>& values, Part part) {
  for (double value : values) {
    SCOPED_TRACE(property + " = " + std::to_string(value));
    Params params = good;
    if constexpr (std::is_member_object_pointer_v<Part>)
      params.*part = std::decay_t<decltype(params.*part)>(value);
    else
      part(params, value);
    const Status status = validate(params);
    EXPECT_EQ(status.code(), Status::Code::settings);
    EXPECT_NE(status.message().find(property), std::string::npos) << status.message();
    for (Backend backend : {Backend::cpu, Backend::cuda}) {
      const auto made = make(params, {Format::NV12, 64, 48}, backend);
      ASSERT_FALSE(made.ok());
      EXPECT_EQ(made.error().code(), Status::Code::settings);
    }
  }
}
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN(),
                 infinite = std::numeric_limits<double>::infinity();

std::vector<Format> all_formats();
/// The formats that kernels of operations see, without those that are unpacked first.
std::vector<Format> kernel_formats();

/// Whether this many pieces cover a length and one less does not.
inline bool just_cover(int pieces, int size, int length) {
  return pieces * size >= length && (pieces - 1) * size < length;
}

/// The code to compare with OpenCV: a backend, or the reference (no backend).
struct Runner {
  const char* name;
  std::optional<Backend> backend;

  template <typename Params>
  std::string check(const Params& params, const Picture& src, const Picture& expected) const {
    return backend ? test::check(*backend, params, src, expected) : expected.sample_difference(apply(params, src), 0);
  }
};
inline std::string runner_name(const ::testing::TestParamInfo<Runner>& item) { return item.param.name; }
#define INSTANTIATE_FOR_RUNNERS(suite)                                                                      \
  INSTANTIATE_TEST_SUITE_P(                                                                                 \
      All, suite,                                                                                           \
      testing::Values(Runner{"Reference", {}}, Runner{"Cpu", Backend::cpu}, Runner{"Cuda", Backend::cuda}), \
      runner_name)

/// The two backends are two instances, so --gtest_filter='*Cuda*' selects the tests that need a device.
template <typename T = int>
using BackendAnd = std::tuple<Backend, T>;
inline std::string format_name(const ::testing::TestParamInfo<BackendAnd<Format>>& item) {
  return reference::definition(std::get<1>(item.param)).name;
}
/// Base class of tests on one backend, or one backend and one format. They are skipped where the backend cannot run.
class OnBackend : public testing::TestWithParam<Backend> {
 protected:
  void SetUp() override { SKIP_UNLESS_AVAILABLE(backend); }
  const Backend backend = GetParam();
};
class OnBackendWithFormat : public testing::TestWithParam<BackendAnd<Format>> {
 protected:
  void SetUp() override { SKIP_UNLESS_AVAILABLE(backend); }
  const Backend backend = std::get<0>(GetParam());
  const Format format = std::get<1>(GetParam());
};
#define INSTANTIATE_FOR_FORMATS(suite, formats)                                                                       \
  INSTANTIATE_TEST_SUITE_P(Cpu, suite, testing::Combine(testing::Values(Backend::cpu), testing::ValuesIn(formats)),   \
                           format_name);                                                                              \
  INSTANTIATE_TEST_SUITE_P(Cuda, suite, testing::Combine(testing::Values(Backend::cuda), testing::ValuesIn(formats)), \
                           format_name)
/// Instances for each format of kernels, for tests that run both backends themselves.
inline std::string name_of_format(const ::testing::TestParamInfo<Format>& item) {
  return reference::definition(item.param).name;
}
#define INSTANTIATE_FOR_EACH_FORMAT(suite) \
  INSTANTIATE_TEST_SUITE_P(All, suite, testing::ValuesIn(kernel_formats()), name_of_format)
#define INSTANTIATE_FOR_BACKENDS(suite)                                \
  INSTANTIATE_TEST_SUITE_P(Cpu, suite, testing::Values(Backend::cpu)); \
  INSTANTIATE_TEST_SUITE_P(Cuda, suite, testing::Values(Backend::cuda))

}  // namespace cudavision::test
