// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <gst/app/app.h>
#include <gst/gst.h>

#include <atomic>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "losses.hpp"
#include "moments.hpp"
#include "part.hpp"
#include "shortest.hpp"
#include "web_pictures.hpp"

struct Settings {
  std::vector<std::pair<std::string, std::string>> properties;  ///< of cudadiff: names, and texts of values
  std::string snapshots;                                        ///< the folder for snapshots; empty: none are saved
  bool progress = false;                                        ///< also print events between begin and end, and save
                                                                ///< snapshots of motion
  bool realtime = false;                                        ///< read files at playback speed
  Part part;                                                    ///< the part of each clip that is analysed
  std::optional<Time> shortest;                                 ///< the shortest motion or visit to print
  bool several = false;                                         ///< there is more than one input
};

/// Sets a property from text. Returns false and sets nothing if there is no such property or the text is not a value in
/// its range.
bool set_property(GstElement* element, const std::string& name, const std::string& value);

/// Watches one stream for motion, in its own pipeline. Prints events to stdout and errors to stderr.
class Input {
 public:
  /// location: a file, a URI, a camera (/dev/video0), `test` (an endless live picture) or `test:FRAMES` (a clip). name:
  /// the displayed location. label: the start of the snapshots' file names. Both differ for each input. ended: called
  /// once in the main loop when the stream has ended or failed. It must not destroy the input.
  Input(std::string location, std::string name, std::string label, const Settings& settings,
        std::function<void()> ended);
  ~Input();
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;

  void start();
  /// Ends the stream as if there were no next frame: the last events are printed, then `ended` is called.
  void drain();
  /// Whether anything has failed so far.
  bool failed() const { return failed_; }

 private:
  struct Unref {
    void operator()(GstElement* element) const { gst_object_unref(element); }
  };

  void close();
  void stop();
  GstElement* add(const char* factory);
  GstElement* add_source();
  void add_uri(GstElement* decoder);
  void complain(const std::string& text);
  void fail(const std::string& text);

  /// For a source of live pictures: makes the pipeline drop frames instead of falling behind, and keeps it from
  /// delaying frames. Called before the first frame is passed on, in the main loop or in a streaming thread.
  void become_live();
  void on_source(GstElement* source);

  // Called in the main loop.
  void on_bus(GstMessage* message);
  void on_pad(GstPad* pad);
  void on_no_more_pads();
  /// Called in any thread, but in only one at a time.
  void on_event(const GstStructure* event);
  /// Called in the thread of the sink. An error ends the stream.
  void write_now(std::vector<Moments::Moment> moments);
  // Called by write_now(), and by close() after the thread of the sink has ended, so only one thread at a time writes
  // lines and pictures. Returns an error, or an empty text.
  std::string write(std::vector<Moments::Moment> moments);
  /// The frame as JPEG; nullptr, after a complaint, if that fails.
  Sample encode(GstSample* sample);
  std::string save(GstSample* picture, GstClockTime time, guint64 number);
  void miss_snapshot(const GError* error);

  const std::string location_, name_, label_;
  const Settings& settings_;
  const std::function<void()> ended_;
  std::unique_ptr<GstElement, Unref> pipeline_;
  // Set before frames flow.
  GstElement *queue_ = nullptr, *diff_ = nullptr, *sink_ = nullptr;
  double every_ = 1;              ///< seconds between two requests of a snapshot URL
  bool chosen_ = false;           ///< whether the URI sets every_
  bool any_certificate_ = false;  ///< do not check the certificate of the server
  std::unique_ptr<WebPictures> pictures_;
  bool with_objects_ = false;         ///< also print events of objects: a preset, zones or lines are set
  std::unique_ptr<Losses> losses_;    ///< what a file has lost
  std::string cut_;                   ///< a sentence if the file is truncated
  std::unique_ptr<Moments> moments_;  ///< carries events from on_event() to the sink
  std::unique_ptr<Gate> gate_;
  // Shared by threads.
  std::atomic<bool> live_ = false, flowing_ = false, failed_ = false;
  bool done_ = false, drained_ = false, whole_ = false;  ///< used in the main loop
  // Used by the writing thread.
  std::unique_ptr<Shortest> shortest_;
  std::set<std::string> names_;  ///< names of the snapshots of a clip so far
  int repeated_ = 1;
};
