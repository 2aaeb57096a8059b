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

/// Passes the events of cudadiff to the thread of the sink in order, and each begin together with the frame in which
/// motion begins, if requested also each `motion` with its frame.
///
///   any thread             add(event)    cudadiff posts it before its frame; with attach-roi=false on a GPU up to nine
///                                        frames later, from a thread that checks what the GPU has finished
///   the sink's thread      take(frame)   all events so far, up to the first one whose frame has not arrived
///   after both have ended  rest()
///
/// Events and frames wait here under one lock. The caller owns the events and frames that it gets back.
class Moments {
 public:
  struct Moment {
    Event event;
    Sample frame;        ///< of an event with a picture; nullptr for others, and if the frame never came
    guint64 number = 0;  ///< of the newest frame when `frame` was found; the first one is 0
  };

  enum class Pictures { none, of_begins, of_motion };

  /// pictures: the events that come with their frame: none, begins, or also each `motion`. late: events may follow
  /// their frame.
  Moments(Pictures pictures, bool late) : pictures_(pictures), kept_(late ? 9 : 0) {}

  void add(Event event);
  /// `frame` is the newest one.
  std::vector<Moment> take(GstSample* frame);
  /// All remaining events.
  std::vector<Moment> rest();

 private:
  bool is_pictured(const GstStructure* event) const;
  Sample frame_of(const GstStructure* event) const;

  const Pictures pictures_;
  const std::size_t kept_;  ///< frames that are kept besides the newest one
  std::mutex mutex_;
  std::deque<Event> events_;
  std::deque<Sample> frames_;  ///< the newest one last
  guint64 count_ = 0;          ///< frames so far
};
