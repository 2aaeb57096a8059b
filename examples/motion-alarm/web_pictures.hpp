// SPDX-License-Identifier: LGPL-2.1-or-later
// Pictures of HTTP cameras in a uridecodebin: Motion JPEG, and snapshot URLs, which answer each request with one JPEG.
//
//     http source ─┬─ multipart ─→ multipartdemux ─→ …    the first picture passes immediately: no other pad is awaited
//                  ├─ a JPEG ────→ one buffer ───→ …      and the source restarts for the next one
//                  └─ anything else passes
//
// Frames get their time of arrival.
#pragma once

#include <gst/gst.h>

#include <atomic>
#include <functional>
#include <string>

/// Watches one source element. It must exist from before the source starts until the source has stopped.
class WebPictures {
 public:
  /// every: seconds between the beginnings of two requests. live: called once, in the streaming thread, if the source
  /// delivers live pictures instead of a file.
  WebPictures(GstElement* source, double every, std::function<void()> live);
  ~WebPictures();
  WebPictures(const WebPictures&) = delete;
  WebPictures& operator=(const WebPictures&) = delete;

  /// Handles a multipartdemux that is added to the pipeline.
  void watch_demuxer(GstElement* demuxer);

 private:
  GstPadProbeReturn on_source(GstPad* pad, GstPadProbeInfo* info);
  GstPadProbeReturn on_data(GstPadProbeInfo* info);
  GstPadProbeReturn on_end(GstPad* pad);
  void on_part(GstPad* pad);
  void begin();
  GstBuffer* stamped(GstBuffer* buffer) const;
  void ask();

  GstElement* const source_;
  const double every_;
  const std::function<void()> live_;
  std::atomic<guint> timer_ = 0;
  // Used by the streaming thread.
  std::string data_;              ///< bytes of a picture; empty: nothing has arrived yet
  int joints_ = 0;                ///< how often one picture ended and another one began in it
  bool endless_ = false;          ///< pictures follow each other in one answer
  gint64 asked_ = 0, began_ = 0;  ///< times of the request and of the first picture, in µs of the monotonic clock
};
