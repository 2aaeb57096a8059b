// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <gst/gst.h>

#include <cstdint>
#include <functional>
#include <memory>

#include "kernels/core/filter.hpp"

namespace cudavision {

/// The times of a frame, in ns; GST_CLOCK_TIME_NONE if unknown.
struct FrameTimes {
  GstClockTime timestamp = GST_CLOCK_TIME_NONE, stream_time = GST_CLOCK_TIME_NONE, running_time = GST_CLOCK_TIME_NONE,
               duration = GST_CLOCK_TIME_NONE;
};

/// One frame to process, in the memory of the backend.
struct FrameJob {
  const Image& src;
  const Image* dst;  ///< nullptr if the processor passes frames through or makes other data from them
  const Region& region;
  Queue queue;
  std::uint64_t number;  ///< number of the frame, counted from 1
  const FrameTimes& times;
  std::function<Status()> wait;  ///< waits until all work submitted so far is done
};

/// A processed frame.
struct FrameReport {
  GstElement* element;  ///< for posting messages
  /// If adds_metas(): the output, just before the element pushes it, to which metas can be added; otherwise nullptr.
  GstBuffer* buffer;
  std::uint64_t number;  ///< as in the FrameJob
  const FrameTimes& times;
};

/// The largest value of the property async-depth.
inline constexpr guint max_async_depth = 8;
/// The number of frames whose results a processor keeps, if later frames may be submitted before finished() is called.
inline constexpr int results_in_flight = int(max_async_depth) + 1;

/// Why a run of consecutive frames ends.
enum class Interruption {
  discont,  ///< the next frame does not follow the last one: frames are missing
  flush,    ///< frames were discarded
  caps,     ///< the next frame has another format or size, or is in another CUDA context
  eos,      ///< there is no next frame
};

/// Processes the frames of one geometry. Used by one thread at a time, with the CUDA context current.
class Processor {
 public:
  virtual ~Processor() = default;

  /// Whether frames are only read, and are pushed unchanged.
  virtual bool passes_through() const { return false; }
  /// Whether finished() adds metas to the buffer.
  virtual bool adds_metas() const { return false; }
  /// Whether finished() needs results of the GPU. If not, it is called as soon as the work is submitted.
  virtual bool reads_results() const { return true; }
  /// The number of frames whose results are kept. If it is more than 1, finished() is called at most this many submit()
  /// calls later, and frames that get no metas are pushed earlier.
  virtual int results_kept() const { return 1; }

  /// (transfer full) If data other than video is sent: the buffer for the next frame, which submit() fills. Errors:
  /// resource.
  virtual Result<GstBuffer*> new_output() { return nullptr; }

  /// Reads job.src and writes every sample of job.dst. On CUDA, may return before the work is done. Errors: resource.
  virtual Status submit(const FrameJob& job) = 0;
  /// Called once for each submit(), in order, when its work is done (see reads_results() and results_kept()).
  virtual void finished(const FrameReport&) {}
  /// Called after a GAP event from upstream, which says that no frame will arrive before this running time. All earlier
  /// frames are finished.
  virtual void passed(GstClockTime, GstElement*) {}
  /// Ends a run of frames. The state from earlier frames must not affect later ones, except after
  /// Interruption::discont. May post the results so far.
  virtual void interrupted(Interruption, GstElement*) {}
};

/// A processor that runs a filter on each frame.
std::unique_ptr<Processor> filter_processor(std::unique_ptr<Filter> filter);

/// (transfer full) The structure of an element message, with the times as guint64: timestamp, stream-time,
/// running-time, duration.
GstStructure* new_message(const char* name, const FrameTimes& times);
/// Sets a field of a message to a GstValueArray of `type`. set(value, item) sets the value of each item.
template <typename Items, typename Set>
void set_array(GstStructure* message, const char* field, GType type, const Items& items, Set&& set) {
  GValue array = G_VALUE_INIT;
  gst_value_array_init(&array, guint(items.size()));
  for (const auto& item : items) {
    GValue value = G_VALUE_INIT;
    g_value_init(&value, type);
    set(&value, item);
    gst_value_array_append_and_take_value(&array, &value);
  }
  gst_structure_take_value(message, field, &array);
}
/// Posts an element message. `structure` is taken.
void post_message(GstElement* element, GstStructure* structure);

}  // namespace cudavision
