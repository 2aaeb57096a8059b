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

/// The settings of all inputs.
struct Settings {
  std::vector<std::pair<std::string, std::string>> properties;  ///< of cudadiff: names, and values as on a command line
  std::string snapshots;                                        ///< the folder for snapshots; empty: none are saved
  bool progress = false;                                        ///< also print events between begin and end
  bool realtime = false;                                        ///< read files at playing speed
};

/// Sets a property from text. Returns false and sets nothing if there is no such property or the text is not a value in its range.
bool set_property(GstElement* element, const std::string& name, const std::string& value);

/// `location` without the user and password of a URI, for messages.
std::string public_name(const std::string& location);

/// Watches one stream for motion, in its own pipeline. Prints events to stdout and errors to stderr.
class Input {
 public:
  /// location: a file, a URI, a camera (/dev/video0), `test` (a live picture without end) or `test:FRAMES` (a clip).
  /// label: the start of the snapshots' file names, different for each input.
  /// ended: called once in the main loop when the stream has ended or failed. It must not destroy the input.
  Input(std::string location, std::string label, const Settings& settings, std::function<void()> ended);
  ~Input();
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;

  void start();
  /// Ends the stream as if there was no next frame: the last events are printed, then `ended` is called.
  void drain();
  /// Whether anything has failed so far.
  bool failed() const { return failed_; }

 private:
  struct Free {
    void operator()(GstElement* element) const { gst_object_unref(element); }
    void operator()(GstStructure* structure) const { gst_structure_free(structure); }
  };

  void close();
  void stop();
  GstElement* add(const char* factory);
  GstElement* add_source();
  void complain(std::string text);
  void print(const std::string& line);
  void fail(const std::string& text);

  // Called in the main loop.
  void on_bus(GstMessage* message);
  void on_pad(GstPad* pad);
  void on_no_more_pads();
  // Called in the streaming thread, in the order of the frames. A frame's message comes before the frame.
  void on_event(const GstStructure* event);
  void on_frame(GstSample* sample);
  std::string save(GstSample* sample, const GstStructure& event);

  const std::string location_, name_, label_;
  const Settings& settings_;
  const std::function<void()> ended_;
  std::unique_ptr<GstElement, Free> pipeline_;
  GstElement *queue_ = nullptr, *diff_ = nullptr;
  bool live_ = false, done_ = false;
  bool with_objects_ = false;  ///< also print events of objects: a preset, zones or lines are set
  std::atomic<bool> flowing_ = false, failed_ = false;
  std::set<std::string> names_;  ///< names of the snapshots so far
  int repeated_ = 1;
  std::unique_ptr<GstStructure, Free> begin_;  ///< the begin event that waits for its frame
};
