// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tests/soak/levels.hpp"

#include <dlfcn.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <fstream>
#include <numeric>

namespace cudavision::soak {
namespace {

constexpr double mebibyte = 1 << 20;

/// The driver's functions that report free memory. A build without CUDA has no header for them.
struct Driver {
  int (*set_current)(void*) = nullptr;
  int (*memory_info)(std::size_t* free, std::size_t* total) = nullptr;
  void* context = nullptr;

  Driver() {
    void* library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library) return;
    const auto find = [&](auto& function, const char* name) {
      function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(library, name));
      return function != nullptr;
    };
    int (*init)(unsigned) = nullptr;
    int (*retain)(void**, int) = nullptr;
    if (find(init, "cuInit") && find(retain, "cuDevicePrimaryCtxRetain") && find(set_current, "cuCtxSetCurrent") &&
        find(memory_info, "cuMemGetInfo_v2") && init(0) == 0 && retain(&context, 0) != 0)
      context = nullptr;
  }
};

}  // namespace

double process_memory() {
  std::ifstream file("/proc/self/statm");
  double total = 0, resident = 0;
  file >> total >> resident;
  return resident * double(sysconf(_SC_PAGESIZE)) / mebibyte;
}

std::optional<double> heap_in_use() {
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 33) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  const struct mallinfo2 info = mallinfo2();
  return double(info.uordblks + info.hblkhd) / mebibyte;
#else
  return std::nullopt;
#endif
}

std::optional<double> device_memory() {
  static const Driver driver;
  std::size_t free = 0, total = 0;
  if (!driver.context || driver.set_current(driver.context) != 0 || driver.memory_info(&free, &total) != 0)
    return std::nullopt;
  return double(total - free) / mebibyte;
}

void Levels::add(double seconds, double mebibytes) {
  seconds_.push_back(seconds);
  values_.push_back(mebibytes);
}

bool Levels::check(double bound) const {
  constexpr double shortest = 60;  // seconds
  if (values_.empty() || seconds_.back() - seconds_.front() < shortest) {
    std::printf("%s: not checked, as it was sampled for less than %.0f s\n", name_.c_str(), shortest);
    return true;
  }
  const double count = double(values_.size());
  const double mean_time = std::accumulate(seconds_.begin(), seconds_.end(), 0.0) / count;
  const double mean = std::accumulate(values_.begin(), values_.end(), 0.0) / count;
  double product = 0, square = 0;
  for (std::size_t i = 0; i < values_.size(); ++i) {
    product += (seconds_[i] - mean_time) * (values_[i] - mean);
    square += (seconds_[i] - mean_time) * (seconds_[i] - mean_time);
  }
  const double growth = product / square * (seconds_.back() - seconds_.front());
  const bool flat = growth <= bound;
  std::printf("%s%s: first %.0f, last %.0f, max %.0f MiB; a fitted line grows by %.1f MiB in %.0f s (at most %.0f)\n",
              flat ? "" : "FAILED: ", name_.c_str(), values_.front(), values_.back(),
              *std::max_element(values_.begin(), values_.end()), growth, seconds_.back() - seconds_.front(), bound);
  return flat;
}

}  // namespace cudavision::soak
