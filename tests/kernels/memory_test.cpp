// SPDX-License-Identifier: LGPL-2.1-or-later
// Properties that every operation must have: it ignores bits outside the samples, accepts pictures at any address,
// accesses no memory beyond them, and never throws.
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>
#include <opencv2/core.hpp>
#include <set>

#include "kernels/convolve/convolve.hpp"
#include "kernels/core/backend.hpp"
#include "kernels/diff/diff.hpp"
#include "kernels/gaussian/gaussian.hpp"
#include "kernels/histogram/histogram.hpp"
#include "kernels/histogram/sharpness.hpp"
#include "kernels/integral/integral.hpp"
#include "kernels/local/local.hpp"
#include "operations.h"
#include "tests/kernels/harness.hpp"
#include "tests/kernels/reference/diff.hpp"

namespace {

/// If `limited`, calls into the kernels (`in_kernel`) may make `allocations_left` more allocations. After that,
/// operator new throws and OpenCV's matrices fail. `failed` counts the failures.
std::atomic<bool> limited{false}, in_kernel{false};
std::atomic<int> allocations_left{0}, failed{0};

bool fails() {
  if (!limited || !in_kernel || --allocations_left >= 0) return false;
  ++failed;
  return true;
}

void* allocate(std::size_t size) {
  void* const memory = fails() ? nullptr : std::malloc(size ? size : 1);
  if (!memory) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(std::size_t size) { return allocate(size); }
void* operator new[](std::size_t size) { return allocate(size); }
// A sanitizer's nothrow operator new would not match the free() below.
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return fails() ? nullptr : std::malloc(size ? size : 1);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

namespace cudavision::test {
namespace {

/// OpenCV's allocator, which fails like operator new above.
class ShortAllocator : public cv::MatAllocator {
 public:
  cv::UMatData* allocate(int dims, const int* sizes, int type, void* data, std::size_t* step, cv::AccessFlag flags,
                         cv::UMatUsageFlags usage) const override {
    if (fails()) CV_Error(cv::Error::StsNoMem, "out of memory for a test");
    return cv::Mat::getStdAllocator()->allocate(dims, sizes, type, data, step, flags, usage);
  }
  bool allocate(cv::UMatData* data, cv::AccessFlag flags, cv::UMatUsageFlags usage) const override {
    return cv::Mat::getStdAllocator()->allocate(data, flags, usage);
  }
  void deallocate(cv::UMatData* data) const override { cv::Mat::getStdAllocator()->deallocate(data); }
};

/// Marks a call into the kernels. Allocations of the test itself never fail.
template <typename Call>
auto kernel(Call call) {
  struct Inside {
    Inside() { in_kernel = true; }
    ~Inside() { in_kernel = false; }
  } const inside;
  return call();
}

/// Makes the plan of an operation, as work from a picture to a picture.
using Make = std::function<Result<Work>(const Geometry&, Backend)>;
struct Operation {
  std::string name;
  Make make;
};

template <typename Plan, typename Submit>
Result<Work> work_with(Result<std::unique_ptr<Plan>> made, Submit submit) {
  if (!made.ok()) return made.error();
  const std::shared_ptr<Plan> plan = std::move(made.value());
  return Work(
      [plan, submit](const Image& src, const Image& dst, Queue queue) { return submit(*plan, src, dst, queue); });
}

Make filter(std::function<Result<std::unique_ptr<Filter>>(const Geometry&, Backend)> make, Region region = {}) {
  return [=](const Geometry& geometry, Backend backend) {
    return work_with(make(geometry, backend), [region](Filter& plan, const Image& src, const Image& dst, Queue queue) {
      return kernel([&] { return plan.submit(src, dst, region, queue); });
    });
  };
}

/// Draws the histogram into a copy of the picture, so that the result depends on its counts.
Make overlay(histogram::Channels channels, int bins) {
  return [=](const Geometry& geometry, Backend backend) -> Result<Work> {
    const histogram::Params params{bins, channels};
    histogram::OverlayParams place;
    place.position = {-3, 2, geometry.width, geometry.height};
    auto histogram = kernel([&] { return histogram::make(params, geometry, backend); });
    if (!histogram.ok()) return histogram.error();
    auto drawn = kernel([&] { return histogram::make_overlay(place, *histogram.value()); });
    if (!drawn.ok()) return drawn.error();
    auto copy = kernel([&] { return make_copy(geometry, backend); });
    if (!copy.ok()) return copy.error();
    const std::shared_ptr<histogram::Histogram> counts = std::move(histogram.value());
    const std::shared_ptr<histogram::Overlay> drawer = std::move(drawn.value());
    const std::shared_ptr<Filter> copier = std::move(copy.value());
    return Work([=](const Image& src, const Image& dst, Queue queue) {
      const Region all;
      return kernel([&] {
        Status status = counts->submit(src, all, queue);
        if (status.ok()) status = copier->submit(src, dst, all, queue);
        return status.ok() ? drawer->submit(dst, queue) : status;
      });
    });
  };
}

/// Sums the luma of the picture twice, compares the sums, and copies the picture. sharpness_test.cpp checks their
/// values.
Make sharpness(const Region& region) {
  return [=](const Geometry& geometry, Backend backend) -> Result<Work> {
    histogram::SharpnessParams params;
    params.compare = true;
    auto made = kernel([&] { return histogram::make_sharpness(params, geometry, backend); });
    if (!made.ok()) return made.error();
    auto copy = kernel([&] { return make_copy(geometry, backend); });
    if (!copy.ok()) return copy.error();
    const std::shared_ptr<histogram::Sharpness> plan = std::move(made.value());
    const std::shared_ptr<Filter> copier = std::move(copy.value());
    return Work([=](const Image& src, const Image& dst, Queue queue) {
      return kernel([&] {
        Status status = plan->submit(src, region, queue);
        if (status.ok()) status = plan->submit(src, region, queue);
        return status.ok() ? copier->submit(src, dst, {}, queue) : status;
      });
    });
  };
}

/// Submits the picture twice and draws boxes.
Make difference(diff::Reference reference, diff::Output output, int threshold = 1) {
  return [=](const Geometry& geometry, Backend backend) {
    diff::Params params = reference::without_light();
    params.reference = reference;
    params.output = output;
    params.looks = diff::Looks::all;
    params.threshold = threshold;
    params.mask_regions = {{1, 1, 3, 2}};
    auto made = kernel([&] { return diff::make(params, geometry, backend); });
    return work_with(std::move(made), [](diff::Diff& plan, const Image& src, const Image& dst, Queue queue) {
      const std::vector<diff::MotionRegion> boxes{{{2, 2, 5, 4}, 1, 1}};
      return kernel([&] {
        Status status = plan.submit(src, dst, queue);
        if (status.ok()) status = plan.submit(src, dst, queue);
        return status.ok() ? plan.draw_boxes(dst, boxes, queue) : status;
      });
    });
  };
}

/// The work that the tests below repeat. Each name begins with the name of its operation.
std::vector<Operation> operations() {
  const std::vector<Rect> rects{{3, 2, 11, 9}, {8, 5, 40, 7}};
  const Region inside{Region::Mode::inside, rects}, outside{Region::Mode::outside, rects};
  const Region to_edges{Region::Mode::inside, {{20, 10, 16, 10}}};  // the windows end at the edge of the picture
  Region shapes = inside, no_shapes = outside;
  shapes.ellipses = no_shapes.ellipses = {{-4, 1, 21, 12}, {9, 9, 30, 20}};
  shapes.polygons = no_shapes.polygons = {{{0, 0}, {30, 3}, {12, 25}}};
  const auto gaussian = [](int taps) {
    return [taps](const Geometry& geometry, Backend backend) {
      gaussian::Params params;
      params.kernel_width = params.kernel_height = taps;
      return kernel([&] { return gaussian::make(params, geometry, backend); });
    };
  };
  const auto convolve = [](convolve::Preset preset, Border border = Border::reflect_101) {
    return [=](const Geometry& geometry, Backend backend) {
      convolve::Params params;
      params.preset = preset;
      params.weights.assign(81, 0.02);
      params.border = border;
      return kernel([&] { return convolve::make(params, geometry, backend); });
    };
  };
  const auto local = [](local::Operation operation) {
    return [=](const Geometry& geometry, Backend backend) {
      local::Params params;
      params.operation = operation;
      params.radius = 2;
      params.search_radius = 3;
      return kernel([&] { return local::make(params, geometry, backend); });
    };
  };
  const auto equalize = [](const Geometry& geometry, Backend backend) {
    return kernel([&] { return histogram::make_equalize(LumaMatrix::bt709, geometry, backend); });
  };
  return {
      {"copy of the frame", filter([](const Geometry& geometry, Backend backend) {
         return kernel([&] { return make_copy(geometry, backend); });
       })},
      {"gaussian", filter(gaussian(5))},
      {"gaussian inside", filter(gaussian(5), inside)},
      {"gaussian outside", filter(gaussian(31), outside)},
      {"gaussian in shapes", filter(gaussian(5), shapes)},
      {"gaussian around shapes", filter(gaussian(31), no_shapes)},
      {"convolve 3x3", filter(convolve(convolve::Preset::sharpen))},
      {"convolve sobel-x up to the edges", filter(convolve(convolve::Preset::sobel_x), to_edges)},
      {"convolve 5x5 inside", filter(convolve(convolve::Preset::unsharp), inside)},
      {"convolve 9x9 outside", filter(convolve(convolve::Preset::custom), outside)},
      {"convolve gradient", filter(convolve(convolve::Preset::gradient))},
      {"convolve copying borders", filter(convolve(convolve::Preset::box, Border::copy))},
      {"convolve filling borders", filter(convolve(convolve::Preset::custom, Border::fill))},
      {"local box-mean", filter(local(local::Operation::box_mean))},
      {"local pixelate in shapes", filter(local(local::Operation::pixelate), shapes)},
      {"local threshold", filter(local(local::Operation::threshold), outside)},
      {"local deviation", filter(local(local::Operation::deviation))},
      {"local non-local means", filter(local(local::Operation::nlm), inside)},
      {"histogram equalize", filter(equalize)},
      {"histogram equalize inside", filter(equalize, inside)},
      {"histogram overlay", overlay(histogram::Channels::all, 256)},
      {"histogram overlay of many bins", overlay(histogram::Channels::components, 65536)},
      {"histogram sharpness", sharpness({})},
      {"histogram sharpness outside", sharpness(outside)},
      {"diff difference from previous", difference(diff::Reference::previous, diff::Output::difference)},
      {"diff mask from previous", difference(diff::Reference::previous, diff::Output::mask)},
      {"diff overlay from first", difference(diff::Reference::first, diff::Output::overlay)},
      {"diff difference from background", difference(diff::Reference::background, diff::Output::difference)},
      {"diff overlay from median", difference(diff::Reference::median, diff::Output::overlay)},
      {"diff overlay from adaptive background", difference(diff::Reference::background, diff::Output::overlay, 0)},
      {"diff overlay from mixture", difference(diff::Reference::mog2, diff::Output::overlay)},
      {"diff difference from mixture", difference(diff::Reference::mog2, diff::Output::difference)},
  };
}

/// `blend` takes several pictures and `integral` writes tables, so their work is not from a picture to a picture.
TEST(Memory, TestsEveryOperation) {
  std::set<std::string> tested{"blend", "integral"};
  for (const Operation& operation : operations()) tested.insert(operation.name.substr(0, operation.name.find(' ')));
#define CUDAVISION_EXPECT(name) \
  EXPECT_EQ(tested.count(#name), 1u) << #name << " is not in operations() of memory_test.cpp";
  CUDAVISION_OPERATIONS(CUDAVISION_EXPECT)
#undef CUDAVISION_EXPECT
}

Picture result_of(const Operation& operation, Backend backend, const Picture& src, Layout layout = {}) {
  auto work = operation.make(src.geometry(), backend);
  Picture dst = Picture(src.geometry(), layout).inverted();
  if (!work.ok()) {
    ADD_FAILURE() << operation.name << ": " << work.error().message();
    return dst;
  }
  Job job(backend, src, dst);
  const Status status = job.submit(work.value());
  EXPECT_TRUE(status.ok()) << operation.name << ": " << status.message();
  return job.finish();
}

class AnyMemory : public OnBackendWithFormat {};

/// 16-bit samples at odd addresses and with odd row pitches give the same result as aligned ones.
TEST_P(AnyMemory, OddAddressesMakeNoDifference) {
  const Geometry geometry{format, 37, 21};
  const Picture aligned = make_picture(geometry, 6);
  const std::vector<Layout> odd_layouts{{0, 0, 1, 1, 0}, {0, 0, 1, 0, 1}, {0, 0, 1, 1, 2}};
  for (const Operation& operation : operations()) {
    const Picture expected = result_of(operation, backend, aligned);
    for (const Layout& odd : odd_layouts) {
      const Picture src = make_picture(geometry, 6, Data::random, odd);
      EXPECT_EQ(expected.sample_difference(result_of(operation, backend, src), 0), "")
          << operation.name << ", odd source";
      EXPECT_EQ(expected.sample_difference(result_of(operation, backend, aligned, odd), 0), "")
          << operation.name << ", odd result";
    }
  }
}

/// A stored value above the depth counts as the largest sample, and unused bits are ignored, so the result equals the
/// result for a clean picture. The sweeps compare with the reference, which lacks mog2.
TEST_P(AnyMemory, BitsOutsideSamplesMakeNoDifference) {
  const Geometry geometry{format, 37, 21};
  for (Data data : {Data::ones, Data::words}) {
    const Picture dirty = make_picture(geometry, 7, data);
    Picture clean(geometry);
    for (const Component& c : clean.format().components) clean.write(c, dirty.read(c));
    for (const Operation& operation : operations()) {
      const Picture from_clean = result_of(operation, backend, clean),
                    from_dirty = result_of(operation, backend, dirty);
      for (const Component& c : clean.format().components)
        EXPECT_EQ(from_clean.read(c).values == from_dirty.read(c).values, true)
            << operation.name << ", role " << int(c.role);
    }
  }
}

INSTANTIATE_FOR_FORMATS(AnyMemory, all_formats());

class FarMemory : public OnBackend {};

/// Offsets of rows that lie far apart do not fit in 32 bits.
TEST_P(FarMemory, MakesNoDifference) {
  const Picture src = make_picture({Format::GRAY8, 90, 50}, 2);
  for (const Operation& operation : operations()) {
    auto work = operation.make(src.geometry(), backend);
    ASSERT_TRUE(work.ok()) << work.error().message();
    EXPECT_EQ(result_of(operation, backend, src).sample_difference(run_far_apart(backend, work.value(), src), 0), "")
        << operation.name;
  }
}
INSTANTIATE_FOR_BACKENDS(FarMemory);

#if CUDAVISION_CPU
/// Threads share the rows of a picture. This picture has several strips.
TEST(CpuThreads, MakeNoDifference) {
  const int threads = cv::getNumThreads();
  for (Format format : {Format::NV12, Format::RGBA}) {
    const Picture src = make_picture({format, 331, 1021}, 9);
    for (const Operation& operation : operations()) {
      cv::setNumThreads(1);
      const Picture one = result_of(operation, Backend::cpu, src);
      cv::setNumThreads(5);
      EXPECT_EQ(one.sample_difference(result_of(operation, Backend::cpu, src), 0), "")
          << operation.name << ", format " << int(format);
    }
  }
  cv::setNumThreads(threads);
}
#endif

/// Memory of a plane with an inaccessible page directly after its last byte (`at_end`) or before its first byte.
class FencedPlane {
 public:
  FencedPlane(std::size_t bytes, bool at_end) {
    const std::size_t page = std::size_t(sysconf(_SC_PAGESIZE)), inner = (bytes + page - 1) / page * page;
    size_ = inner + 2 * page;
    memory_ = static_cast<std::uint8_t*>(mmap(nullptr, size_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (memory_ == MAP_FAILED || mprotect(memory_ + page, inner, PROT_READ | PROT_WRITE) != 0)
      throw std::runtime_error("no memory with fences");
    data_ = memory_ + page + (at_end ? inner - bytes : 0);
  }
  ~FencedPlane() { munmap(memory_, size_); }
  FencedPlane(const FencedPlane&) = delete;
  std::uint8_t* data() const { return data_; }

 private:
  std::uint8_t *memory_, *data_;
  std::size_t size_;
};

struct FencedPicture {
  FencedPicture(const Geometry& geometry, bool at_end) : image{geometry, {}} {
    const reference::Definition& format = reference::definition(geometry.format);
    for (int plane = 0; plane < info(geometry.format).planes; ++plane) {
      std::size_t row = 0, rows = 0;
      for (const Component& c : format.components) {
        if (c.plane != plane) continue;
        const int width = subsampled(geometry.width, c.shift_x);
        const std::size_t bits = std::size_t(divide_up(width, c.fields_in_group())) * c.step;  // whole groups
        row = std::max(row, c.fields.empty() ? std::size_t(c.offset) + std::size_t(width - 1) * c.step +
                                                   std::size_t(format.sample_bytes())
                                             : bits);
        rows = std::size_t(subsampled(geometry.height, c.shift_y));
      }
      planes.push_back(std::make_unique<FencedPlane>(row * rows, at_end));
      image.planes[plane] = {planes.back()->data(), std::ptrdiff_t(row)};
    }
  }
  /// Copies the samples from `picture` (`in`) or into it.
  void exchange(Picture& picture, bool in) {
    const Image other = picture.at(picture.bytes().data());
    for (std::size_t p = 0; p < planes.size(); ++p) {
      const int rows = extent(image.geometry, int(p)).rows;
      for (int y = 0; y < rows; ++y) {
        auto* const here = static_cast<std::uint8_t*>(image.planes[p].data) + y * image.planes[p].pitch;
        auto* const there = static_cast<std::uint8_t*>(other.planes[p].data) + y * other.planes[p].pitch;
        in ? std::memcpy(here, there, std::size_t(image.planes[p].pitch))
           : std::memcpy(there, here, std::size_t(image.planes[p].pitch));
      }
    }
  }

  Image image;
  std::vector<std::unique_ptr<FencedPlane>> planes;
};

class CpuMemory : public testing::TestWithParam<Format> {};

TEST_P(CpuMemory, AccessesNothingBeyondAPicture) {
  SKIP_UNLESS_AVAILABLE(Backend::cpu);
  for (const auto& [width, height] : {std::pair{37, 21}, {1, 1}, {2, 3}, {5, 2}}) {
    const Geometry geometry{GetParam(), width, height};
    Picture src = make_picture(geometry, 6);
    for (const Operation& operation : operations()) {
      const Picture expected = result_of(operation, Backend::cpu, src);
      for (bool at_end : {true, false}) {
        FencedPicture from(geometry, at_end), to(geometry, at_end);
        from.exchange(src, true);
        auto work = operation.make(geometry, Backend::cpu);
        ASSERT_TRUE(work.ok()) << work.error().message();
        ASSERT_TRUE(work.value()(from.image, to.image, {}).ok()) << operation.name;
        Picture actual(geometry);
        to.exchange(actual, false);
        EXPECT_EQ(expected.sample_difference(actual, 0), "") << operation.name << " " << width << "x" << height;
      }
    }
  }
}

/// Guards the summed-area tables of all channels in the same way. The caller provides their memory, so they are not
/// among operations().
TEST_P(CpuMemory, SumsNothingBeyondAPicture) {
  SKIP_UNLESS_AVAILABLE(Backend::cpu);
  const Geometry geometry{GetParam(), 37, 21};
  Picture src = make_picture(geometry, 6);
  integral::Params params;
  params.channel = integral::TableChannel::all;
  params.squared = true;
  const auto sums = [&](const Image& image) {
    auto plan = integral::make(params, geometry, Backend::cpu);
    EXPECT_TRUE(plan.ok());
    std::vector<std::vector<std::uint64_t>> memory;
    std::vector<Plane> tables;
    for (const integral::TableInfo& table : plan.value()->tables()) {
      memory.emplace_back(std::size_t(table.width) * table.height);
      tables.push_back({memory.back().data(), std::ptrdiff_t(table.width) * table.entry_bytes()});
    }
    EXPECT_TRUE(plan.value()->submit(image, tables, {}).ok());
    return memory;
  };
  for (bool at_end : {true, false}) {
    FencedPicture from(geometry, at_end);
    from.exchange(src, true);
    EXPECT_EQ(sums(from.image), sums(src.at(src.bytes().data())));
  }
}

/// A failure of any allocation, in the plan or for a frame, is reported to the caller.
TEST_P(CpuMemory, ShortMemoryIsAResourceError) {
  SKIP_UNLESS_AVAILABLE(Backend::cpu);
  static ShortAllocator allocator;
  cv::MatAllocator* const usual = cv::Mat::getDefaultAllocator();
  const Geometry geometry{GetParam(), 67, 45};
  Picture src = make_picture(geometry, 6, Data::random, {0, 0, 1, 1, 0}), dst = src;
  for (const Operation& operation : operations()) {
    result_of(operation, Backend::cpu, src);  // starts OpenCV's threads, whose allocations must not fail below
    int failures = 0;
    for (int allowed = 0;; ++allowed) {
      allocations_left = allowed;
      failed = 0;
      limited = true;
      cv::Mat::setDefaultAllocator(&allocator);
      Status status;
      {
        auto work = operation.make(geometry, Backend::cpu);
        status = work.ok() ? work.value()(src.at(src.bytes().data()), dst.at(dst.bytes().data()), {}) : work.error();
      }
      limited = false;
      cv::Mat::setDefaultAllocator(usual);
      if (failed == 0) {
        EXPECT_TRUE(status.ok()) << operation.name << ": " << status.message();
        break;
      }
      ++failures;
      ASSERT_EQ(status.code(), Status::Code::resource) << operation.name << ", allocation " << allowed;
    }
    EXPECT_GT(failures, 0) << operation.name;
  }
}
INSTANTIATE_TEST_SUITE_P(Cpu, CpuMemory, testing::ValuesIn(all_formats()), name_of_format);

}  // namespace
}  // namespace cudavision::test
