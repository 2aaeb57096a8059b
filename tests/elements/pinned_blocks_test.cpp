// SPDX-License-Identifier: LGPL-2.1-or-later
// Tests page-locked memory and the blocks of it that are kept, without a GPU. This file replaces the CUDA functions
// that they call.

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "gst/base/cuda/pinned.hpp"
#include "gst/base/log.hpp"
#include "tests/elements/expect.hpp"

GST_DEBUG_CATEGORY(cudavision_debug);

namespace {

constexpr gsize mib = gsize(1) << 20;

using cudavision::test::expect;
std::mutex mutex;

struct Locked {
  GstCudaContext* context;
  gsize bytes;
};
std::map<void*, Locked> locked;  // all page-locked memory
gsize most_bytes = G_MAXSIZE;    // the limit of page-locked memory
int allocations = 0;

thread_local std::vector<GstCudaContext*> current;

gsize locked_bytes() {
  const std::lock_guard lock(mutex);
  gsize bytes = 0;
  for (const auto& [data, block] : locked) bytes += block.bytes;
  return bytes;
}

}  // namespace

extern "C" {
cudaError_t cudaHostAlloc(void** data, size_t bytes, unsigned) {
  expect(!current.empty(), "memory is allocated with a context current");
  gsize all = locked_bytes();
  const std::lock_guard lock(mutex);
  if (all + bytes > most_bytes) return cudaErrorMemoryAllocation;
  *data = std::malloc(32);  // the tests write no more
  locked[*data] = {current.back(), bytes};
  ++allocations;
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void* data) {
  expect(!current.empty(), "memory is freed with a context current");
  const std::lock_guard lock(mutex);
  const auto found = locked.find(data);
  if (found == locked.end() || current.empty() || found->second.context != current.back()) {
    expect(false, "memory is freed once, in its context");
    return cudaErrorInvalidValue;
  }
  locked.erase(found);
  std::free(data);
  return cudaSuccess;
}
cudaError_t cudaGetLastError() { return cudaSuccess; }
const char* cudaGetErrorString(cudaError_t) { return "of the test"; }
gboolean gst_cuda_context_push(GstCudaContext* context) {
  expect(G_IS_OBJECT(context), "a context that is made current exists");
  current.push_back(context);
  return TRUE;
}
gboolean gst_cuda_context_pop(CUcontext*) {
  current.pop_back();
  return TRUE;
}
}

namespace {

using namespace cudavision;

GstCudaContext* new_context() {
  return static_cast<GstCudaContext*>(static_cast<gpointer>(gst_object_ref_sink(gst_bin_new(nullptr))));
}

/// A context of which this object must hold the last reference.
struct Context {
  GstCudaContext* const context = new_context();
  Context() = default;
  ~Context() {
    expect(GST_OBJECT_REFCOUNT_VALUE(context) == 1, "kept blocks hold no reference to their context");
    gst_object_unref(context);
  }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  operator GstCudaContext*() const { return context; }
};

PinnedBlock take(GstCudaContext* context, gsize bytes) {
  PinnedBlock block;
  expect(take_pinned_block(context, bytes, &block) == cudaSuccess && block.bytes >= bytes, "a block is taken");
  return block;
}

bool is_new(GstCudaContext* context, gsize bytes) {
  const int before = allocations;
  const PinnedBlock block = take(context, bytes);
  const bool is_new = allocations > before;
  give_back_pinned_block(context, block);
  return is_new;
}

void uses_blocks_again() {
  const Context context;
  const PinnedBlock first = take(context, 10 * mib), second = take(context, 10 * mib);
  expect(first.data != second.data, "a block is used once at a time");
  give_back_pinned_block(context, first);
  give_back_pinned_block(context, second);
  expect(locked_bytes() == 20 * mib, "blocks stay locked");
  expect(take(context, 10 * mib).data == second.data, "the newest block comes first");
  give_back_pinned_block(context, second);
  expect(!is_new(context, 8 * mib), "a block may be a quarter too large");
  expect(is_new(context, 7 * mib), "a block is at most a quarter too large");
  expect(is_new(context, 10 * mib + 1), "a block is not too small");
  give_back_pinned_block(context, take(context, 11 * mib));
  const PinnedBlock best = take(context, 9 * mib);
  expect(best.bytes == 10 * mib, "the block that fits best is taken");
  give_back_pinned_block(context, best);
  expect(!is_new(context, 10 * mib), "a block is found behind one that does not fit");
  give_back_pinned_block(context, take(context, 0));
  expect(!is_new(context, 1), "the smallest blocks are used again");
  PinnedBlock block;
  expect(take_pinned_block(context, G_MAXSIZE, &block) == cudaErrorMemoryAllocation, "sizes do not wrap around");
}

void keeps_a_bounded_number_of_bytes() {
  const Context context;
  std::vector<PinnedBlock> blocks;
  for (int i = 0; i < 6; ++i) blocks.push_back(take(context, 60 * mib));
  for (const PinnedBlock& block : blocks) give_back_pinned_block(context, block);
  expect(locked_bytes() == 240 * mib, "at most 256 MiB are kept");
  expect(!locked.count(blocks[0].data) && !locked.count(blocks[1].data) && locked.count(blocks[2].data),
         "the oldest blocks are freed");
  give_back_pinned_block(context, take(context, 300 * mib));
  expect(locked_bytes() == 240 * mib, "a block larger than that is freed itself");
  give_back_pinned_block(context, take(context, 200 * mib));
  expect(locked_bytes() == 200 * mib, "several old blocks are freed for a large one");
}

void frees_kept_blocks_if_memory_is_short() {
  const Context context;
  give_back_pinned_block(context, take(context, 100 * mib));
  most_bytes = 150 * mib;
  const PinnedBlock large = take(context, 140 * mib);
  expect(locked_bytes() == 140 * mib, "kept blocks make way");
  PinnedBlock block;
  expect(take_pinned_block(context, 100 * mib, &block) == cudaErrorMemoryAllocation,
         "an error is returned if that is not enough");
  most_bytes = G_MAXSIZE;
  give_back_pinned_block(context, large);
}

void keeps_contexts_apart() {
  const Context one;
  {
    const Context other;
    give_back_pinned_block(one, take(one, 10 * mib));
    expect(is_new(other, 10 * mib), "a block belongs to its context");
    give_back_pinned_block(one, take(one, 200 * mib));
    give_back_pinned_block(other, take(other, 200 * mib));
    expect(locked_bytes() == 420 * mib, "each context has its own bound");
  }
  expect(locked_bytes() == 210 * mib, "blocks are freed with their context");
  expect(!is_new(one, 10 * mib), "blocks of other contexts stay");
}

/// After g_object_run_dispose(), an application can still use the context.
void works_after_the_context_was_disposed_of() {
  const Context context;
  const PinnedBlock used = take(context, mib);
  give_back_pinned_block(context, take(context, 2 * mib));
  g_object_run_dispose(G_OBJECT(context.context));
  expect(locked_bytes() == mib, "kept blocks are freed");
  give_back_pinned_block(context, used);
  expect(!is_new(context, mib), "later blocks are kept again");
}

void allocates_memory() {
  const Context context;
  g_autoptr(GstAllocator) allocator = pinned_allocator_new(context);
  GstAllocationParams params;
  gst_allocation_params_init(&params);
  void* first = nullptr;
  for (int i = 0; i < 3; ++i) {
    GstMemory* memory = gst_allocator_alloc(allocator, 20, &params);
    expect(gst_memory_is_type(memory, "GstCudaVisionPinnedMemory"), "memory is page-locked");
    GstMapInfo map;
    expect(gst_memory_map(memory, &map, GST_MAP_WRITE) && map.size == 20 && map.maxsize == 20,
           "memory has the wanted size");
    expect(!first || map.data == first, "memory is used again");
    first = map.data;
    std::memset(map.data, i, map.size);
    gst_memory_unmap(memory, &map);
    GstMemory* part = gst_memory_share(memory, 5, 10);
    gst_memory_unref(memory);
    expect(part && part->size == 10, "memory can be shared");
    gst_memory_unref(part);
  }
  most_bytes = 0;
  GstMemory* memory = gst_allocator_alloc(allocator, 10 * mib, &params);
  expect(memory && !gst_memory_is_type(memory, "GstCudaVisionPinnedMemory"),
         "memory is pageable if none can be locked");
  gst_memory_unref(memory);
  most_bytes = G_MAXSIZE;
}

void works_in_many_threads() {
  for (int round = 0; round < 20; ++round) {
    GstCudaContext* contexts[] = {new_context(), new_context()};
    std::vector<std::thread> threads;
    for (unsigned seed = 0; seed < 6; ++seed)
      threads.emplace_back([seed, context = GST_CUDA_CONTEXT(gst_object_ref(contexts[seed % 2]))] {
        std::mt19937 random(seed);
        std::vector<PinnedBlock> mine;
        for (int i = 0; i < 300; ++i) {
          if (random() % 2) {
            mine.push_back(take(context, random() % 8 * 10 * mib));
            std::memcpy(mine.back().data, &seed, sizeof seed);
          } else if (!mine.empty()) {
            expect(std::memcmp(mine.back().data, &seed, sizeof seed) == 0, "nobody else uses a block that was taken");
            give_back_pinned_block(context, mine.back());
            mine.pop_back();
          }
        }
        for (const PinnedBlock& block : mine) give_back_pinned_block(context, block);
        gst_object_unref(context);
      });
    for (GstCudaContext* context : contexts) gst_object_unref(context);  // the last thread disposes of them
    for (std::thread& thread : threads) thread.join();
  }
}

}  // namespace

int main() {
  gst_init(nullptr, nullptr);
  GST_DEBUG_CATEGORY_INIT(cudavision_debug, "cudavision", 0, "");
  for (const auto test :
       {uses_blocks_again, keeps_a_bounded_number_of_bytes, frees_kept_blocks_if_memory_is_short, keeps_contexts_apart,
        works_after_the_context_was_disposed_of, allocates_memory, works_in_many_threads}) {
    test();
    expect(locked.empty(), "nothing is left");
  }
  return cudavision::test::exit_status();
}
