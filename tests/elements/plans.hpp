// SPDX-License-Identifier: LGPL-2.1-or-later
// Runs the plans of the kernels on the frames of a test. Kernel tests prove what a plan computes; element tests compare
// the element with its plan on the CPU backend.
#pragma once

#include "kernels/core/filter.hpp"
#include "tests/elements/harness.hpp"

namespace cudavision::test {

inline void expect_ok(const Status& status) {
  FAIL_UNLESS(status.ok(), "%s: %s", where().c_str(), status.message().c_str());
}
/// Returns the plan. The test fails if there is none.
template <typename Plan>
std::unique_ptr<Plan> made(Result<std::unique_ptr<Plan>> result) {
  if (!result.ok()) expect_ok(result.error());
  return std::move(result.value());
}

inline Geometry geometry_of(const GstVideoInfo& video) {
  int format = 0;
  while (info(Format(format)).name != std::string(GST_VIDEO_INFO_NAME(&video))) EXPECT(++format < format_count);
  return {Format(format), GST_VIDEO_INFO_WIDTH(&video), GST_VIDEO_INFO_HEIGHT(&video)};
}

class Mapped {
 public:
  Mapped(const Buffer& frame, const GstVideoInfo& video, GstMapFlags flags = GST_MAP_READ) {
    EXPECT(gst_video_frame_map(&map_, &video, frame.get(), flags));
    image_.geometry = geometry_of(video);
    for (guint p = 0; p < GST_VIDEO_FRAME_N_PLANES(&map_); ++p)
      image_.planes[p] = {GST_VIDEO_FRAME_PLANE_DATA(&map_, p), GST_VIDEO_FRAME_PLANE_STRIDE(&map_, p)};
  }
  ~Mapped() { gst_video_frame_unmap(&map_); }
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;

  const Image& image() const { return image_; }

 private:
  GstVideoFrame map_;
  Image image_;
};

/// The picture that the plan of a filter makes from a frame.
inline Picture planned(Filter& filter, const GstVideoInfo& video, const Buffer& frame, const Region& region = {}) {
  const Buffer result = black(video);
  {
    const Mapped from(frame, video), to(result, video, GST_MAP_WRITE);
    expect_ok(filter.submit(from.image(), to.image(), region, {}));
  }
  return picture(result.get(), video);
}
template <typename Params>
Picture planned(const Params& params, const GstVideoInfo& video, const Buffer& frame, const Region& region = {}) {
  return planned(*made(make(params, geometry_of(video), Backend::cpu)), video, frame, region);
}

/// Compares the output of a new element with these settings for noise with the picture of its plan.
template <typename Params>
void expect_plan(const Run& run, const std::string& settings, const Params& params,
                 const std::vector<const char*>& formats, int tolerance = 0) {
  for (const char* format : formats) {
    at(format + std::string(" ") + settings);
    const GstVideoInfo video = video_info(format, {61, 43});
    const Buffer frame = noise(video);
    EXPECT_WITHIN(filtered(run, settings, video, frame), planned(params, video, frame), tolerance);
  }
}

}  // namespace cudavision::test
