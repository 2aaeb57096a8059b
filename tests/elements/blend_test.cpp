// SPDX-License-Identifier: LGPL-2.1-or-later
// Compares cudablend with formulas in double precision: operators, keys, formats, backgrounds,
// scaling, layouts, memories.
#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <tuple>

#include "tests/elements/mixer.hpp"

using namespace cudavision::test;

// Operators and keys
// ------------------------------------------------------------------------------------------------------------

namespace {

double blended(const std::string& op, double d, double s) {
  return op == "subtract"     ? std::max(d - s, 0.0)
         : op == "multiply"   ? d * s / 255
         : op == "screen"     ? d + s - d * s / 255
         : op == "difference" ? std::abs(d - s)
         : op == "min"        ? std::min(d, s)
         : op == "max"        ? std::max(d, s)
                              : s;
}

/// product / 255, rounded as in compositor: ORC's division rounds to nearest, and from version 0.4.39 on rounds down.
double scaled_back(double product) {
  static const bool rounds_down = [] {
    using Version = const char* (*)();
    const auto version = reinterpret_cast<Version>(dlsym(RTLD_DEFAULT, "orc_version_string"));
    int major = 0, minor = 0, micro = 0;
    return version && std::sscanf(version(), "%d.%d.%d", &major, &minor, &micro) == 3 &&
           std::tuple(major, minor, micro) >= std::tuple(0, 4, 39);
  }();
  return rounds_down ? std::floor(product / 255) : std::nearbyint(product / 255);
}

/// The result of s over d, as R'G'B' and alpha from 0 to 255. k is the weight of the key.
Color laid(const std::string& op, double alpha, double k, const Color& d, const Color& s, bool output_has_alpha) {
  Color r = d;
  if (op == "source" || op == "average") {
    const bool average = op == "average";
    const double weight = average ? alpha * k : k;
    for (std::size_t c = 0; c < 3; ++c) r[c] = d[c] + weight * (s[c] - d[c]);
    r[3] =
        average ? d[3] + weight * (s[3] - d[3]) : d[3] + weight * (scaled_back(s[3] * std::floor(255 * alpha)) - d[3]);
    return r;
  }
  Color top = s;
  const double backed = output_has_alpha ? d[3] / 255 : 1;
  for (std::size_t c = 0; c < 3; ++c) top[c] = s[c] + (blended(op, d[c], s[c]) - s[c]) * backed;
  const double steps = std::floor(255 * alpha);
  if (!output_has_alpha) {
    const double a = k * s[3] / 255 * (alpha < 1 ? steps / 256 : 1);
    for (std::size_t c = 0; c < 3; ++c) r[c] = d[c] + a * (top[c] - d[c]);
    return r;
  }
  const double above = scaled_back(k * s[3] * steps), below = scaled_back(d[3] * (255 - above));
  for (std::size_t c = 0; c < 3; ++c)
    r[c] = above + below > 0 ? (top[c] * above + d[c] * below) / (above + below) : 255;
  r[3] = op == "add" ? std::min(d[3] + above, 255.0) : above + below;
  return r;
}

const std::vector<std::string> operators{"source", "over",       "add", "subtract", "multiply",
                                         "screen", "difference", "min", "max",      "average"};

}  // namespace

TEST(computes_every_operator, Each::run) {
  const Size size{37, 29};
  for (const auto& [below, above, out] : {std::tuple{"RGB", "RGB", "RGB"},
                                          {"RGB", "BGRA", "RGB"},
                                          {"BGRx", "RGBA", "BGR"},
                                          {"RGBA", "ARGB", "RGBA"},
                                          {"ABGR", "RGB", "BGRA"}})
    for (const std::string& op : operators)
      for (double alpha : {1.0, 0.65, 0.1}) {
        at(std::string(below) + ", " + above + " to " + out + " " + op + " " + std::to_string(alpha));
        const std::vector<Layer> layers{{caps_text(below, size), "operator=source"},
                                        {caps_text(above, size), "operator=" + op + " alpha=" + std::to_string(alpha)}};
        const auto four = [](Picture p, const std::string& format) {
          if (p.size() == 4 && format.find('x') != std::string::npos) p.pop_back();
          return p;
        };
        const Picture d = four(source_picture(layers[0], 1), below), s = four(source_picture(layers[1], 2), above);
        const bool has_alpha = std::string(out).find('A') != std::string::npos;
        const Picture result = composed(run, "background=transparent", caps_text(out, size), layers);
        EXPECT_WITHIN(
            result,
            drawn(result, [&](int x, int y) { return laid(op, alpha, 1, pixel(d, x, y), pixel(s, x, y), has_alpha); }),
            1);
      }
}

/// The formulas apply to R'G'B' for every output format.
TEST(computes_operators_of_yuv, Each::run) {
  const Size size{4, 4};
  const std::vector<std::array<double, 3>> colors{{0.9, 0.2, 0.1}, {0.1, 0.8, 0.3}, {0.5, 0.5, 0.5},
                                                  {0.2, 0.3, 0.9}, {1, 1, 1},       {0, 0, 0}};
  for (const char* format : {"NV12", "Y444", "I420_10LE", "GRAY8"})
    for (const std::string& op : operators)
      for (std::size_t i = 0; i < colors.size(); ++i) {
        at(format + std::string(" ") + op + " " + std::to_string(i));
        const GstVideoInfo video = video_info(format, size);
        const auto& a = colors[i];
        const auto& b = colors[(i + 1) % colors.size()];
        const std::vector<int> d = samples_of(video, a[0], a[1], a[2]), s = samples_of(video, b[0], b[1], b[2]);
        const Picture result =
            composed(run, "background=black", caps_text(format, size),
                     {{caps_text(format, size), "", d}, {caps_text(format, size), "operator=" + op, s}});
        const auto dr = rgb_of(video, d), sr = rgb_of(video, s);
        Color from{0, 0, 0, 255}, to{0, 0, 0, 255};
        for (std::size_t c = 0; c < 3; ++c) from[c] = 255 * dr[c], to[c] = 255 * sr[c];
        const Color r = laid(op, 1, 1, from, to, false);
        EXPECT_WITHIN(result, plain(video, samples_of(video, r[0] / 255, r[1] / 255, r[2] / 255)), 1);
      }
}

TEST(fuses_by_key_and_average, Each::run) {
  const Size size{61, 43};
  const auto keyed = [](const GstVideoInfo& video, int) {  // a third of it equals its first pixel
    const Buffer all = noise(video, 5);
    Buffer frame = flat(video, {10, 200, 30, 255});
    GstVideoFrame from, to;
    EXPECT(gst_video_frame_map(&from, &video, all.get(), GST_MAP_READ) &&
           gst_video_frame_map(&to, &video, frame.get(), GST_MAP_WRITE));
    for (int y = 0; y < GST_VIDEO_INFO_HEIGHT(&video); ++y)
      for (int x = 0; x < GST_VIDEO_INFO_WIDTH(&video); ++x)
        if ((x + y) % 3) {
          const auto at = [&](GstVideoFrame& f) {
            return static_cast<guint8*>(GST_VIDEO_FRAME_PLANE_DATA(&f, 0)) + y * GST_VIDEO_FRAME_PLANE_STRIDE(&f, 0) +
                   x * GST_VIDEO_FRAME_COMP_PSTRIDE(&f, 0);
          };
          std::copy_n(at(from), GST_VIDEO_FRAME_COMP_PSTRIDE(&from, 0), at(to));
        }
    gst_video_frame_unmap(&from), gst_video_frame_unmap(&to);
    return frame;
  };
  for (const char* format : {"RGB", "BGRx"}) {
    at(format);
    std::vector<Layer> layers{{caps_text(format, size)},
                              {caps_text(format, size), "operator=average alpha=0.65 key=first-pixel"}};
    layers[1].draw = keyed;
    const Picture wall = source_picture(layers[0], 1), above = source_picture(layers[1], 2);
    const Picture result = composed(run, "background=black", caps_text("RGB", size), layers);
    EXPECT_WITHIN(result,
                  drawn(result,
                        [&](int x, int y) {
                          const Color w = pixel(wall, x, y), p = pixel(above, x, y);
                          const bool key = p[0] == 10 && p[1] == 200 && p[2] == 30;
                          Color r = w;
                          for (std::size_t c = 0; c < 3; ++c) r[c] = key ? w[c] : 0.35 * w[c] + 0.65 * p[c];
                          return r;
                        }),
                  1);
  }
}

TEST(keys_by_tolerance_and_softness, Each::run) {
  const Size size{64, 16};
  for (const char* op : {"over", "source", "average", "max"})
    for (const auto& [tolerance, softness] :
         {std::pair{0.0, 0.0}, {20.0, 0.0}, {20.0, 40.0}, {0.0, 100.0}, {255.0, 0.0}}) {
      at(op + std::string(" ") + std::to_string(tolerance) + " " + std::to_string(softness));
      // Each row moves away from the key colour along one channel.
      const auto ramp = [](const GstVideoInfo& video, int) {
        Buffer frame = flat(video, {0, 255, 0});
        GstVideoFrame map;
        EXPECT(gst_video_frame_map(&map, &video, frame.get(), GST_MAP_WRITE));
        for (int y = 0; y < 16; ++y)
          for (int x = 0; x < 64; ++x) {
            guint8* p = static_cast<guint8*>(GST_VIDEO_FRAME_PLANE_DATA(&map, 0)) +
                        y * GST_VIDEO_FRAME_PLANE_STRIDE(&map, 0) + 3 * x;
            p[y % 3] = guint8(y % 3 == 1 ? 255 - 3 * x : 3 * x);
          }
        gst_video_frame_unmap(&map);
        return frame;
      };
      std::vector<Layer> layers{
          {caps_text("RGB", size)},
          {caps_text("RGB", size), std::string("operator=") + op + " key=color key-color=0x00ff00 key-tolerance=" +
                                       std::to_string(tolerance) + " key-softness=" + std::to_string(softness)}};
      layers[1].draw = ramp;
      const Picture wall = source_picture(layers[0], 1), above = source_picture(layers[1], 2);
      const Picture result = composed(run, "background=black", caps_text("RGB", size), layers);
      EXPECT_WITHIN(result,
                    drawn(result,
                          [&](int x, int y) {
                            const Color s = pixel(above, x, y);
                            const double distance = std::max({s[0], 255 - s[1], s[2]}), beyond = distance - tolerance;
                            const double k = beyond <= 0 ? 0 : softness > 0 ? std::min(beyond / softness, 1.0) : 1;
                            return laid(op, 1, k, pixel(wall, x, y), s, false);
                          }),
                    1);
    }
}

TEST(keys_formats_other_than_rgb, Each::run) {
  const Size size{16, 8};
  for (const char* format : {"NV12", "I420", "Y444_16LE", "GBR", "RGBA64_LE", "P010_10LE"})
    for (bool like : {true, false}) {
      at(format);
      const GstVideoInfo video = video_info(format, size);
      const std::vector<int> green = like ? samples_of(video, 0, 1, 0) : samples_of(video, 0.2, 0.8, 0.1);
      const Picture result =
          composed(run, "background=black", caps_text("RGB", size),
                   {{caps_text("RGB", size), "", {200, 100, 50}},
                    {caps_text(format, size), "key=color key-color=0x00ff00 key-tolerance=8", green}});
      EXPECT_WITHIN(
          result, plain(video_info("RGB", size), like ? std::vector<int>{200, 100, 50} : std::vector<int>{51, 204, 26}),
          3);
    }
}

// Formats
// ---------------------------------------------------------------------------------------------------------------------

TEST(copies_every_format_unchanged, Each::run) {
  for (const std::string& format : formats(run))
    for (Size size : {Size{1, 1}, {5, 7}, {37, 29}, {64, 48}}) {
      at(format + " " + std::to_string(size.width) + "x" + std::to_string(size.height));
      const std::vector<Layer> layers{{caps_text(format, size), "operator=source"}};
      Picture expected = source_picture(layers[0], 1), result = composed(run, "", caps_text(format, size), layers);
      if (const GstVideoInfo video = video_info(format, size); expected.size() > GST_VIDEO_INFO_N_COMPONENTS(&video)) {
        expected.pop_back();
        // padding.
        EXPECT_SAME(Picture{result.back()}, Picture{cv::Mat(result.back().size(), CV_16U, cv::Scalar(255))});
        result.pop_back();
      }
      EXPECT_SAME(result, expected);
    }
}

TEST(converts_every_format, Each::run) {
  const Size size{9, 7};
  const GstVideoInfo rgb = video_info("RGB", size);
  for (const std::string& format : formats(run))
    for (const auto& color : {std::array<double, 3>{0.8, 0.3, 0.1}, {0.1, 0.6, 0.9}, {1, 1, 1}, {0, 0, 0}}) {
      const GstVideoInfo video = video_info(format, size);
      const std::vector<int> samples = samples_of(video, color[0], color[1], color[2]);
      at(format + " to RGB");
      const auto back = rgb_of(video, samples);
      EXPECT_WITHIN(composed(run, "background=black", caps_text("RGB", size), {{caps_text(format, size), "", samples}}),
                    plain(rgb, samples_of(rgb, back[0], back[1], back[2])), 1);
      at("RGB to " + format);
      const std::vector<int> input = samples_of(rgb, color[0], color[1], color[2]);
      const auto read = rgb_of(rgb, input);
      std::vector<int> expected = samples_of(video, read[0], read[1], read[2]);
      EXPECT_WITHIN(composed(run, "background=black", caps_text(format, size), {{caps_text("RGB", size), "", input}}),
                    plain(video, expected), 1);
    }
}

TEST(mixes_all_formats, Each::run) {
  const Size cell{10, 8};
  const std::vector<std::string> all = formats(run);
  const std::size_t at_once = 36;  // a picture has at most 64 pads
  for (std::size_t first = 0; first < all.size(); first += at_once) {
    const std::vector<std::string> names(all.begin() + std::ptrdiff_t(first),
                                         all.begin() + std::ptrdiff_t(std::min(all.size(), first + at_once)));
    const int columns = 6, rows = int(names.size() + 5) / 6;
    const Size whole{columns * cell.width, rows * cell.height};
    for (const char* out : {"RGB", "NV12", "P010_10LE"}) {
      at(out);
      std::vector<Layer> layers;
      for (std::size_t i = 0; i < names.size(); ++i) {
        const GstVideoInfo video = video_info(names[i], cell);
        const double level = double(i + 1) / double(names.size() + 1);
        layers.push_back({caps_text(names[i], cell),
                          "xpos=" + std::to_string(int(i) % columns * cell.width) +
                              " ypos=" + std::to_string(int(i) / columns * cell.height),
                          samples_of(video, level, level, level)});
      }
      const GstVideoInfo video = video_info(out, whole);
      const Picture result = composed(run, "background=black", caps_text(out, whole), layers);
      const int steps = 1 << (GST_VIDEO_INFO_COMP_DEPTH(&video, 0) - 8);
      for (std::size_t i = 0; i < names.size(); ++i) {
        const double level = double(i + 1) / double(names.size() + 1);
        const int expected = samples_of(video, level, level, level)[0];
        const int found = sample(result, 0, int(i) % columns * cell.width + 5, int(i) / columns * cell.height + 4);
        FAIL_UNLESS(std::abs(found - expected) <= 1 * steps, "%s: %s became %d, and not %d", where().c_str(),
                    names[i].c_str(), found, expected);
      }
    }
  }
}

TEST(honours_colorimetry, Each::run) {
  const Size size{8, 8};
  for (const char* colorimetry : {"bt601", "bt709", "bt2020", "smpte240m", "1:4:0:0", "1:3:0:0", "1:5:0:0"})
    for (const auto& [r, g, b] : {std::tuple(0.8, 0.2, 0.4), {0.0, 0.2, 1.0}}) {
      at(colorimetry + (" " + show(b)));
      const std::string caps = caps_text("Y444", size, ",colorimetry=(string)" + std::string(colorimetry));
      GstVideoInfo video;
      const Caps parsed(gst_caps_from_string(caps.c_str()));
      EXPECT(gst_video_info_from_caps(&video, parsed.get()));
      const std::vector<int> samples = samples_of(video, r, g, b);
      const auto back = rgb_of(video, samples);
      const GstVideoInfo rgb = video_info("RGB", size);
      EXPECT_WITHIN(composed(run, "", caps_text("RGB", size), {{caps, "", samples}}),
                    plain(rgb, samples_of(rgb, back[0], back[1], back[2])), 1);
      const std::vector<int> input = samples_of(rgb, r, g, b);  // exact: fifths of 255
      EXPECT_WITHIN(composed(run, "", caps, {{caps_text("RGB", size), "", input}}),
                    plain(video, samples_of(video, r, g, b)), 1);
    }
}

TEST(accepts_any_stride_and_offset, Each::run) {
  const Size size{37, 30};
  for (const char* format : {"RGB", "NV12", "I420_10LE", "RGBA64_LE"}) {
    at(format);
    Layer layer(caps_text(format, size), "operator=source");
    const Picture expected = source_picture(layer, 1);
    layer.draw = [](const GstVideoInfo& video, int) {
      const Buffer frame = noise(video, 100);
      return spread(video, frame.get(), 0xee);
    };
    EXPECT_SAME(composed(run, "", caps_text(format, size), {layer}), expected);
  }
}

TEST(honours_crop, Each::run) {
  for (const char* format : {"RGB", "NV12", "GRAY16_LE"}) {
    at(format);
    const Size small{32, 20};
    const GstVideoInfo whole = video_info(format, {64, 48});
    const Buffer frame = noise(whole, 3);
    Layer layer(caps_text(format, small), "operator=source");
    layer.draw = [&](const GstVideoInfo&, int) {
      Buffer copy(gst_buffer_copy_deep(frame.get()));
      gst_buffer_add_video_meta(copy.get(), GST_VIDEO_FRAME_FLAG_NONE, GST_VIDEO_INFO_FORMAT(&whole), 64, 48);
      add_crop(copy.get(), {6, 4, 32, 20});
      gst_buffer_add_video_region_of_interest_meta(copy.get(), "inside", 16, 10, 8, 6);
      return copy;
    };
    const std::vector<Output> all = play(run, "", caps_text(format, small), {layer});
    EXPECT_EQ(all.size(), 1u);
    const Buffer cropped = cut(whole, frame.get(), {6, 4, 32, 20});
    EXPECT_SAME(all[0].shown(), picture(cropped.get(), video_info(format, small)));
    // The metas of a pad's frame do not apply to the composed frame.
    EXPECT(!gst_buffer_get_video_crop_meta(all[0].buffer.get()));
    EXPECT(!gst_buffer_get_video_region_of_interest_meta_id(all[0].buffer.get(), 0));
    gpointer cursor = nullptr;
    EXPECT(!gst_buffer_iterate_meta_filtered(all[0].buffer.get(), &cursor, GST_VIDEO_REGION_OF_INTEREST_META_API_TYPE));
  }
}

TEST(scales_the_cropped_part, Each::run) {
  for (const char* format : {"RGB", "NV12"})
    for (const char* pad : {"width=50 height=31", "width=50 height=50 sizing-policy=keep-aspect-ratio",
                            "width=20 height=40 sizing-policy=fill", "xpos=-10 ypos=30"}) {
      at(format + std::string(" ") + pad);
      const Size small{32, 20};
      const GstVideoInfo whole = video_info(format, {64, 48});
      // A different part of the frame each time.
      const auto part = [](int n) { return GstVideoRectangle{4 * n, 2 * n, 32, 20}; };
      Layer cropped(caps_text(format, small), pad, 5), cut_out = cropped;
      cropped.draw = [&](const GstVideoInfo&, int n) {
        Buffer frame = noise(whole, 3);
        gst_buffer_add_video_meta(frame.get(), GST_VIDEO_FRAME_FLAG_NONE, GST_VIDEO_INFO_FORMAT(&whole), 64, 48);
        add_crop(frame.get(), part(n));
        return frame;
      };
      cut_out.draw = [&](const GstVideoInfo&, int n) {
        const Buffer frame = noise(whole, 3);
        return cut(whole, frame.get(), part(n));
      };
      const std::string out = caps_text(format, {64, 60});
      const std::vector<Output> all = play(run, "background=white", out, {cropped});
      EXPECT_EQ(all.size(), 5u);
      expect_same(all, play(run, "background=white", out, {cut_out}), 0);
    }
}

/// A frame that stays counts once, however long it is shown.
TEST(ends_a_stream_of_frames_that_do_not_fit, Each::run) {
  const std::string caps = caps_text("RGB", {32, 20});
  const auto too_small = [] { return Buffer(gst_buffer_new_allocate(nullptr, 100, nullptr)); };
  Mixer mixer(run, "background=black", caps);
  mixer.add(caps);
  mixer.add(caps);
  mixer.play();
  for (int n = 0; n < 29; ++n) {
    mixer.push(0, flat(mixer.video(0), {90}));
    mixer.push(1, too_small());
    mixer.pull();
  }
  EXPECT_EQ(mixer.error(0).text, "");
  mixer.push(0, flat(mixer.video(0), {90}));
  mixer.push(1, too_small());
  EXPECT_CONTAINS(mixer.error(5 * GST_SECOND).text, "sink_1: 30 frames in a row do not fit their caps: ");
}

/// Crops that begin inside of groups of subsampled pixels.
TEST(honours_crops_of_each_parity, Each::run) {
  for (const char* format : {"YUY2", "UYVY", "NV12", "Y42B"})
    for (int parity = 0; parity < 16; ++parity) {
      const GstVideoRectangle part{(parity & 1) + 2, (parity >> 1 & 1) + 2, 32 + (parity >> 2 & 1),
                                   20 + (parity >> 3 & 1)};
      const Size size{part.w, part.h};
      at(format + std::string(" ") + std::to_string(parity));
      const GstVideoInfo whole = video_info(format, {40, 28});
      const Buffer frame = noise(whole, 3), cropped = cut(whole, frame.get(), part);
      Layer layer(caps_text(format, size), "operator=source");
      layer.draw = [&](const GstVideoInfo&, int) {
        Buffer copy(gst_buffer_copy_deep(frame.get()));
        gst_buffer_add_video_meta(copy.get(), GST_VIDEO_FRAME_FLAG_NONE, GST_VIDEO_INFO_FORMAT(&whole), 40, 28);
        add_crop(copy.get(), part);
        return copy;
      };
      const std::vector<Output> all = play(run, "", caps_text(format, size), {layer});
      EXPECT_EQ(all.size(), 1u);
      EXPECT_SAME(all[0].shown(), picture(cropped.get(), video_info(format, size)));
    }
}

/// Drops these frames as compositor does, with one warning for consecutive ones.
TEST(drops_frames_that_do_not_fit_their_caps, Each::run) {
  const Size size{32, 20};
  const GstVideoInfo whole = video_info("RGB", {64, 48});
  const auto crop_that_leaves_its_frame = [&] {
    Buffer frame = noise(whole);
    gst_buffer_add_video_meta(frame.get(), GST_VIDEO_FRAME_FLAG_NONE, GST_VIDEO_INFO_FORMAT(&whole), 64, 48);
    add_crop(frame.get(), {40, 4, 32, 20});
    return frame;
  };
  const auto too_small = [] { return Buffer(gst_buffer_new_allocate(nullptr, 100, nullptr)); };
  // '+' a good frame, 'c' a crop beyond the frame, 's' a frame that is too small.
  const std::string shown = "+cs++s+ss+c";
  Mixer mixer(run, "background=black", caps_text("RGB", size));
  mixer.add(caps_text("RGB", size));
  mixer.add(caps_text("RGB", size));
  mixer.play();
  for (std::size_t n = 0; n < shown.size(); ++n) {
    at("frame " + std::to_string(n));
    const bool good = shown[n] == '+';
    mixer.push(0, flat(mixer.video(0), {100}));
    mixer.push(1, good ? flat(mixer.video(1), {200}) : shown[n] == 'c' ? crop_that_leaves_its_frame() : too_small());
    EXPECT_SAME(mixer.next().shown(), plain(video_info("RGB", size), {good ? 200 : 100}));
    const bool first = !good && shown[n - 1] == '+';
    const Message message = mixer.warning(0);
    if (first) EXPECT_CONTAINS(message.text, "sink_1");
    EXPECT_EQ(message.text.empty(), !first);
  }
  for (int i = 0; i < 2; ++i) mixer.end(i);
  EXPECT(!mixer.pull());
  EXPECT(mixer.error(0).text.empty());
}

/// A frame that is hidden is not read, so nobody is told that it does not fit its caps.
TEST(does_not_read_hidden_frames, Each::run) {
  struct Case {
    const char *format, *pad;
    bool hides;
  };
  for (const Case& above : {Case{"RGB", "", true},
                            {"RGB", "operator=add", true},
                            {"RGB", "operator=source", true},
                            {"RGB", "operator=average", true},
                            {"RGB", "width=40 height=30 xpos=-4 ypos=-6", true},
                            {"RGBA", "operator=source", true},
                            {"RGBA", "operator=average", true},
                            {"RGBA", "", false},
                            {"RGBA", "operator=add", false},
                            {"RGB", "alpha=0.9", false},
                            {"RGB", "operator=multiply", false},
                            {"RGB", "key=color", false},
                            {"RGB", "width=31", false},
                            {"RGB", "ypos=1", false}}) {
    at(above.format + std::string(" ") + above.pad);
    Mixer mixer(run, "background=black", caps_text("RGB", {32, 20}));
    mixer.add(caps_text("RGB", {32, 20}));
    mixer.add(caps_text(above.format, {32, 20}), above.pad);
    mixer.play();
    mixer.push(0, Buffer(gst_buffer_new_allocate(nullptr, 100, nullptr)));  // too small
    mixer.push(1, noise(mixer.video(1)));
    for (int i = 0; i < 2; ++i) mixer.end(i);
    EXPECT_EQ(mixer.rest().size(), 1u);
    const std::string text = mixer.warning(0).text;
    if (!above.hides) EXPECT_CONTAINS(text, "sink_0");
    EXPECT_EQ(text.empty(), above.hides);
  }
}

// Backgrounds, scaling, layouts
// -------------------------------------------------------------------------------------------------

TEST(draws_its_background, Each::run) {
  const Size size{33, 19};
  for (const std::string& format : formats(run)) {
    const GstVideoInfo video = video_info(format, size);
    for (const auto& [settings, color] : {std::pair{"background=black", std::array<double, 3>{0, 0, 0}},
                                          {"background=white", {1, 1, 1}},
                                          {"background=color background-color=0xffcc6633", {0.8, 0.4, 0.2}}}) {
      at(format + " " + settings);
      Picture result = composed(run, settings, caps_text(format, size), {{caps_text("RGB", {4, 4}), "alpha=0"}});
      EXPECT_WITHIN(result, plain(video, samples_of(video, color[0], color[1], color[2])), 1);
    }
  }
  for (const char* format : {"RGBA", "ARGB64_LE"}) {
    at(format);
    const Size small{5, 3};
    const GstVideoInfo video = video_info(format, small);
    const int most = format == std::string("RGBA") ? 255 : 65535;
    const Layer none{caps_text("RGB", {4, 4}), "alpha=0"};
    EXPECT_SAME(Picture{composed(run, "background=transparent", caps_text(format, small), {none})[3]},
                Picture{plain(video, {0})[3]});
    EXPECT_SAME(composed(run, "background=color background-color=0x80ff0000", caps_text(format, small), {none}),
                plain(video, {most, 0, 0, most / 255 * 128}));
  }
  at("checker");
  const Picture result = composed(run, "", caps_text("GRAY8", size), {{caps_text("RGB", {4, 4}), "alpha=0"}});
  EXPECT_SAME(result, drawn(result, [](int x, int y) { return Color{(x / 8 + y / 8) % 2 ? 160.0 : 80.0, 0, 0, 0}; }));
}

TEST(scales_with_each_interpolation, Each::run) {
  const Size from{24, 16};
  for (const auto& [width, height] : {std::pair{48, 40}, {12, 8}, {31, 9}, {24, 33}, {7, 16}})
    for (const char* how : {"nearest", "bilinear", "area"}) {
      at(how + std::string(" to ") + std::to_string(width) + "x" + std::to_string(height));
      const Size size{width, height};
      const std::vector<Layer> layers{{caps_text("RGB", from), "operator=source width=" + std::to_string(width) +
                                                                   " height=" + std::to_string(height)}};
      const Picture source = source_picture(layers[0], 1);
      const Picture result = composed(run, std::string("interpolation=") + how, caps_text("RGB", size), layers);
      const auto read = [&](std::size_t c, int x, int y) {
        return double(sample(source, c, std::clamp(x, 0, from.width - 1), std::clamp(y, 0, from.height - 1)));
      };
      // The source samples and their weights along one axis, for one pixel of the output.
      const auto weights = [&](int i, int out, int in) {
        std::vector<std::pair<int, double>> taps;
        const double ratio = double(in) / out, centre = (i + 0.5) * ratio;
        if (how == std::string("nearest")) {
          taps.push_back({int(std::floor(centre + 1e-9)), 1});
        } else if (how == std::string("area") && in > out) {
          for (int k = int(i * ratio); k < in && k < (i + 1) * ratio; ++k)
            taps.push_back({k, (std::min<double>(k + 1, (i + 1) * ratio) - std::max<double>(k, i * ratio)) / ratio});
        } else {
          const double left = std::floor(centre - 0.5), part = centre - 0.5 - left;
          taps = {{int(left), 1 - part}, {int(left) + 1, part}};
        }
        return taps;
      };
      EXPECT_WITHIN(result,
                    drawn(result,
                          [&](int x, int y) {
                            Color sum{};
                            for (const auto& [sx, wx] : weights(x, width, from.width))
                              for (const auto& [sy, wy] : weights(y, height, from.height))
                                for (std::size_t c = 0; c < 3; ++c) sum[c] += wx * wy * read(c, sx, sy);
                            return sum;
                          }),
                    how == std::string("nearest") ? 0 : 1);
    }
}

TEST(follows_each_sizing_policy, Each::run) {
  // A frame of 40×20. Its left and right quarters have other colours than its middle.
  const auto draw = [](const GstVideoInfo& video, int) {
    Buffer frame = flat(video, {0, 0, 0});
    GstVideoFrame map;
    EXPECT(gst_video_frame_map(&map, &video, frame.get(), GST_MAP_WRITE));
    for (int y = 0; y < 20; ++y)
      for (int x = 0; x < 40; ++x)
        static_cast<guint8*>(GST_VIDEO_FRAME_PLANE_DATA(&map, 0))[y * GST_VIDEO_FRAME_PLANE_STRIDE(&map, 0) + 3 * x +
                                                                  (x < 10   ? 0
                                                                   : x < 30 ? 1
                                                                            : 2)] = 255;
    gst_video_frame_unmap(&map);
    return frame;
  };
  const auto shown = [&](const char* pad) {
    Layer layer(caps_text("RGB", {40, 20}), std::string("operator=source ") + pad);
    layer.draw = draw;
    return composed(run, "background=white interpolation=nearest", caps_text("RGB", {60, 60}), {layer});
  };
  const auto expect = [&](const char* pad, const cv::Rect& place, const std::function<std::size_t(int)>& channel) {
    at(pad);
    const Picture result = shown(pad);
    EXPECT_SAME(result, drawn(result, [&](int x, int y) {
                  if (!place.contains({x, y})) return Color{255, 255, 255, 0};
                  Color color{};
                  color[channel(x - place.x)] = 255;
                  return color;
                }));
  };
  const auto thirds = [](int left, int right) {
    return [=](int x) { return std::size_t(x < left ? 0 : x < right ? 1 : 2); };
  };
  expect("width=20 height=20 xpos=5 ypos=7", {5, 7, 20, 20}, thirds(5, 15));
  expect("width=20 height=20 xpos=5 ypos=7 sizing-policy=none", {5, 7, 20, 20}, thirds(5, 15));
  expect("width=20 height=20 xpos=5 ypos=7 sizing-policy=keep-aspect-ratio", {5, 12, 20, 10}, thirds(5, 15));
  expect("width=20 height=20 xpos=5 ypos=7 sizing-policy=fill", {5, 7, 20, 20}, thirds(0, 20));
  expect("width=40 height=40 sizing-policy=keep-aspect-ratio", {0, 10, 40, 20}, thirds(10, 30));
  expect("width=40 height=40 sizing-policy=fill", {0, 0, 40, 40}, thirds(0, 40));
  expect("width=60 height=20 sizing-policy=keep-aspect-ratio", {10, 0, 40, 20}, thirds(10, 30));
  expect("sizing-policy=fill", {0, 0, 40, 20}, thirds(10, 30));
}

TEST(lays_out_a_grid, Each::run) {
  struct Case {
    int pads, columns, rows, gap;
    int expected_columns, expected_rows;
  };
  for (const Case& c : {Case{36, 6, 6, 0, 6, 6},
                        {36, 0, 0, 0, 6, 6},
                        {5, 0, 0, 3, 3, 2},
                        {4, 4, 0, 2, 4, 1},
                        {4, 0, 4, 2, 1, 4},
                        {1, 0, 0, 0, 1, 1},
                        {7, 3, 2, 1, 3, 2},
                        {2, 3, 3, 5, 3, 3}}) {
    at(std::to_string(c.pads) + " pads in " + std::to_string(c.columns) + "x" + std::to_string(c.rows));
    const Size size{211, 173};
    std::vector<Layer> layers;
    const auto color = [](int i) { return Color{double(7 * i % 256), double(255 - 7 * i), double(i), 255}; };
    for (int i = 0; i < c.pads; ++i) layers.push_back({caps_text("RGB", {31 + i, 17 + 3 * i}), "", integers(color(i))});
    const Picture result = composed(run,
                                    "layout=grid background=white columns=" + std::to_string(c.columns) +
                                        " rows=" + std::to_string(c.rows) + " gap=" + std::to_string(c.gap),
                                    caps_text("RGB", size), layers);
    const int cells = c.expected_columns * c.expected_rows;
    const double step_x = double(size.width + c.gap) / c.expected_columns,
                 step_y = double(size.height + c.gap) / c.expected_rows;
    std::vector<cv::Rect> found(std::size_t(c.pads), cv::Rect());
    for (int y = 0; y < size.height; ++y)
      for (int x = 0; x < size.width; ++x)
        if (const int i = sample(result, 2, x, y); i < c.pads && integers(pixel(result, x, y)) == integers(color(i)))
          found[std::size_t(i)] |= cv::Rect(x, y, 1, 1);
    for (int i = 0; i < c.pads; ++i) {
      const cv::Rect& rect = found[std::size_t(i)];
      at(std::to_string(i) + " of " + std::to_string(c.pads) + " pads in " + std::to_string(c.columns) + "x" +
         std::to_string(c.rows));
      if (i >= cells) {
        EXPECT(rect.empty());
        continue;
      }
      EXPECT_EQ(rect.size(), found[0].size());
      const int column = i % c.expected_columns, row = i / c.expected_columns;
      // Cells have whole pixels, so less than one pixel for each cell is left over.
      EXPECT(std::abs(rect.width - (step_x - c.gap)) <= 1 && std::abs(rect.height - (step_y - c.gap)) <= 1);
      EXPECT(std::abs(rect.x - column * step_x) <= c.expected_columns &&
             std::abs(rect.y - row * step_y) <= c.expected_rows);
      if (column > 0 && i > 0) EXPECT(rect.x - found[std::size_t(i - 1)].br().x >= c.gap);
      if (row > 0) EXPECT(rect.y - found[std::size_t(i - c.expected_columns)].br().y >= c.gap);
    }
  }
}

TEST(honours_sizing_in_a_grid, Each::run) {
  const Picture result = composed(run, "layout=grid background=black", caps_text("RGB", {80, 40}),
                                  {{caps_text("RGB", {10, 5}), "sizing-policy=keep-aspect-ratio", {255, 0, 0}},
                                   {caps_text("RGB", {10, 5}), "xpos=3 ypos=2 width=5 height=5", {0, 255, 0}}});
  EXPECT_SAME(result, drawn(result, [](int x, int y) {
                return x >= 40 ? Color{0, 255, 0, 0} : y >= 10 && y < 30 ? Color{255, 0, 0, 0} : Color{0, 0, 0, 0};
              }));
}

// Memories
// ---------------------------------------------------------------------------------------------------------------------

TEST(accepts_system_and_cuda_memory, Each::run) {
  if (run.backend != "cuda") return;
  const Size size{64, 48};
  const std::vector<Layer> layers{{caps_text("NV12", size)},
                                  {caps_text("RGBA", {32, 24}), "xpos=10 ypos=6 alpha=0.5"},
                                  {caps_text("I420", {20, 20}), "xpos=40 operator=average alpha=0.65 key=first-pixel"}};
  for (const char* out : {"NV12", "RGBA"})
    for (int on_device = 0; on_device < 16; ++on_device) {
      at(out + std::string(" ") + std::to_string(on_device));
      Mixer mixer(run, "background=black", caps_text(out, size, "", on_device & 8 ? cuda_memory : nullptr));
      for (int i = 0; i < 3; ++i)
        mixer.add(layers[std::size_t(i)].caps, layers[std::size_t(i)].pad, on_device >> i & 1);
      mixer.play();
      feed(mixer, layers);
      const std::vector<Output> all = mixer.rest();
      EXPECT_EQ(all.size(), 1u);
      EXPECT_WITHIN(all[0].shown(), composed({run.element, "cpu"}, "background=black", caps_text(out, size), layers),
                    1);
    }
}

TEST(equals_the_other_backend, Each::run) {
  if (run.backend != "cuda") return;
  for (const std::string& format : formats(run)) {
    at(format);
    const std::vector<Layer> layers{{caps_text("RGB", {61, 43})},
                                    {caps_text(format, {37, 29}), "xpos=-5 ypos=9 width=55 height=31 alpha=0.8"},
                                    {caps_text("RGBA", {20, 20}), "xpos=40 operator=screen"}};
    const std::string out = caps_text(format, {61, 43});
    EXPECT_WITHIN(composed(run, "", out, layers), composed({run.element, "cpu"}, "", out, layers), 1);
  }
}

int main() { return run_tests("blend", "cudablend"); }
