// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tests/kernels/harness.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "kernels/core/backend.hpp"
#if CUDAVISION_CPU
#include "kernels/cpu/lanes.hpp"
#include "kernels/cpu/threads.hpp"
#endif
#include "tests/sanitizers/thread.hpp"
#if CUDAVISION_CUDA
#include "tests/kernels/guarded_memory.hpp"
#endif

namespace cudavision::test {

const std::vector<std::pair<int, int>> sizes = {{1, 1},   {2, 1},     {1, 2},     {3, 2},    {5, 7},    {17, 3},
                                                {31, 33}, {385, 289}, {1031, 67}, {3, 2000}, {2000, 3}, {64, 48}};
const std::vector<Geometry> longest_frames = [] {
  std::vector<Geometry> frames;
  for (Format format : {Format::GRAY8, Format::RGB, Format::NV12, Format::UYVY, Format::RGBA64_LE})
    frames.insert(frames.end(), {{format, max_frame_side, 3}, {format, 3, max_frame_side}});
  return frames;
}();
const std::vector<Layout> layouts = {
    {},         {0, 0, 256}, {0, 1, 1}, {1, 0, 1},       {2, 3, 1},       {3, 13, 4},      {7, 64, 64},
    {5, 2, 16}, {15, 7, 1},  {0, 0, 4}, {0, 0, 1, 1, 0}, {2, 3, 1, 0, 1}, {1, 0, 16, 1, 1}};

#if CUDAVISION_CUDA

namespace {

void must(cudaError_t error) {
  if (error != cudaSuccess) throw std::runtime_error(cudaGetErrorString(error));
}

class DeviceBytes {
 public:
  explicit DeviceBytes(const std::vector<std::uint8_t>& bytes) : memory_(bytes.size()), size_(bytes.size()) {
    must(cudaMemcpy(data(), bytes.data(), size_, cudaMemcpyHostToDevice));
  }
  ~DeviceBytes() { cudaDeviceSynchronize(); }  // cudaFree() would wait, too
  DeviceBytes(const DeviceBytes&) = delete;

  void* data() const { return memory_.data(); }
  void download(std::vector<std::uint8_t>& bytes) const {
    must(cudaMemcpy(bytes.data(), data(), size_, cudaMemcpyDeviceToHost));
  }

 private:
  const GuardedMemory memory_;
  const std::size_t size_;
};

}  // namespace

struct Job::Device {
  Device(const Picture& from, const Picture& to) : src(from.bytes()), dst(to.bytes()) {
    must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    must(cudaDeviceSynchronize());  // uploads from pageable memory may still be running
  }
  ~Device() { cudaStreamDestroy(stream); }

  DeviceBytes src, dst;
  cudaStream_t stream = nullptr;
};

struct Bytes::Device : DeviceBytes {
  using DeviceBytes::DeviceBytes;
};

const char* unavailable(Backend backend) {
  if (!built_with(backend)) return "this build does not have the backend";
  if (backend == Backend::cpu) return nullptr;
  static int count = 0;
  static const cudaError_t error = cudaGetDeviceCount(&count);
  return error != cudaSuccess ? cudaGetErrorString(error) : count == 0 ? "no CUDA device" : nullptr;
}

#else

struct Job::Device {};
struct Bytes::Device {
  void* data() const { return nullptr; }
};

const char* unavailable(Backend backend) {
  return built_with(backend) ? nullptr : "this build does not have the backend";
}

#endif

Job::Job(Backend backend, const Picture& src, const Picture& dst) : backend_(backend), src_(src), dst_(dst) {
#if CUDAVISION_CUDA
  if (backend == Backend::cuda) device_ = std::make_unique<Device>(src, dst);
#endif
}

Job::~Job() = default;

Bytes::Bytes([[maybe_unused]] Backend backend, std::vector<std::uint8_t> bytes) : bytes_(std::move(bytes)) {
#if CUDAVISION_CUDA
  if (backend == Backend::cuda) device_ = std::make_unique<Device>(bytes_);
#endif
}

Bytes::~Bytes() = default;

void* Bytes::data() const { return device_ ? device_->data() : const_cast<std::uint8_t*>(bytes_.data()); }

const std::vector<std::uint8_t>& Bytes::read() {
#if CUDAVISION_CUDA
  if (device_) {
    must(cudaDeviceSynchronize());
    device_->download(bytes_);
  }
#endif
  return bytes_;
}

Status Job::submit(const Work& work) {
#if CUDAVISION_CUDA
  if (device_) return work(src_.at(device_->src.data()), dst_.at(device_->dst.data()), Queue{device_->stream});
#endif
  const std::vector<std::uint8_t> before = src_.bytes();
  const Status status = work(src_.at(src_.bytes().data()), dst_.at(dst_.bytes().data()), Queue{});
  EXPECT_EQ(src_.bytes() == before, true) << "the source was written to";
  return status;
}

Picture Job::finish() {
#if CUDAVISION_CUDA
  if (device_) {
    must(cudaStreamSynchronize(device_->stream));
    std::vector<std::uint8_t> after(src_.bytes().size());
    device_->src.download(after);
    EXPECT_EQ(src_.bytes() == after, true) << "the source was written to";
    device_->dst.download(dst_.bytes());
  }
#endif
  return dst_;
}

void run_on(Backend backend, const Picture& src, const std::function<Status(const Image& src, Queue queue)>& work) {
  Job job(backend, src, Picture({Format::GRAY8, 1, 1}));
  const Status status = job.submit([&](const Image& image, const Image&, Queue queue) { return work(image, queue); });
  job.finish();
  EXPECT_TRUE(status.ok()) << status.message();
}

Picture run_filter(Filter& filter, Backend backend, const Picture& src, const Region& region) {
  Job job(backend, src, src.inverted());
  const Status status = job.submit(filter, region);
  EXPECT_TRUE(status.ok()) << status.message();
  return job.finish();
}

void in_threads(int count, const std::function<void(int)>& work) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i)
    threads.emplace_back([&work, i] {
      try {
        work(i);
      } catch (const std::exception& error) {
        ADD_FAILURE() << error.what();
      }
    });
  for (std::thread& thread : threads) thread.join();
}

namespace {

/// Reserves a large address range, of which the test uses only some rows.
class FarRows {
 public:
  static constexpr std::size_t pitch = std::size_t(64) << 20;

  FarRows(Backend backend, int width, int height) : backend_(backend), width_(width), height_(height) {
#if CUDAVISION_CUDA
    if (backend == Backend::cuda) {
      must(cudaMalloc(&data_, pitch * height));
      return;
    }
#endif
    data_ = mmap(nullptr, pitch * height, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (data_ == MAP_FAILED) throw std::runtime_error("no address space");
  }
  ~FarRows() {
#if CUDAVISION_CUDA
    if (backend_ == Backend::cuda) {
      cudaFree(data_);
      return;
    }
#endif
    munmap(data_, pitch * height_);
  }
  FarRows(const FarRows&) = delete;

  Plane plane() const { return {data_, std::ptrdiff_t(pitch)}; }
  /// One of the planes is plane().
  void copy(const Plane& to, const Plane& from) const {
#if CUDAVISION_CUDA
    if (backend_ == Backend::cuda) {
      must(cudaMemcpy2D(to.data, to.pitch, from.data, from.pitch, width_, height_, cudaMemcpyDefault));
      must(cudaDeviceSynchronize());
      return;
    }
#endif
    for (int y = 0; y < height_; ++y)
      std::memcpy(static_cast<char*>(to.data) + y * to.pitch, static_cast<const char*>(from.data) + y * from.pitch,
                  width_);
  }

 private:
  Backend backend_;
  int width_, height_;
  void* data_ = nullptr;
};

}  // namespace

Picture run_far_apart(Backend backend, const Work& work, const Picture& src) {
  const Geometry& geometry = src.geometry();
  Picture from = src, to(geometry);
  FarRows far_src(backend, geometry.width, geometry.height), far_dst(backend, geometry.width, geometry.height);
  far_src.copy(far_src.plane(), from.at(from.bytes().data()).planes[0]);
  const Status status = work({geometry, {far_src.plane()}}, {geometry, {far_dst.plane()}}, Queue{});
  EXPECT_TRUE(status.ok()) << status.message();
#if CUDAVISION_CUDA
  if (backend == Backend::cuda) must(cudaDeviceSynchronize());
#endif
  far_dst.copy(to.at(to.bytes().data()).planes[0], far_dst.plane());
  return to;
}

int rounds() {
  const char* given = std::getenv("CUDAVISION_TEST_ROUNDS");
  return given ? std::atoi(given) : 2;
}

Picture make_picture(const Geometry& geometry, unsigned seed, Data data, Layout layout) {
  Picture picture(geometry, layout);
  Random random(seed);
  const int max = picture.format().max_value();
  for (const Component& component : picture.format().components) {
    const Grid grid = picture.read(component);
    const int flat = random.below(max + 1);
    const auto sample = [&](int x, int y) {
      switch (data) {
        case Data::zero:
          return 0;
        case Data::max:
          return max;
        case Data::checkerboard:
          return (x + y) % 2 * max;
        case Data::flat:
          return flat;
        case Data::faint:
          return max / 2 + random.between(-2, 3);
        case Data::ones:
          return 0xffff;
        case Data::words:  // half of the words are valid samples
          return random.below(2) ? random.below(0x10000) : random.below(max + 1) << picture.format().shift;
        default:
          return random.below(max + 1);
      }
    };
    const bool words = data == Data::ones || data == Data::words;
    for (const auto& [x, y] : positions(grid))
      words ? picture.write_word(component, x, y, sample(x, y)) : picture.write(component, x, y, sample(x, y));
  }
  return picture;
}

BorderValue random_border_value(Random& random, Format format) {
  BorderValue value;
  for (std::uint16_t& sample : value)
    sample = std::uint16_t(random.below(reference::definition(format).max_value() + 1));
  return value;
}

Region random_region(Random& random, int width, int height) {
  Region region;
  region.mode = random.pick<Region::Mode>(
      {Region::Mode::frame, Region::Mode::frame, Region::Mode::inside, Region::Mode::outside});
  if (region.mode == Region::Mode::frame) return region;
  const auto box = [&] {
    Rect rect;
    rect.x = random.between(-width / 4, width - 1);
    rect.y = random.between(-height / 4, height - 1);
    rect.width = random.between(1, width + 1);
    rect.height = random.between(1, height + 1);
    return rect;
  };
  for (int i = random.below(4); i > 0; --i) region.rects.push_back(box());
  if (random.below(4) == 0) region.rects.push_back({width, 0, 8, 8});  // outside the frame
  if (random.below(4) == 0) region.rects.push_back({0, 0, -3, 5});     // empty
  if (random.below(8) == 0) region.rects.push_back({1, 1, 2147483647, 2147483647});
  for (int i = std::max(0, random.below(5) - 2); i > 0; --i) region.ellipses.push_back(box());
  for (int i = std::max(0, random.below(5) - 2); i > 0; --i) {
    Polygon polygon;
    for (int corners = random.between(3, 7); corners > 0; --corners)
      polygon.push_back(
          {random.between(-width / 4, width + width / 4), random.between(-height / 4, height + height / 4)});
    region.polygons.push_back(polygon);
  }
  return region;
}

Case random_case(Random& random, Format format, std::pair<int, int> size) {
  return {{format, size.first, size.second},
          random.pick(layouts),
          random.pick(layouts),
          random_region(random, size.first, size.second),
          random.below(3) ? Data::random
                          : random.pick<Data>({Data::zero, Data::max, Data::checkerboard, Data::flat, Data::faint,
                                               Data::ones, Data::words})};
}

std::vector<Format> all_formats() {
  std::vector<Format> all;
  for (int i = 0; i < format_count; ++i) all.push_back(Format(i));
  return all;
}

std::vector<Format> kernel_formats() {
  std::vector<Format> formats = all_formats();
  formats.erase(std::remove_if(formats.begin(), formats.end(),
                               [](Format format) { return reference::definition(format).unpacked; }),
                formats.end());
  return formats;
}

std::string describe(const Geometry& geometry, const Layout& src, const Layout& dst, const Region& region, Data data) {
  std::ostringstream text;
  text << reference::definition(geometry.format).name << ' ' << geometry.width << 'x' << geometry.height;
  const auto place = [&](const char* name, const Layout& layout) {
    text << ' ' << name << "(offset " << layout.offset << " padding " << layout.padding << " multiple "
         << layout.multiple << " bytes " << layout.offset_bytes << ", " << layout.padding_bytes << ')';
  };
  place("src", src);
  place("dst", dst);
  const char* modes[] = {"frame", "inside", "outside"};
  const char* contents[] = {"random", "zero", "max", "checkerboard", "flat", "faint", "ones", "words"};
  text << " region=" << modes[int(region.mode)];
  for (const Rect& rect : region.rects) text << ' ' << rect;
  for (const Rect& box : region.ellipses) text << " ellipse" << box;
  for (const Polygon& polygon : region.polygons) {
    text << " polygon(";
    for (const Point& corner : polygon) text << ' ' << corner.x << ',' << corner.y;
    text << " )";
  }
  text << " data=" << contents[int(data)];
  return text.str();
}

}  // namespace cudavision::test

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
#if CUDAVISION_CPU
  cudavision::cpu::split_all_loops(true);  // the pictures in tests are too small for threads otherwise
  // --lanes=N uses functions for fewer lanes than this processor has.
  if (argc > 1 && std::strncmp(argv[1], "--lanes=", 8) == 0) {
    const int most = std::atoi(argv[1] + 8);
    if (most >= cudavision::cpu::most_lanes()) {
      std::printf("this processor has no functions for more than %d lanes\n", most);
      return 77;
    }
    cudavision::cpu::limit_lanes(most);
  }
#endif
  const int failed = RUN_ALL_TESTS();
  const testing::UnitTest& tests = *testing::UnitTest::GetInstance();
  std::printf("%d passed, %d failed, %d skipped\n", tests.successful_test_count(), tests.failed_test_count(),
              tests.skipped_test_count());
  if (failed) return 1;
  if (tests.successful_test_count() > 0) return 0;
  return tests.skipped_test_count() > 0 ? 77 : 1;  // no test ran: all were skipped, or the filter matches none
}
