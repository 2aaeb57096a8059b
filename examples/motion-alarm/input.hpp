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

/// How every input is watched.
struct Settings {
  std::vector<std::pair<std::string, std::string>> properties;  ///< of cudadiff: name, and value as on a command line
  std::string snapshots;                                        ///< the folder to save them in; empty: none are saved
  bool progress = false;                                        ///< also print what goes on between begin and end
  bool realtime = false;                                        ///< files are read as fast as they play
};

/// Sets a property from text. False, and nothing is set, where there is none of that name or the
/// text is no value in its range.
bool set_property(GstElement* element, const std::string& name, const std::string& value);

/// `location` as it may be shown to anyone: without user and password, where it is a URI.
std::string public_name(const std::string& location);

/// One stream, in a pipeline of its own, that is watched for motion. Events go to stdout, errors to stderr.
class Input {
 public:
  /// location: a file, a URI, a camera (/dev/video0), `test` (a live picture without end) or `test:FRAMES` (a clip).
  /// label: what snapshots are named after; another one for each input.
  /// ended: called once, from the main loop, when the stream has ended or failed. It must not destroy the input.
  Input(std::string location, std::string label, const Settings& settings, std::function<void()> ended);
  ~Input();
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;

  void start();
  /// Ends the stream as if there was no next frame; what is under way comes out, then `ended` is called.
  void drain();
  /// Whether anything went wrong so far.
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

  // In the main loop.
  void on_bus(GstMessage* message);
  void on_pad(GstPad* pad);
  void on_no_more_pads();
  // In the streaming thread, in the order of the frames: a frame's message comes before the frame.
  void on_event(const GstStructure* event);
  void on_frame(GstSample* sample);
  std::string save(GstSample* sample, const GstStructure& event);

  const std::string location_, name_, label_;
  const Settings& settings_;
  const std::function<void()> ended_;
  std::unique_ptr<GstElement, Free> pipeline_;
  GstElement *queue_ = nullptr, *diff_ = nullptr;
  bool live_ = false, done_ = false;
  std::atomic<bool> flowing_ = false, failed_ = false;
  std::set<std::string> names_;  ///< of snapshots so far
  int repeated_ = 1;
  std::unique_ptr<GstStructure, Free> begin_;  ///< waits for its frame
};
