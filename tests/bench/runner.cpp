// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tests/bench/runner.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>

namespace cudavision::bench {
namespace {

struct PlaneSize {
  std::size_t row_bytes = 0, height = 0;
};

std::array<PlaneSize, 3> plane_sizes(const Geometry& geometry) {
  const FormatInfo& format = info(geometry.format);
  std::array<PlaneSize, 3> sizes;
  for (int i = 0; i < format.set_count; ++i) {
    const ChannelSet& set = format.sets[i];
    const Rect grid = geometry.grid(set);
    PlaneSize& size = sizes[set.plane];  // sets that share a plane have the same rows; one may be half a pixel longer
    size.row_bytes = std::max(size.row_bytes, std::size_t(grid.width) * set.channels * format.sample_bytes());
    size.height = grid.height;
  }
  return sizes;
}

std::size_t align(std::size_t bytes) { return (bytes + 511) & ~std::size_t(511); }  // like cuMemAllocPitch

Image picture_at(const Geometry& geometry, std::byte* base) {
  Image image{geometry, {}};
  const auto sizes = plane_sizes(geometry);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i].height == 0) continue;
    image.planes[i] = {base, std::ptrdiff_t(align(sizes[i].row_bytes))};
    base += align(sizes[i].row_bytes) * sizes[i].height;
  }
  return image;
}

class CpuRunner : public Runner {
 public:
  Status prepare(const Geometry& geometry, Data data, std::size_t dst_bytes) override {
    const FormatInfo& format = info(geometry.format);
    const std::uint32_t bits = format.depth > 8 ? std::uint32_t(format.max_value()) << format.shift : 0xffffu;
    if (Status status = lay_out(geometry, src_.data(), dst_.data(), src_.size(), dst_bytes); !status.ok())
      return status;
    auto* words = reinterpret_cast<std::uint32_t*>(src_.data());
    for (std::size_t i = 0; i < src_.size() / 4; ++i)
      words[i] = word_of(data, i, picture_bytes_ / 4, format.sample_bytes()) & (bits << 16 | bits);
    return {};
  }

  Result<Timing> time(const Work& work, int ring, const Budget& budget) override {
    using Clock = std::chrono::steady_clock;
    const auto once = [&](int i) -> Result<double> {
      const auto start = Clock::now();
      if (Status status = work(i % ring, Queue{}); !status.ok()) return status;
      return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
    };
    if (auto warm_up = once(0); !warm_up.ok()) return warm_up.error();
    std::vector<double> times;
    double total = 0;
    while (int(times.size()) < budget.least || (int(times.size()) < budget.most && total < budget.us)) {
      auto us = once(int(times.size()) + 1);
      if (!us.ok()) return us.error();
      times.push_back(us.value());
      total += us.value();
    }
    return Timing{median(times), int(times.size())};
  }

  Result<Timing> copy(std::size_t bytes) override {
    const std::size_t ring = src_.size() / bytes;
    if (ring == 0) return Status::settings("the copy is larger than the pool");
    return time(
        [&](int i, Queue) { return std::memcpy(dst_.data() + i * bytes, src_.data() + i * bytes, bytes), Status(); },
        int(ring), budget());
  }
  Result<Timing> copy_kernel(std::size_t bytes) override { return copy(bytes); }

  const float* upload(const std::vector<float>&) override { return nullptr; }
  Budget budget() const override { return {10, 3, 2e5}; }

  std::string device() const override {
    std::ifstream cpuinfo("/proc/cpuinfo");
    for (std::string line; std::getline(cpuinfo, line);)
      if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
    return "CPU";
  }

 private:
  static constexpr std::size_t pool_bytes = 288u << 20;
  std::vector<std::byte> src_ = std::vector<std::byte>(pool_bytes), dst_ = std::vector<std::byte>(pool_bytes);
};

}  // namespace

std::size_t payload(const Geometry& geometry) {
  std::size_t bytes = 0;
  for (const PlaneSize& size : plane_sizes(geometry)) bytes += size.row_bytes * size.height;
  return bytes;
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size();
  return (values[(n - 1) / 2] + values[n / 2]) / 2;
}

Status Runner::lay_out(const Geometry& geometry, std::byte* src, std::byte* dst, std::size_t pool_bytes,
                       std::size_t dst_bytes) {
  std::size_t bytes = 0;
  for (const PlaneSize& size : plane_sizes(geometry)) bytes += align(size.row_bytes) * size.height;
  picture_bytes_ = bytes;
  dst_bytes = std::max(bytes, align(dst_bytes));
  slots_.clear();
  for (std::size_t i = 0; (i + 1) * dst_bytes <= pool_bytes; ++i)
    slots_.push_back({picture_at(geometry, src + i * bytes), picture_at(geometry, dst + i * dst_bytes)});
  if (slots_.empty()) return Status::settings("the picture is larger than the benchmark's pool");
  return {};
}

Result<std::unique_ptr<Runner>> make_cpu_runner() { return std::unique_ptr<Runner>(new CpuRunner); }

#if !CUDAVISION_CUDA
Result<std::unique_ptr<Runner>> make_cuda_runner() { return Status::settings("this build has no CUDA backend"); }
#endif

}  // namespace cudavision::bench
