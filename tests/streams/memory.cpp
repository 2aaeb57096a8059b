// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tests/streams/memory.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace cudavision::streams {
namespace {

struct Pages {
  void* address;
  std::size_t size;
};

void free_pages(gpointer data) {
  auto* pages = static_cast<Pages*>(data);
  munmap(pages->address, pages->size);
  delete pages;
}

}  // namespace

GstMemory* new_fenced_memory(const void* bytes, std::size_t size, Fence fence, bool read_only) {
  const GstMemoryFlags flags = read_only ? GST_MEMORY_FLAG_READONLY : GstMemoryFlags(0);
  if (fence == Fence::heap) {
    void* block = std::malloc(size ? size : 1);
    std::memcpy(block, bytes, size);
    return gst_memory_new_wrapped(flags, block, size, 0, size, block, std::free);
  }
  const std::size_t page = std::size_t(sysconf(_SC_PAGESIZE)), used = (size + page - 1) / page * page;
  void* address = mmap(nullptr, used + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED) return new_fenced_memory(bytes, size, Fence::heap, read_only);
  auto* begin = static_cast<guint8*>(address) + (used - size);
  std::memcpy(begin, bytes, size);
  mprotect(static_cast<guint8*>(address) + used, page, PROT_NONE);
  if (read_only) mprotect(address, used, PROT_READ);
  return gst_memory_new_wrapped(flags, begin, size, 0, size, new Pages{address, used + page}, free_pages);
}

}  // namespace cudavision::streams
