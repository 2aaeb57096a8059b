// SPDX-License-Identifier: LGPL-2.1-or-later
// The output of a source depends only on the position, so a seek to any frame gives the same frames again.
#pragma once

#include <gst/video/video.h>

#include <string>
#include <vector>

#include "tests/streams/frames.hpp"

namespace cudavision::soak {

inline constexpr int frames_per_second = 25;
inline constexpr GstClockTime frame_time = GST_SECOND / frames_per_second;

/// The number of the frame with this timestamp.
inline guint64 number_of(GstClockTime pts) { return pts / frame_time; }

/// The height itself, or the even one below it. libgstcuda 1.22 loses the last plane of planar 4:2:0 with an odd height
/// when the CPU reads it.
int usable_height(int height);

class Stream {
 public:
  struct Size {
    int width, height;
  };
  /// Frames change to another format and size every few dozen frames.
  Stream(std::uint64_t seed, const std::vector<std::string>& formats, const std::vector<Size>& sizes, guint64 length);

  guint64 length() const { return length_; }
  /// The index of the caps of frame n, and the index of its picture for these caps.
  int caps_at(guint64 n) const;
  int picture_at(guint64 n) const;
  const streams::Picture& picture(int caps, int number) const {
    return pictures_[std::size_t(caps * pictures_per_caps + number)];
  }
  const GstVideoInfo& video(int caps) const { return picture(caps, 0).video; }
  const streams::Picture& at(guint64 n) const { return picture(caps_at(n), picture_at(n)); }

 private:
  static constexpr int pictures_per_caps = 3;
  std::uint64_t seed_;
  guint64 length_, run_;  ///< run_: frames between two possible changes of caps
  std::vector<streams::Picture> pictures_;
};

/// (transfer full) Makes a buffer of the samples, which outlive it.
GstBuffer* wrap(const streams::Picture& picture);

/// (transfer full, floating) Makes a seekable source that sends the stream. Its buffers come in turn from reused
/// read-only memory, new memory, downstream's pool, and layouts with padding.
GstElement* new_source(const Stream& stream, std::uint64_t seed);
/// The number of the frame that the source sends next.
guint64 position_of(GstElement* source);

}  // namespace cudavision::soak
