// SPDX-License-Identifier: LGPL-2.1-or-later
// The driver takes milliseconds to page-lock and to free memory, and every start and every change of caps makes new
// pools. So blocks are kept for each context and reused:
//
//   pool of an element ──free──▶ kept blocks of the context ──take──▶ pool of the same or another element
//                                      └── the oldest, beyond the limit ──▶ cudaFreeHost()
//
// Kept blocks hold no reference to their context. A weak reference frees them when the context is disposed of. At that
// time the CUDA context still exists and can be made current, whoever owns it. (Data attached to the GObject is
// destroyed too late: then the context no longer exists.)
#include <map>
#include <mutex>
#include <new>
#include <numeric>
#include <utility>
#include <vector>

#include "gst/base/cuda/current_context.hpp"
#include "gst/base/cuda/pinned.hpp"
#include "gst/base/log.hpp"

namespace cudavision {
namespace {

/// The maximum number of bytes that are kept for each context: 32 frames of 1080p RGBA, or 8 frames of 4K RGBA, as much
/// as the pools of a few elements hold. Other programs cannot use this memory, and it cannot be swapped out. The limit
/// was chosen without a measurement.
constexpr gsize most_kept = gsize(256) << 20;
/// Sizes are rounded up to a multiple of this, so that small frames of different sizes can share blocks and lists stay
/// short.
constexpr gsize granularity = gsize(64) << 10;

using Blocks = std::vector<PinnedBlock>;  // the oldest first

struct Kept {
  std::mutex mutex;
  std::map<GstCudaContext*, Blocks> of;
};

Kept& kept_blocks() {
  static auto* const all = new Kept;  // never deleted, because a process may end with running pipelines
  return *all;
}

/// Must be called with the context current.
void free_block(const PinnedBlock& block) {
  if (cudaFreeHost(block.data) != cudaSuccess) cudaGetLastError();  // the context is dead: there is nothing to report
}

void free_all(const Blocks& blocks) {
  for (const PinnedBlock& block : blocks) free_block(block);
}

/// Removes all kept blocks of a context from the list, and returns them.
Blocks remove_all(GstCudaContext* context) {
  const std::lock_guard lock(kept_blocks().mutex);
  const auto position = kept_blocks().of.find(context);
  return position == kept_blocks().of.end() ? Blocks() : std::exchange(position->second, {});
}

/// Called when the context is disposed of.
void forget(gpointer, GObject* object) {
  auto* context = reinterpret_cast<GstCudaContext*>(object);
  const Blocks blocks = remove_all(context);
  {
    const std::lock_guard lock(kept_blocks().mutex);
    kept_blocks().of.erase(context);
  }
  GST_DEBUG("frees %u page-locked blocks with their context", guint(blocks.size()));
  if (const CurrentContext current(context); current) free_all(blocks);
}

/// Takes the kept block that fits best, or the newest of equal ones. Returns whether there is one.
bool reuse(GstCudaContext* context, gsize bytes, PinnedBlock* block) {
  const std::lock_guard lock(kept_blocks().mutex);
  const auto position = kept_blocks().of.find(context);
  if (position == kept_blocks().of.end()) return false;
  Blocks& blocks = position->second;
  auto best = blocks.rend();
  for (auto one = blocks.rbegin(); one != blocks.rend(); ++one)
    if (one->bytes >= bytes && one->bytes - bytes <= bytes / 4 && (best == blocks.rend() || one->bytes < best->bytes))
      best = one;
  if (best == blocks.rend()) return false;
  *block = *best;
  blocks.erase(std::next(best).base());
  return true;
}

/// Returns false if the block is not kept.
bool keep_block(GstCudaContext* context, const PinnedBlock& block) {
  if (block.bytes > most_kept) return false;
  const std::lock_guard lock(kept_blocks().mutex);
  try {
    const auto [entry, is_new] = kept_blocks().of.try_emplace(context);
    if (is_new) g_object_weak_ref(G_OBJECT(context), forget, nullptr);
    entry->second.push_back(block);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

/// Removes the oldest kept block if the blocks exceed the limit. Returns whether it did.
bool remove_oldest_beyond_bound(GstCudaContext* context, PinnedBlock* oldest) {
  const std::lock_guard lock(kept_blocks().mutex);
  const auto position = kept_blocks().of.find(context);
  if (position == kept_blocks().of.end()) return false;
  Blocks& blocks = position->second;
  const auto add = [](gsize sum, const PinnedBlock& block) { return sum + block.bytes; };
  if (std::accumulate(blocks.begin(), blocks.end(), gsize(0), add) <= most_kept) return false;
  *oldest = blocks.front();
  blocks.erase(blocks.begin());
  return true;
}

}  // namespace

cudaError_t take_pinned_block(GstCudaContext* context, gsize bytes, PinnedBlock* block) {
  if (bytes > G_MAXSIZE - granularity) return cudaErrorMemoryAllocation;
  bytes = MAX((bytes + granularity - 1) / granularity, 1) * granularity;
  if (reuse(context, bytes, block)) return cudaSuccess;
  const CurrentContext current(context);
  if (!current) return cudaErrorDeviceUninitialized;
  block->bytes = bytes;
  cudaError_t error = cudaHostAlloc(&block->data, bytes, cudaHostAllocPortable);
  if (error == cudaErrorMemoryAllocation)
    if (const Blocks blocks = remove_all(context); !blocks.empty()) {  // they may occupy the missing memory
      free_all(blocks);
      error = cudaHostAlloc(&block->data, bytes, cudaHostAllocPortable);
    }
  cudaGetLastError();  // clears the error, which the next call would return
  return error;
}

void give_back_pinned_block(GstCudaContext* context, const PinnedBlock& block) {
  PinnedBlock dropped = block;
  if (keep_block(context, block) && !remove_oldest_beyond_bound(context, &dropped)) return;
  const CurrentContext current(context);
  do
    if (current) free_block(dropped);
  while (remove_oldest_beyond_bound(context, &dropped));
}

}  // namespace cudavision
