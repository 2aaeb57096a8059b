// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <gst/gst.h>

#include <functional>
#include <memory>
#include <vector>

#include "kernels/core/filter.hpp"

namespace cudavision {

/// When a frame is shown, in ns; GST_CLOCK_TIME_NONE where not known.
struct FrameTimes {
  GstClockTime timestamp = GST_CLOCK_TIME_NONE, stream_time = GST_CLOCK_TIME_NONE, running_time = GST_CLOCK_TIME_NONE,
               duration = GST_CLOCK_TIME_NONE;
};

/// One frame to work on, in the memory of the backend.
struct FrameJob {
  const Image& src;
  const Image* dst;  ///< nullptr where the processor passes frames through, or makes other data of them
  const Region& region;
  Queue queue;
  std::function<Status()> wait;  ///< waits until the queue has done all that was submitted so far
};

/// A frame that is done, just before it goes out.
struct FrameReport {
  GstElement* element;  ///< to post messages
  GstBuffer* buffer;    ///< what goes out: to be read; its metas may be written where adds_metas()
  const FrameTimes& times;
};

/// What ends the run of frames that belong together.
enum class Interruption {
  discont,  ///< the next frame does not follow the last
  flush,    ///< frames were thrown away
  caps,     ///< the next frame is of another format or size
  eos,      ///< there is no next frame
};

/// What an element does with each frame of one geometry. All calls come from the streaming thread, with the CUDA context current.
class Processor {
 public:
  virtual ~Processor() = default;

  /// Whether frames go out as they came in, and are only read.
  virtual bool passes_through() const { return false; }
  /// Whether finished() adds metas to the buffer.
  virtual bool adds_metas() const { return false; }

  /// (transfer full) Where other data than video goes out: the buffer for that of the next frame, which submit() fills. Errors: resource.
  virtual Result<GstBuffer*> new_output() { return nullptr; }

  /// Reads job.src and writes every sample of job.dst. Need not wait on CUDA. Errors: resource.
  virtual Status submit(const FrameJob& job) = 0;
  /// After each submit, once all it submitted is done.
  virtual void finished(const FrameReport&) {}
  /// No state of earlier frames may be carried over to later ones. What was gathered so far may be posted.
  virtual void interrupted(Interruption, GstElement*) {}
};

/// A filter of single frames as a processor.
std::unique_ptr<Processor> filter_processor(std::unique_ptr<Filter> filter);

/// (transfer full) The structure of an element message, with the times as guint64: timestamp, stream-time, running-time, duration.
GstStructure* new_message(const char* name, const FrameTimes& times);
/// Sets a field of a message to a GstValueArray of structures. (transfer full) for each of them.
void take_structures(GstStructure* message, const char* field, const std::vector<GstStructure*>& structures);
/// Posts an element message. (transfer full) for `structure`.
void post_message(GstElement* element, GstStructure* structure);

}  // namespace cudavision
