// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <gst/gst.h>

#include <deque>
#include <memory>
#include <mutex>
#include <vector>

struct FreeStructure {
  void operator()(GstStructure* structure) const { gst_structure_free(structure); }
};
struct FreeSample {
  void operator()(GstSample* sample) const { gst_sample_unref(sample); }
};
using Event = std::unique_ptr<GstStructure, FreeStructure>;
using Sample = std::unique_ptr<GstSample, FreeSample>;

/// Hands the events of cudadiff to the thread of the sink, in their order,
/// and each begin together with the frame in which motion begins.
///
///   any thread             add(event)    cudadiff posts it before its frame goes on; with attach-roi=false on a GPU up
///                          to nine frames after,
///                                        from a thread that looks at what the GPU has finished
///   the sink's thread      take(frame)   all events so far, except a begin whose frame comes later, and what follows
///                          that
///   after both have ended  rest()
///
/// Events and frames wait in here under one lock, and belong to the caller again when they come out.
class Moments {
 public:
  struct Moment {
    Event event;
    Sample frame;  ///< of a begin with a picture; nullptr for others, and if the frame never came
  };

  /// pictures: begins come with their frame; otherwise no frame is kept. late: events may come after their frame.
  Moments(bool pictures, bool late) : pictures_(pictures), kept_(late ? 9 : 0) {}

  void add(Event event);
  /// `frame` is the newest one.
  std::vector<Moment> take(GstSample* frame);
  /// All events that are left.
  std::vector<Moment> rest();

 private:
  bool is_pictured(const GstStructure* event) const;
  Sample frame_of(const GstStructure* event) const;

  const bool pictures_;
  const std::size_t kept_;  ///< frames that are kept beside the newest one
  std::mutex mutex_;
  std::deque<Event> events_;
  std::deque<Sample> frames_;  ///< the newest one last
};
