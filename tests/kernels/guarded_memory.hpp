// SPDX-License-Identifier: LGPL-2.1-or-later
// Device memory with unmapped addresses on both sides. A kernel that reads or writes there fails with an illegal
// address, instead of silently using another allocation.
//
//   reserved addresses   | unmapped | mapped: whole pages of the device | unmapped |
//   first placement                 |memory|
//   second placement                                           |memory|
//
// Placements alternate, because memory seldom fills whole pages (2 MiB). In the second placement up to 255 mapped bytes
// follow the memory, because it begins at a multiple of 256. Use it with one device and one thread, and only in files
// built with CUDA.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <map>
#include <stdexcept>
#include <string>

namespace cudavision::test {

/// The driver's functions for virtual memory, loaded at run time: the tests are not linked with the driver, because a
/// machine without a GPU lacks it.
struct VirtualMemory {
  decltype(&cuMemGetAllocationGranularity) granularity;
  decltype(&cuMemAddressReserve) reserve;
  decltype(&cuMemAddressFree) free;
  decltype(&cuMemCreate) create;
  decltype(&cuMemRelease) release;
  decltype(&cuMemMap) map;
  decltype(&cuMemUnmap) unmap;
  decltype(&cuMemSetAccess) set_access;

  static const VirtualMemory& get() {
    static const VirtualMemory functions = [] {
      void* const driver = dlopen("libcuda.so.1", RTLD_NOW);
      const auto find = [driver](auto& function, const char* name) {
        function = reinterpret_cast<std::decay_t<decltype(function)>>(driver ? dlsym(driver, name) : nullptr);
        if (!function) throw std::runtime_error(std::string("the CUDA driver has no ") + name);
      };
      VirtualMemory found{};
      find(found.granularity, "cuMemGetAllocationGranularity");
      find(found.reserve, "cuMemAddressReserve");
      find(found.free, "cuMemAddressFree");
      find(found.create, "cuMemCreate");
      find(found.release, "cuMemRelease");
      find(found.map, "cuMemMap");
      find(found.unmap, "cuMemUnmap");
      find(found.set_access, "cuMemSetAccess");
      return found;
    }();
    return functions;
  }
};

class GuardedMemory {
 public:
  /// Allocates `bytes` on the current device, at a multiple of 256. Throws std::runtime_error if memory runs out.
  explicit GuardedMemory(std::size_t bytes) {
    static unsigned number = 0;
    // Source and destination come in pairs. This sequence gives each of them both placements.
    const bool at_end = (number ^ number >> 1) & 1;
    ++number;
    pages_ = take((bytes + page() - 1) / page() * page());
    data_ = reinterpret_cast<void*>(at_end ? (pages_.begin + pages_.bytes - bytes) & ~CUdeviceptr(255) : pages_.begin);
  }
  ~GuardedMemory() { give_back(pages_); }
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;

  void* data() const { return data_; }

 private:
  struct Pages {
    CUdeviceptr begin;
    std::size_t bytes;
  };
  // Limit for pages that are kept for reuse, because mapping is slow.
  static constexpr std::size_t most_kept = std::size_t(64) << 20;

  static void must(CUresult result) {
    if (result != CUDA_SUCCESS)
      throw std::runtime_error("the CUDA driver cannot map memory: error " + std::to_string(result));
  }
  static CUmemAllocationProp properties() {
    CUmemAllocationProp of{};
    of.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    of.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    if (cudaGetDevice(&of.location.id) != cudaSuccess) throw std::runtime_error("no CUDA device");
    return of;
  }
  static std::size_t page() {
    static const std::size_t bytes = [] {
      cudaFree(nullptr);  // creates the context
      std::size_t found = 0;
      const CUmemAllocationProp of = properties();
      must(VirtualMemory::get().granularity(&found, &of, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
      return found;
    }();
    return bytes;
  }
  static std::multimap<std::size_t, CUdeviceptr>& kept() {
    static std::multimap<std::size_t, CUdeviceptr> pages;  // never unmapped, because the driver may shut down first
    return pages;
  }

  static Pages take(std::size_t bytes) {
    if (bytes == 0) bytes = page();
    if (const auto found = kept().find(bytes); found != kept().end()) {
      const Pages pages{found->second, bytes};
      kept().erase(found);
      return pages;
    }
    const VirtualMemory& driver = VirtualMemory::get();
    const CUmemAllocationProp of = properties();
    const CUmemAccessDesc access{of.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle memory;
    CUdeviceptr reserved;
    must(driver.create(&memory, bytes, &of, 0));
    must(driver.reserve(&reserved, bytes + 2 * page(), 0, 0, 0));
    must(driver.map(reserved + page(), bytes, 0, memory, 0));
    must(driver.release(memory));  // the mapping keeps it alive
    must(driver.set_access(reserved + page(), bytes, &access, 1));
    return {reserved + page(), bytes};
  }
  static void give_back(const Pages& pages) {
    if (pages.bytes <= most_kept) {
      kept().emplace(pages.bytes, pages.begin);
      return;
    }
    cudaDeviceSynchronize();
    VirtualMemory::get().unmap(pages.begin, pages.bytes);
    VirtualMemory::get().free(pages.begin - page(), pages.bytes + 2 * page());
  }

  Pages pages_;
  void* data_;
};

}  // namespace cudavision::test
