// SPDX-License-Identifier: LGPL-2.1-or-later
// Target: frames with wrong descriptions, mapped as elements map them, opened as Python opens them, and made from
// arrays.
#include "gst/frames/frames.h"

#include <dlfcn.h>
#include <gst/video/video.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "gst/base/caps.hpp"
#include "gst/base/frame.hpp"
#include "gst/frames/dlpack.hpp"
#include "kernels/core/format.hpp"
#include "tests/fuzz/targets/target.hpp"
#include "tests/streams/broken.hpp"
#include "tests/streams/complaints.hpp"

namespace cudavision::fuzz {
namespace {

using namespace streams;

constexpr int most_pixels = 1 << 14;
unsigned sum = 0;  // the sum of all bytes read, so that the compiler cannot remove the reads

const std::vector<std::string>& format_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const FormatInfo& format : formats())
      if (is_known(format)) all.push_back(format.name);
    return all;
  }();
  return names;
}

void read_rows(const void* first, std::ptrdiff_t pitch, std::size_t row_bytes, int rows) {
  for (std::ptrdiff_t y = 0; y < rows; ++y) {
    const auto* row = static_cast<const std::uint8_t*>(first) + y * pitch;
    sum = std::accumulate(row, row + row_bytes, sum);
  }
}

/// (transfer full) Caps that may not describe the video.
GstCaps* raw_caps(Random& random, GstVideoInfo video) {
  GstCaps* caps = gst_video_info_to_caps(&video);
  const auto set_text = [&](const char* field) {
    const std::string text = random.bytes().text();
    if (g_utf8_validate(text.c_str(), -1, nullptr))
      gst_caps_set_simple(caps, field, G_TYPE_STRING, text.c_str(), nullptr);
  };
  const int has = random.byte();
  if (has & 1) set_text("colorimetry");
  if (has & 2) {
    const int width = random.around(video.width), height = random.around(video.height);
    gst_caps_set_simple(caps, "width", G_TYPE_INT, width, "height", G_TYPE_INT, height, nullptr);
  }
  if (has & 4) {
    const int number = random.around(1), divisor = random.around(1);
    const char* field = random.below(2) ? "framerate" : "pixel-aspect-ratio";
    // A GstFraction cannot have a denominator of 0 or the lowest int.
    if (divisor != 0 && std::min(number, divisor) >= -G_MAXINT)
      gst_caps_set_simple(caps, field, GST_TYPE_FRACTION, number, divisor, nullptr);
  }
  if (has & 8) {
    // multiview-mode is omitted, because GStreamer warns about words that it does not know
    static constexpr const char* fields[] = {"interlace-mode", "chroma-site", "format", "field-order"};
    set_text(fields[random.below(4)]);
  }
  return caps;
}

/// Maps a frame, and reads or writes all rows of its picture.
void map_frame(Random& random) {
  const GstVideoInfo described = raw_video(random, format_names(), most_pixels);
  g_autoptr(GstCaps) caps = raw_caps(random, described);
  GstVideoInfo video;
  const bool is_video = video_from_caps(video, caps);
  if (!is_video || !find_format(gst_video_format_to_string(GST_VIDEO_INFO_FORMAT(&video)))) return;
  if (GST_VIDEO_INFO_WIDTH(&video) > max_frame_side || GST_VIDEO_INFO_HEIGHT(&video) > max_frame_side) return;
  time_between_frames(video);
  range_of(video);
  const bool writes = random.below(2);
  g_autoptr(GstBuffer) buffer = raw_frame(random, video);
  {
    const MappedFrame mapped(buffer, video, writes ? GST_MAP_READWRITE : GST_MAP_READ);
    const Image& image = mapped.image();
    if (mapped.status().ok() && (image.geometry.width < 1 || image.geometry.height < 1))
      complain("a frame without a pixel is mapped");
    for (int i = 0; mapped.status().ok() && i < info(image.geometry.format).planes; ++i) {
      const PlaneExtent size = extent(image.geometry, i);
      const Plane& plane = image.planes[i];
      if (plane.pitch < std::ptrdiff_t(size.row_bytes)) complain("rows of a mapped frame overlap");
      read_rows(plane.data, plane.pitch, size.row_bytes, size.rows);
      for (std::ptrdiff_t y = 0; writes && y < size.rows; ++y)
        std::memset(static_cast<char*>(plane.data) + y * plane.pitch, int(y), size.row_bytes);
    }
    if (!mapped.status().ok() && mapped.status().message().rfind("a video frame", 0) != 0)
      complain("an error does not say what failed: " + mapped.status().message());
  }
}

/// Finds a function of the plugin.
template <typename F>
F* plugin_function(const char* name) {
  static void* const module = [] {
    g_autoptr(GstPlugin) plugin = gst_registry_find_plugin(gst_registry_get(), "cudavision");
    return plugin ? dlopen(gst_plugin_get_filename(plugin), RTLD_LAZY) : nullptr;
  }();
  void* function = module ? dlsym(module, name) : nullptr;
  if (!function) g_error("the plugin has no function %s", name);
  return reinterpret_cast<F*>(function);
}
#define PLUGIN_FUNCTION(name) plugin_function<decltype(name)>(#name)

void read_array(const CudavisionArray& array) {
  const std::size_t samples = std::size_t(array.shape[1]) * std::size_t(array.dimensions > 2 ? array.shape[2] : 1);
  if (reinterpret_cast<std::uintptr_t>(array.data) % (unsigned(array.bits) / 8))
    complain("an array begins at an odd address");
  read_rows(array.data, std::ptrdiff_t(array.strides[0]), samples * (unsigned(array.bits) / 8), int(array.shape[0]));
}

/// Opens a frame as cudavision.frames does, and exports its planes through DLPack.
void open_frame(Random& random) {
  const GstVideoInfo video = raw_video(random, format_names(), most_pixels);
  g_autoptr(GstCaps) caps = random.below(4) ? raw_caps(random, video) : nullptr;
  const int most_refs = random.below(2);
  g_autoptr(GstBuffer) buffer = raw_frame(random, video);
  CudavisionFrame frame;
  CudavisionOwner* owner = nullptr;
  char error[300] = "";
  if (PLUGIN_FUNCTION(cudavision_frame_open)(buffer, caps, most_refs, &frame, &owner, error, sizeof error) == 0) {
    if (frame.width < 1 || frame.height < 1) complain("a frame without a pixel is opened");
    for (int i = 0; i < frame.n_planes; ++i) {
      read_array(frame.planes[i]);
      auto* managed =
          static_cast<frames::dlpack::Managed*>(PLUGIN_FUNCTION(cudavision_dlpack_new)(owner, &frame.planes[i], 0));
      managed->deleter(managed);
    }
    PLUGIN_FUNCTION(cudavision_owner_unref)(owner);
  } else if (!*error) {
    complain("a frame cannot be opened, but there is no error");
  }
  if (GST_MINI_OBJECT_REFCOUNT_VALUE(buffer) != 1) complain("a frame is kept although nobody uses it");
}

/// Makes a frame from arrays, in memory with the size that they claim, and reads it.
void make_frame(Random& random) {
  const GstVideoInfo video = raw_video(random, format_names(), most_pixels);
  const int width = random.around(video.width), height = random.around(video.height);
  std::string name = GST_VIDEO_INFO_NAME(&video);
  if (random.byte() % 16 == 15) name = random.bytes().text();
  CudavisionFrame frame;
  char error[300] = "";
  if (PLUGIN_FUNCTION(cudavision_frame_layout)(name.c_str(), width, height, &frame, error, sizeof error) != 0) {
    if (!*error) complain("a layout is refused, but there is no error");
    return;
  }
  std::vector<std::vector<char>> memories;
  bool whole = true;  // whether the memories are as large as the arrays claim
  for (int i = 0; i < frame.n_planes; ++i) {
    frame.planes[i].strides[0] = random.around(frame.planes[i].strides[0]);
    const std::int64_t rows = frame.planes[i].shape[0],
                       stride = std::abs(std::int64_t(std::int32_t(frame.planes[i].strides[0])));
    const bool small = stride <= (1 << 20) / rows && stride == frame.planes[i].strides[0];
    memories.emplace_back(
        small ? std::size_t(stride * (rows - 1) + frame.planes[i].shape[1] * frame.planes[i].strides[1]) : 1);
    whole = whole && small;
    frame.planes[i].data = random.byte() % 16 == 15 ? nullptr : memories.back().data();
  }
  g_autoptr(GstBuffer) buffer = nullptr;
  int copied = 0;
  if (PLUGIN_FUNCTION(cudavision_maker_make)(nullptr, &frame, nullptr, 0, random.below(3), 10, &buffer, &copied, error,
                                             sizeof error)) {
    if (!*error) complain("a frame is not made, but there is no error");
    return;
  }
  GstVideoInfo made;
  GstVideoFrame mapped;
  gst_video_info_set_format(&made, gst_video_format_from_string(frame.format), guint(frame.width), guint(frame.height));
  if (whole && gst_video_frame_map(&mapped, &made, buffer, GST_MAP_READ)) {
    for (int i = 0; i < frame.n_planes; ++i)
      read_rows(GST_VIDEO_FRAME_PLANE_DATA(&mapped, i), GST_VIDEO_FRAME_PLANE_STRIDE(&mapped, i),
                std::size_t(frame.planes[i].shape[1] * frame.planes[i].strides[1]), int(frame.planes[i].shape[0]));
    gst_video_frame_unmap(&mapped);
  } else if (whole) {
    complain("a frame that was made cannot be mapped");
  }
}

}  // namespace

void run_target(Random random) {
  switch (random.below(4)) {
    case 0:
      return open_frame(random);
    case 1:
      return make_frame(random);
    default:
      return map_frame(random);
  }
}

}  // namespace cudavision::fuzz
