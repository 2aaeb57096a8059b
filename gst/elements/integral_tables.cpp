// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gst/elements/integral_tables.hpp"

#include <algorithm>
#include <deque>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "gst/base/cuda/gpu.hpp"
#include "gst/base/owned.hpp"
#include "gst/meta/integral_meta.h"

namespace cudavision {
namespace {

GstCudaVisionEntryType entry_type(integral::SumType type) {
  return GstCudaVisionEntryType(int(type) - int(integral::SumType::u32));
}

const char* channel_name(Role role, integral::TableChannel channel) {
  constexpr const char* names[] = {"Y", "Cb", "Cr", "R", "G", "B", "A"};  // in the order of Role
  return channel == integral::TableChannel::luma ? "luma" : names[int(role)];
}

gsize bytes_of(const integral::TableInfo& table) { return gsize(table.width) * table.height * table.entry_bytes(); }

/// A memory that is mapped so that the backend can write it.
class Block {
 public:
  /// Takes `memory`; nullptr stays unmapped. `gpu`: the device of the memory, or nullptr for system memory.
  Block(GstMemory* memory, const Gpu* gpu) : memory_(memory), gpu_(gpu) {
    mapped_ =
        memory_ && gst_memory_map(memory, &map_, GstMapFlags(GST_MAP_WRITE | (gpu ? Gpu::map_flag() : GstMapFlags(0))));
  }
  Block(Block&&) = default;
  ~Block() { unmap(); }

  guint8* data() const { return mapped_ ? map_.data : nullptr; }
  GstMemory* memory() const { return memory_.get(); }
  /// Call this when the backend has finished writing.
  void unmap() {
    if (!memory_ || !std::exchange(mapped_, false)) return;  // without a memory: this object was moved from
    gst_memory_unmap(memory_.get(), &map_);
    if (gpu_) gpu_->release(memory_.get());
  }

 private:
  Owned<GstMemory> memory_;
  const Gpu* gpu_;
  GstMapInfo map_;
  bool mapped_;
};

/// (transfer full) System memory; nullptr if there is not enough. (GStreamer's own allocator would abort.)
GstMemory* new_system_memory(gsize bytes) {
  gpointer data = g_try_malloc(bytes);
  return data ? gst_memory_new_wrapped(GstMemoryFlags(0), data, bytes, 0, bytes, data, g_free) : nullptr;
}

Status no_memory(gsize bytes) {
  return Status::resource("there is no memory for a summed-area table of " + std::to_string(bytes) + " bytes");
}

/// Memories of one size for results that are pushed with buffers. Allocating a large memory takes a long time, so a
/// memory is reused when nobody else holds it. For one thread. Memories may outlive this object.
class Recycler {
 public:
  /// `allocate` returns (transfer full) a new memory, or nullptr.
  explicit Recycler(std::function<GstMemory*()> allocate) : allocate_(std::move(allocate)) {}

  /// (transfer full) A memory that nobody else holds; nullptr if none can be allocated.
  GstMemory* take() {
    constexpr int most_spare = 2;  // more are freed, for example after a downstream element returned many
    GstMemory* unused = nullptr;
    int spare = 0;
    memories_.erase(std::remove_if(memories_.begin(), memories_.end(),
                                   [&](const Owned<GstMemory>& memory) {
                                     // Only this list refers to a memory with one reference, so no other thread can add
                                     // a reference.
                                     if (GST_MINI_OBJECT_REFCOUNT_VALUE(memory.get()) > 1) return false;
                                     if (!unused) {
                                       unused = memory.get();
                                       return false;
                                     }
                                     return ++spare > most_spare;
                                   }),
                    memories_.end());
    if (!unused && (unused = allocate_())) memories_.push_back(owned(unused));
    return unused ? gst_memory_ref(unused) : nullptr;
  }

 private:
  std::function<GstMemory*()> allocate_;
  std::vector<Owned<GstMemory>> memories_;
};

/// The data of frames that were submitted but not yet reported.
template <typename T>
class ByFrame {
 public:
  void add(std::uint64_t number, T value) { frames_.emplace_back(number, std::move(value)); }
  /// Takes the data of a frame, and drops the data of earlier frames, which failed.
  T take(std::uint64_t number) {
    while (frames_.front().first < number) frames_.pop_front();
    T value = std::move(frames_.front().second);
    frames_.pop_front();
    return value;
  }

 private:
  std::deque<std::pair<std::uint64_t, T>> frames_;
};

class TableMeta : public Processor {
 public:
  TableMeta(std::unique_ptr<integral::Integral> integral, const integral::Params& params, const Gpu* gpu)
      : integral_(std::move(integral)), params_(params), gpu_(gpu) {
    for (const integral::TableInfo& table : integral_->tables())
      recyclers_.emplace_back(
          [bytes = bytes_of(table), gpu] { return gpu ? gpu->new_linear_memory(bytes) : new_system_memory(bytes); });
  }

  bool passes_through() const override { return true; }
  bool adds_metas() const override { return true; }
  int results_kept() const override { return results_in_flight; }

  Status submit(const FrameJob& job) override {
    std::vector<Block> blocks;
    std::vector<Plane> planes;
    for (std::size_t i = 0; i < recyclers_.size(); ++i) {
      const integral::TableInfo& table = integral_->tables()[i];
      blocks.emplace_back(recyclers_[i].take(), gpu_);
      planes.push_back({blocks[i].data(), std::ptrdiff_t(table.width) * table.entry_bytes()});
      if (!planes[i].data) return no_memory(bytes_of(table));
    }
    const Status status = integral_->submit(job.src, planes, job.queue);
    blocks_.add(job.number, std::move(blocks));
    return status;
  }

  void finished(const FrameReport& report) override {
    std::vector<Block> blocks = blocks_.take(report.number);
    std::vector<GstCudaVisionIntegralTable> tables;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      const integral::TableInfo& table = integral_->tables()[i];
      blocks[i].unmap();
      tables.push_back({channel_name(table.role, params_.channel),
                        table.squared,
                        entry_type(table.type),
                        guint(table.width),
                        guint(table.height),
                        blocks[i].memory(),
                        {}});
    }
    gst_buffer_add_cuda_vision_integral_meta(report.buffer, GstCudaVisionTableLayout(params_.layout),
                                             guint(tables.size()), tables.data());
  }

 private:
  const std::unique_ptr<integral::Integral> integral_;
  const integral::Params params_;
  const Gpu* const gpu_;                // nullptr for the CPU backend
  std::vector<Recycler> recyclers_;     // one for each table
  ByFrame<std::vector<Block>> blocks_;  // the tables
};

class TableData : public Processor {
 public:
  TableData(std::unique_ptr<integral::Integral> integral, const Gpu* gpu, bool on_device)
      : integral_(std::move(integral)),
        gpu_(gpu),
        on_device_(on_device),
        bytes_(integral_->tables().size() * bytes_of(integral_->tables()[0])),
        outputs_(allocation(on_device)),
        scratches_(allocation(true)) {}

  int results_kept() const override { return results_in_flight; }

  Result<GstBuffer*> new_output() override {
    next_.emplace(outputs_.take(), on_device_ ? gpu_ : nullptr);
    if (!next_->data()) return no_memory(bytes_);
    GstBuffer* buffer = gst_buffer_new();
    gst_buffer_append_memory(buffer, gst_memory_ref(next_->memory()));
    return buffer;
  }

  Status submit(const FrameJob& job) override {
    const bool downloads = gpu_ && !on_device_;
    Blocks blocks{std::move(*next_), Block(downloads ? scratches_.take() : nullptr, gpu_)};
    next_.reset();
    guint8 *const output = blocks.output.data(), *const begin = downloads ? blocks.scratch.data() : output;
    if (!begin) return no_memory(bytes_);
    std::vector<Plane> planes;
    const std::vector<integral::TableInfo>& tables = integral_->tables();
    for (const integral::TableInfo& table : tables) {
      const auto before = std::count_if(tables.begin(), tables.end(),
                                        [&](const integral::TableInfo& other) { return other.role < table.role; });
      planes.push_back({begin + gsize(before) * bytes_of(table), std::ptrdiff_t(table.width) * table.entry_bytes()});
    }
    const Status status = integral_->submit(job.src, planes, job.queue);
    blocks_.add(job.number, std::move(blocks));
    return status.ok() && downloads ? gpu_->download(begin, output, bytes_) : status;
  }

  void finished(const FrameReport& report) override { (void)blocks_.take(report.number); }

 private:
  std::function<GstMemory*()> allocation(bool on_device) const {
    if (!gpu_) return [bytes = bytes_] { return new_system_memory(bytes); };
    if (on_device) return [bytes = bytes_, gpu = gpu_] { return gpu->new_linear_memory(bytes); };
    const std::shared_ptr<GstAllocator> pinned(gpu_->new_pinned_allocator(), gst_object_unref);
    return [bytes = bytes_, pinned] { return gst_allocator_alloc(pinned.get(), bytes, nullptr); };
  }

  const std::unique_ptr<integral::Integral> integral_;
  const Gpu* const gpu_;
  const bool on_device_;
  const gsize bytes_;  // size of all tables together
  Recycler outputs_, scratches_;
  struct Blocks {
    Block output, scratch;  // the kernels write to scratch if the output is in system memory
  };
  std::optional<Block> next_;  // the output for the next frame
  ByFrame<Blocks> blocks_;
};

}  // namespace

std::unique_ptr<Processor> new_table_meta(std::unique_ptr<integral::Integral> integral, const integral::Params& params,
                                          const Gpu* gpu) {
  return std::make_unique<TableMeta>(std::move(integral), params, gpu);
}

std::unique_ptr<Processor> new_table_data(std::unique_ptr<integral::Integral> integral, const Gpu* gpu,
                                          bool on_device) {
  return std::make_unique<TableData>(std::move(integral), gpu, on_device);
}

}  // namespace cudavision
