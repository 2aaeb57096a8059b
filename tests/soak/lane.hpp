// SPDX-License-Identifier: LGPL-2.1-or-later
// One pipeline, and the thread that disturbs it.
#pragma once

#include <gst/video/video.h>

#include <atomic>
#include <istream>
#include <memory>
#include <string>
#include <vector>

#include "tests/soak/report.hpp"
#include "tests/soak/states.hpp"
#include "tests/streams/random.hpp"

namespace cudavision::soak {

struct Options {
  std::string backend = "cuda";
  double patience = 10;  ///< seconds of fair_time() without a frame after which a pipeline counts as hanging
  bool twin = false;     ///< GStreamer's elements replace this plugin's
  std::string fault;     ///< after the third action with this name, a frame counts as wrong
  std::shared_ptr<Journal> journal;
  int number = 0;  ///< of the pipeline
};

class Lane;

/// Receives everything that arrives at a sink of a pipeline.
class Arrivals {
 public:
  virtual ~Arrivals() = default;
  virtual void arrive(GstBuffer* frame, const GstVideoInfo& video, GstClockTime running_time) = 0;
  virtual void arrive(GstEventType event) = 0;

 private:
  friend class Lane;
  Lane* lane_ = nullptr;
  GstSegment segment_{};
};

class Lane {
 public:
  Lane(const std::string& name, std::uint64_t seed, const Options& options);
  virtual ~Lane();
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  Report& report() { return report_; }
  /// The state of each element on a separate line, for a message. May be called in any thread.
  std::string states() const { return states_of(pipeline()); }
  /// How many times GStreamer left the sink of a playing pipeline in PAUSED, so that the state had to be set again
  /// (UPSTREAM.md).
  int times_freed() const { return times_freed_; }
  /// How many times a capsfilter warned because a flush prevented it from getting new caps (UPSTREAM.md).
  int late_caps() const { return late_caps_; }
  /// Plays and disturbs the pipeline until `stop` becomes true or this many actions are done, and stops it.
  void run(const std::atomic<bool>& stop, long actions);
  void replay(const std::atomic<bool>& stop, const std::vector<Step>& steps);

 protected:
  /// Draws an action that only this kind of pipeline has: its name, and its parameters as numbers.
  virtual std::string choose() = 0;
  /// Performs it on the playing pipeline.
  virtual void perform(const std::string& name, std::istream& numbers) = 0;
  /// The next number of an action. Throws std::runtime_error if it is not below `limit`.
  static std::uint64_t next(std::istream& numbers, std::uint64_t limit = G_MAXINT64);
  std::string number_below(std::uint64_t limit) { return " " + std::to_string(random_.below(int(limit))); }
  /// Forgets the frames in flight. No thread streams at this time.
  virtual void forget() = 0;
  /// Sends a flushing seek to this frame.
  virtual void seek(guint64 n) = 0;
  virtual guint64 length() const = 0;

  GstElement* pipeline() const { return pipeline_.get(); }
  void launch(const std::string& text);
  /// An element of the pipeline, which keeps it.
  GstElement* find(const std::string& name) const;
  static void add_probe(GstElement* element, const char* pad, GstPadProbeCallback probe, gpointer data);
  /// Reports everything that arrives at the sink.
  void watch(GstElement* sink, Arrivals& arrivals);
  /// Stops and frees the pipeline. Destructors call it, because the pipeline uses the members of derived classes.
  void disown() { pipeline_.reset(); }
  bool on_cuda() const { return options_.backend == "cuda"; }
  /// Sets the element's async-depth, if it has one, to the next number.
  void turn(GstElement* element, std::istream& numbers);
  /// Adds a capsfilter that switches between kinds of memory. `fields`: the fields of its caps without the memory,
  /// beginning with a comma.
  void add_memory_filter(GstElement* filter, const std::string& fields = "");
  void ended() { ended_ = true; }
  /// Notes that a flush may have interrupted the change of state that another flush began. The next settle() reads it.
  void flushed_twice() { flushed_twice_ = true; }
  /// For a flush, or while the pipeline stops: new caps may meet pads that are already flushing, and basetransform and
  /// basesrc report that as "not negotiated". Messages during this time are not failures.
  class Interruption {
   public:
    explicit Interruption(Lane& lane) : lane_(lane) { lane_.interrupted_ = true; }
    ~Interruption() { lane_.interrupted_ = false; }
    Interruption(const Interruption&) = delete;
    Interruption& operator=(const Interruption&) = delete;

   private:
    Lane& lane_;
  };

  const Options options_;
  streams::Random random_;
  Report report_;

 private:
  static GstPadProbeReturn came(GstPad*, GstPadProbeInfo*, gpointer);
  static GstBusSyncReply message(GstBus*, GstMessage*, gpointer);
  std::string choose_any();
  void step(const std::string& action);
  void perform_any(const std::string& name, std::istream& numbers);
  void await(const Step& step, long frames) const;
  void end();
  void change_memory(std::size_t filter, bool cuda);
  void pause_and_play(std::istream& numbers);
  void stop_and_play(GstState state);
  void reach(GstState state);
  /// Waits for the end of a change of state, and checks that the pipeline and each of its elements are in this state. A
  /// flush begins a change, which ends in a thread of the pipeline. Another flush during this time can leave the sink
  /// in PAUSED while the pipeline reports PLAYING. Then this function sets the state again, as an application would. It
  /// does the same after an error.
  void settle(GstState state);
  void fail_state(GstState state, const char* what);

  struct Stop {
    void operator()(GstElement* pipeline) const {
      gst_element_set_state(pipeline, GST_STATE_NULL);
      gst_object_unref(pipeline);
    }
  };
  std::unique_ptr<GstElement, Stop> pipeline_;
  std::vector<std::pair<GstElement*, std::string>> memory_filters_;  // and the fields of their caps
  std::atomic<bool> ended_{false}, interrupted_{false};
  std::atomic<bool> erred_{false};  // an element posted an error during an interruption
  bool flushed_twice_ = false;
  int faulty_ = 0;  // number of actions with the name of the fault
  std::atomic<int> times_freed_{0}, late_caps_{0};
};

/// Shape number `index` of the pipelines of filters.
std::unique_ptr<Lane> new_filter_lane(int index, std::uint64_t seed, const Options& options);
std::unique_ptr<Lane> new_mixer_lane(std::uint64_t seed, const Options& options);

}  // namespace cudavision::soak
