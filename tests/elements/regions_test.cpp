// SPDX-License-Identifier: LGPL-2.1-or-later
// Tests which part of a frame each filter changes: boxes of metas with region-margin and region-shape, and the shapes
// of the property `regions`.

#include "tests/elements/analytics.hpp"
#include "tests/kernels/reference/picture.hpp"

using namespace cudavision;
using namespace cudavision::test;

namespace {

const Size size{45, 37};
using Shape = Region;  ///< with one shape

Shape box(int x, int y, int width, int height) { return {Region::Mode::inside, {{x, y, width, height}}}; }
Shape ellipse(int x, int y, int width, int height) { return {Region::Mode::inside, {}, {{x, y, width, height}}}; }
Shape polygon(const Polygon& corners) { return {Region::Mode::inside, {}, {}, {corners}}; }

/// A mask of the samples of a component whose pixels all lie in a shape or, without `inside`, all lie outside.
cv::Mat chosen(const GstVideoInfo& video, int component, const std::vector<Shape>& shapes, bool inside) {
  Region region{inside ? Region::Mode::inside : Region::Mode::outside};
  for (const Shape& shape : shapes) {
    region.rects.insert(region.rects.end(), shape.rects.begin(), shape.rects.end());
    region.ellipses.insert(region.ellipses.end(), shape.ellipses.begin(), shape.ellipses.end());
    region.polygons.insert(region.polygons.end(), shape.polygons.begin(), shape.polygons.end());
  }
  const Geometry geometry{{}, GST_VIDEO_INFO_WIDTH(&video), GST_VIDEO_INFO_HEIGHT(&video)};
  reference::Component subsampled{};
  subsampled.shift_x = int(GST_VIDEO_FORMAT_INFO_W_SUB(video.finfo, component));
  subsampled.shift_y = int(GST_VIDEO_FORMAT_INFO_H_SUB(video.finfo, component));
  cv::Mat mask(GST_VIDEO_INFO_COMP_HEIGHT(&video, component), GST_VIDEO_INFO_COMP_WIDTH(&video, component), CV_8U);
  for (int y = 0; y < mask.rows; ++y)
    for (int x = 0; x < mask.cols; ++x) mask.at<uchar>(y, x) = reference::in_region(region, geometry, subsampled, x, y);
  return mask;
}

/// A frame of noise with two regions of interest. The second one extends beyond the frame.
Buffer frame_with_regions(const GstVideoInfo& video) {
  Buffer frame = noise(video);
  gst_buffer_add_video_region_of_interest_meta(frame.get(), "face", 4, 6, 12, 8);
  gst_buffer_add_video_region_of_interest_meta(frame.get(), "car", 30, 15, 40, 100);
  return frame;
}

/// A frame of noise in I420 with a crop at (6, 4), and the cropped picture.
std::pair<Buffer, Buffer> cropped_frame() {
  const GstVideoInfo whole = video_info("I420", {64, 48});
  Buffer frame = noise(whole);
  Buffer cropped = cut(whole, frame.get(), {6, 4, size.width, size.height});
  add_crop(frame.get(), whole, {6, 4, size.width, size.height});
  return {std::move(frame), std::move(cropped)};
}

/// Checks that `actual` equals the output of the element for the whole frame in the shapes, and the input elsewhere.
void expect_region(const Run& run, const GstVideoInfo& video, const Buffer& frame, const Picture& actual,
                   const std::vector<Shape>& shapes, bool inside) {
  const Picture input = picture(frame.get(), video);
  const Picture whole = profile(run.element).region_counts ? actual : filtered(run, "", video, frame);
  Picture expected;
  for (std::size_t c = 0; c < input.size(); ++c) {
    cv::Mat result = input[c].clone();
    whole[c].copyTo(result, chosen(video, int(c), shapes, inside));
    expected.push_back(result);
  }
  EXPECT_SAME(actual, expected);
}

struct Mode {
  const char* settings;
  std::vector<Shape> shapes;
};

}  // namespace

TEST(changes_the_shapes_alone, Each::run) {
  if (profile(run.element).whole_frame) return;
  const Shape own = box(2, 3, 9, 7), corner = polygon({{20, 5}, {40, 9}, {24, 30}});
  const std::vector<Mode> modes = {
      {"", {box(4, 6, 12, 8), box(30, 15, 40, 100)}},
      {"roi-type=face", {box(4, 6, 12, 8)}},
      {"roi-type=tree", {}},
      {"region-margin=0.25", {box(1, 4, 18, 12), box(20, -10, 60, 150)}},
      {"region-margin=0.25 roi-type=face", {box(1, 4, 18, 12)}},
      {"region-margin=10 roi-type=face", {box(-116, -74, 252, 168)}},
      {"region-shape=ellipse", {ellipse(4, 6, 12, 8), ellipse(30, 15, 40, 100)}},
      {"region-shape=ellipse region-margin=0.5 roi-type=face", {ellipse(-2, 2, 24, 16)}},
      {"roi-type=none regions=2,3,9,7", {own}},
      {"roi-type=none regions=\"20,5 40,9 24,30\"", {corner}},
      {"roi-type=none region-shape=ellipse region-margin=1 regions=\"2,3,9,7; 20,5 40,9 24,30\"", {own, corner}},
      {"regions=\"2,3,9,7;20,5 40,9 24,30\"", {own, corner, box(4, 6, 12, 8), box(30, 15, 40, 100)}},
      {"roi-type=face region-shape=ellipse regions=\"20,5 40,9 24,30\"", {corner, ellipse(4, 6, 12, 8)}},
      {"roi-type=none regions=0.2,0.25,0.4,0.5", {box(9, 9, 18, 19)}},
      {"roi-type=none regions=\"0.0,0.0 1.0,0.0 1.0,1.0\"", {polygon({{0, 0}, {45, 0}, {45, 37}})}},
      {"roi-type=none regions=-5,-5,20,20;40,30,100,100", {box(-5, -5, 20, 20), box(40, 30, 100, 100)}},
  };
  for (const char* format : {"GRAY8", "I420", "NV12", "YUY2", "Y42B", "RGB", "ARGB", "P010_10LE"})
    for (const Mode& mode : modes)
      for (bool inside : {true, false}) {
        const std::string settings = std::string(inside ? "region=roi " : "region=outside-roi ") + mode.settings;
        at(std::string(format) + " " + settings);
        const GstVideoInfo video = video_info(format, size);
        const Buffer frame = frame_with_regions(video);
        expect_region(run, video, frame, filtered(run, settings, video, frame), mode.shapes, inside);
      }
}

/// Detectors use negative numbers for a box that begins left of or above the frame.
TEST(takes_boxes_that_begin_outside, Each::run) {
  if (profile(run.element).whole_frame) return;
  const guint most = G_MAXUINT;
  const std::vector<std::pair<cv::Rect_<gint64>, Shape>> boxes = {
      {{-10, 6, 20, 8}, box(-10, 6, 20, 8)},
      {{4, -7, 12, 20}, box(4, -7, 12, 20)},
      {{-5, -5, 60, 60}, box(0, 0, 45, 37)},
      {{-10, -10, most, most}, box(0, 0, 45, 37)},
      {{20, 10, most, 9}, box(20, 10, 25, 9)},
      {{-30, 5, 20, 8}, box(0, 0, 0, 0)},  // left of the frame
      {{G_MININT32, G_MININT32, 9, 9}, box(0, 0, 0, 0)},
      {{3000000000, 5, 9, 9}, box(0, 0, 0, 0)},  // right of the frame, or far left
      {{5, 5, 0, 9}, box(0, 0, 0, 0)},
      {{5, 5, 9, 0}, box(0, 0, 0, 0)},
  };
  for (const char* format : {"I420", "RGB"}) {
    const GstVideoInfo video = video_info(format, size);
    for (const auto& [rect, shape] : boxes)
      for (bool inside : {true, false}) {
        at(std::string(format) + " " + show(rect));
        Buffer frame = noise(video);
        gst_buffer_add_video_region_of_interest_meta(frame.get(), "face", guint(rect.x), guint(rect.y),
                                                     guint(rect.width), guint(rect.height));
        expect_region(run, video, frame, filtered(run, inside ? "region=roi" : "region=outside-roi", video, frame),
                      {shape}, inside);
      }
    at("margin and ellipse");
    Buffer frame = noise(video);
    gst_buffer_add_video_region_of_interest_meta(frame.get(), "face", guint(-10), guint(-4), 20, 16);
    expect_region(run, video, frame, filtered(run, "region=roi region-margin=0.25 region-shape=ellipse", video, frame),
                  {ellipse(-15, -8, 30, 24)}, true);
  }
}

/// A box that the crop excludes would have no size in the picture.
TEST(removes_boxes_that_the_crop_excludes, Each::run) {
  auto [frame, cropped] = cropped_frame();
  for (const cv::Rect& box : {cv::Rect(0, 0, 6, 40), {10, 0, 9, 4}, {51, 10, 9, 9}, {10, 41, 9, 6}, {20, 20, 9, 9}})
    gst_buffer_add_video_region_of_interest_meta(frame.get(), "face", guint(box.x), guint(box.y), guint(box.width),
                                                 guint(box.height));
  Rig rig(run, "", caps_of(video_info("I420", size)));
  const Buffer result = rig.push(std::move(frame));
  std::vector<cv::Rect> left;
  for (const auto* roi : rois_of(result.get()))
    if (g_quark_from_string("face") == roi->roi_type) left.push_back(box_of(roi));
  if (gst_buffer_get_video_crop_meta(result.get())) return;  // the frame passed with its crop
  EXPECT_EQ(left.size(), 1u);
  EXPECT_EQ(left[0], cv::Rect(14, 16, 9, 9));
}

/// The frame becomes smaller than shapes given in pixels. An element that hides something ends the stream; an element
/// that counts continues without the shape until it fits again.
TEST(survives_a_change_of_size_with_shapes_in_pixels, Each::run) {
  if (profile(run.element).whole_frame) return;
  const GstVideoInfo large = video_info("I420", {90, 74}), little = video_info("I420", size);
  const struct {
    const char *regions, *named;
    bool fits;
  } rows[] = {{"50,40 80,40 80,70", "50,40 80,40 80,70", false},
              {"60,50,20,20", "60,50,20,20", false},
              {"5,5,20,20;60,50,20,20", "60,50,20,20", false},
              {"30,30,40,40", "", true},
              {"0.5,0.5,0.4,0.4", "", true},
              {"1,1 40,3 20,30", "", true}};
  for (const auto& row : rows) {
    at(row.regions);
    Rig rig(run, std::string("region=roi roi-type=none regions=\"") + row.regions + "\"", caps_of(large));
    const Picture first = rig.filter(noise(large));
    if (row.fits || run.element == "cudahistogram") {  // cudahistogram counts, and hides nothing
      rig.caps(caps_of(little));
      rig.filter(noise(little));
      if (row.fits) {
        EXPECT_EQ(rig.warning().text, "");
      } else {
        const std::string text = rig.warning().text;
        EXPECT_CONTAINS(text, std::string("regions has ") + row.named + ", outside the frame of 45×37");
        EXPECT_CONTAINS(text, "no effect until it fits");
        EXPECT_EQ(rig.warning().text, "");
      }
      rig.caps(caps_of(large));
      EXPECT_SAME(rig.filter(noise(large)), first);
      EXPECT_EQ(rig.warning().text, "");
    } else {
      const Caps smaller(gst_caps_from_string(caps_of(little).c_str()));
      gst_harness_push_event(rig.harness(), gst_event_new_caps(smaller.get()));
      EXPECT(gst_harness_push(rig.harness(), noise(little).release()) != GST_FLOW_OK);
      const std::string text = rig.error().text;
      EXPECT_CONTAINS(text, std::string("regions has ") + row.named + ", outside the frame of 45×37");
      EXPECT_CONTAINS(text, "coordinates as shares of the frame, such as 0.5, fit every size");
    }
  }
}

/// Regions move with every frame, and the properties change while frames flow.
TEST(follows_boxes_and_properties_while_playing, Each::run) {
  if (profile(run.element).whole_frame) return;
  const GstVideoInfo video = video_info("I420", size);
  Rig rig(run, "region=roi", caps_of(video));
  const auto expect = [&](const char* settings, int x, const std::vector<Shape>& shapes) {
    at(std::string(settings) + " " + show(x));
    if (*settings) set(rig.element(), settings);
    Buffer frame = noise(video, unsigned(x));
    gst_buffer_add_video_region_of_interest_meta(frame.get(), "face", guint(x), 8, 12, 8);
    const Picture actual = rig.filter(frame);
    expect_region(run, video, frame, actual, shapes, true);
  };
  expect("", 4, {box(4, 8, 12, 8)});
  expect("region-margin=0.5", 6, {box(0, 4, 24, 16)});
  expect("", 9, {box(3, 4, 24, 16)});
  expect("region-shape=ellipse", 11, {ellipse(5, 4, 24, 16)});
  expect("regions=\"1,1 40,3 20,30\"", 13, {ellipse(7, 4, 24, 16), polygon({{1, 1}, {40, 3}, {20, 30}})});
  expect("regions=0,0,5,5 region-shape=rectangle region-margin=0", 15, {box(15, 8, 12, 8), box(0, 0, 5, 5)});
  expect("regions=", 17, {box(17, 8, 12, 8)});
  expect("region=frame", 19, {box(0, 0, size.width, size.height)});
}

/// Boxes of metas are relative to the uncropped frame; the shapes of `regions` are relative to the picture.
TEST(takes_the_crop_into_account, Each::run) {
  if (profile(run.element).whole_frame) return;
  for (const char* shape : {"rectangle", "ellipse"}) {
    at(shape);
    const GstVideoInfo video = video_info("I420", size);
    auto [frame, cropped] = cropped_frame();
    gst_buffer_add_video_region_of_interest_meta(frame.get(), "across", 2, 0, 12, 10);
    const std::string settings = std::string("region=roi region-margin=0.25 regions=30,20,9,9 region-shape=") + shape;
    Rig rig(run, settings, caps_of(video));
    const Buffer result = rig.push(std::move(frame));
    const bool round = std::string(shape) == "ellipse";
    // 12×10 at (2, 0) grows by 3 and by round(2.5) = 3 on each side.
    expect_region(run, video, cropped, picture(result.get(), video),
                  {round ? ellipse(-7, -7, 18, 16) : box(-7, -7, 18, 16), box(30, 20, 9, 9)}, true);
  }
}

/// Regions that do not fit the frame do not stop a stream if they have no effect. With region=roi they stop it, see
/// profiles.hpp.
TEST(takes_any_regions_if_the_whole_frame_counts, Each::run) {
  Rig rig(run, "regions=\"0,0 60,10 10,20\"", caps_of(video_info("I420", size)));
  rig.filter(noise(rig.video()));
  EXPECT_EQ(rig.error().text, "");
}

TEST(says_once_what_has_no_effect, Each::run) {
  const GstVideoInfo video = video_info("I420", size);
  const Buffer frame = noise(video);
  for (const char* setting : {"regions=1,1,5,5", "region-margin=0.5", "region-shape=ellipse"}) {
    at(setting);
    Rig rig(run, setting, caps_of(video));
    rig.filter(frame);
    const std::string name = std::string(setting).substr(0, std::string(setting).find('='));
    EXPECT_EQ(rig.warning().text, name + " has no effect with region=frame, where the whole frame is processed");
    set(rig.element(), "async-depth=0");
    rig.filter(frame);
    EXPECT_EQ(rig.warning().text, "");
    if (profile(run.element).whole_frame) continue;
    set(rig.element(), "region=roi");
    rig.filter(frame);
    EXPECT_EQ(rig.warning().text, "");
  }
}

#if CUDAVISION_HAVE_ANALYTICS
/// Objects found by a detector set the region: alone, filtered by type, and together with regions of interest at the
/// same place.
TEST(follows_detected_objects, Each::run) {
  if (profile(run.element).whole_frame) return;
  const GstVideoInfo video = video_info("I420", size);
  const std::vector<Mode> modes = {
      {"region=roi", {box(4, 6, 12, 8), box(30, 15, 40, 100), box(-6, 20, 16, 9)}},
      {"region=roi roi-type=face", {box(4, 6, 12, 8)}},
      {"region=roi roi-type=dog region-shape=ellipse region-margin=0.25", {ellipse(-10, 18, 24, 13)}},
      {"region=roi roi-type=tree", {}},
  };
  for (const Mode& mode : modes) {
    at(mode.settings);
    Buffer frame = frame_with_regions(video);
    GstAnalyticsRelationMeta* meta = gst_buffer_add_analytics_relation_meta(frame.get());
    GstAnalyticsODMtd object;
    EXPECT(gst_analytics_relation_meta_add_od_mtd(meta, g_quark_from_string("face"), 4, 6, 12, 8, 0.9f, &object));
    EXPECT(gst_analytics_relation_meta_add_od_mtd(meta, g_quark_from_string("dog"), -6, 20, 16, 9, 0.5f, &object));
    GstAnalyticsTrackingMtd tracking;  // metadata of another type
    EXPECT(gst_analytics_relation_meta_add_tracking_mtd(meta, 7, GST_SECOND, &tracking));
    Rig rig(run, mode.settings, caps_of(video));
    const Buffer result = rig.push(Buffer(gst_buffer_copy(frame.get())));
    expect_region(run, video, frame, picture(result.get(), video), mode.shapes, true);
    EXPECT(gst_buffer_get_analytics_relation_meta(result.get()));
  }
}

/// The results of a detector and a tracker for a frame: two detections, the second one rotated and partly outside the
/// crop at (6, 4); the track of the first, the class of the second, and three more tracks, so that the meta has to
/// grow.
struct Detected {
  guint face, dog, track, kind;
};
Detected add_detections(GstBuffer* frame) {
  GstAnalyticsRelationMeta* meta = gst_buffer_add_analytics_relation_meta(frame);
  GstAnalyticsMtd face, dog, track, kind, other;
  EXPECT(gst_analytics_relation_meta_add_od_mtd(meta, g_quark_from_string("face"), 20, 14, 12, 8, 0.75f, &face));
  EXPECT(gst_analytics_relation_meta_add_tracking_mtd(meta, 7, 3 * GST_SECOND, &track));
#if GST_CHECK_VERSION(1, 26, 0)
  EXPECT(gst_analytics_relation_meta_add_oriented_od_mtd(meta, g_quark_from_string("dog"), 2, 0, 12, 10, 0.5f, 0.5f,
                                                         &dog));
#else
  EXPECT(gst_analytics_relation_meta_add_od_mtd(meta, g_quark_from_string("dog"), 2, 0, 12, 10, 0.5f, &dog));
#endif
  EXPECT(gst_analytics_relation_meta_add_one_cls_mtd(meta, 0.25f, g_quark_from_string("poodle"), &kind));
  for (int i = 0; i < 3; ++i) EXPECT(gst_analytics_relation_meta_add_tracking_mtd(meta, 8 + i, 0, &other));
  EXPECT(gst_analytics_relation_meta_set_relation(meta, GST_ANALYTICS_REL_TYPE_RELATE_TO, face.id, track.id));
  EXPECT(gst_analytics_relation_meta_set_relation(meta, GST_ANALYTICS_REL_TYPE_CONTAIN, dog.id, kind.id));
  EXPECT(gst_analytics_relation_meta_set_relation(meta, GST_ANALYTICS_REL_TYPE_IS_PART_OF, kind.id, dog.id));
  return {face.id, dog.id, track.id, kind.id};
}

/// Detections are relative to the uncropped frame. Where the crop is applied, they move, so that the next element finds
/// them at the right place, and keep their relations.
TEST(moves_detected_objects_with_the_crop, Each::run) {
  const GstVideoInfo video = video_info("I420", size);
  const bool has_regions = !profile(run.element).whole_frame;
  const std::string roi = has_regions ? "region=roi roi-type=face" : "";
  auto [frame, cropped] = cropped_frame();
  add_detections(frame.get());
  const std::string before = text_of(frame.get());
  std::string expected = before;
  const auto replace = [&](const char* from, const char* to) {
    expected.replace(expected.find(from), std::string(from).size(), to);
  };
  replace("face 20,14 12×8", "face 14,10 12×8");
  replace("dog 2,0 12×10", "dog -4,-4 12×10");

  Rig first(run, roi, caps_of(video));
  const Buffer result = first.push(Buffer(gst_buffer_copy(frame.get())));
  EXPECT(!gst_buffer_get_video_crop_meta(result.get()));
  EXPECT_EQ(text_of(result.get()), expected);
  EXPECT_EQ(text_of(frame.get()), before);
  if (has_regions) {
    Rig second(run, roi, caps_of(video));
    const Buffer again = second.push(Buffer(gst_buffer_copy(result.get())));
    expect_region(run, video, result, picture(again.get(), video), {box(14, 10, 12, 8)}, true);
    EXPECT_EQ(text_of(again.get()), expected);
  }

  // A frame that passes through keeps its crop, so its detections do not move.
  const std::string passing = profile(run.element).passing;
  if (passing.empty()) return;
  at(passing);
  Rig passes(run, passing, caps_of(video));
  const Buffer passed = passes.push(Buffer(gst_buffer_copy(frame.get())));
  EXPECT(gst_buffer_get_video_crop_meta(passed.get()));
  const std::string own = before.substr(0, before.rfind("; "));  // cudadiff adds its own detection
  EXPECT_EQ(text_of(passed.get()).substr(0, own.size()), own);
  if (!has_regions) return;
  Rig next(run, roi, caps_of(video));
  const Buffer later = next.push(Buffer(gst_buffer_copy(passed.get())));
  expect_region(run, video, cropped, picture(later.get(), video), {box(14, 10, 12, 8)}, true);
  EXPECT_EQ(text_of(later.get()), expected);
}

/// In frames with a crop, the boxes of cudadiff are at the right place, whether it passes the frames on or applies the
/// crop.
TEST(follows_motion_in_cropped_frames, Each::run) {
  if (profile(run.element).whole_frame) return;
  const GstVideoInfo video = video_info("I420", size), whole = video_info("I420", {64, 48});
  for (const char* output : {"passthrough", "overlay"}) {
    at(output);
    Rig motion({"cudadiff", run.backend},
               std::string("output=") + output + " attach-roi=true open-radius=0 cell-size=4 light-change-ratio=0");
    motion.caps_alone(caps_of(video));
    Buffer out;
    for (const cv::Rect& moved : {cv::Rect(), cv::Rect(6 + 16, 4 + 8, 12, 8)}) {
      Buffer frame = flat(whole, {128});
      paint(whole, frame, moved, 250);
      add_crop(frame.get(), whole, {6, 4, size.width, size.height});
      out = motion.push(std::move(frame));
    }
    const bool passed = output == std::string("passthrough");
    EXPECT_EQ(text_of(out.get()), passed ? "motion 22,12 12×8 turned 0 1; " : "motion 16,8 12×8 turned 0 1; ");
    const auto rois = rois_of(out.get());  // leaves the detection alone
    EXPECT(!rois.empty() && gst_buffer_remove_meta(out.get(), GST_META_CAST(rois[0])));
    Rig second(run, "region=roi roi-type=motion", caps_of(video));
    const Buffer result = second.push(Buffer(gst_buffer_copy(out.get())));
    EXPECT_EQ(text_of(result.get()), "motion 16,8 12×8 turned 0 1; ");
    const Buffer cropped = passed ? cut(whole, out.get(), {6, 4, size.width, size.height}) : std::move(out);
    expect_region(run, video, cropped, picture(result.get(), video), {box(16, 8, 12, 8)}, true);
  }
}

#if GST_CHECK_VERSION(1, 26, 0)
/// A mask has a position, but cannot be moved. It is dropped, and the relations of the other metadata stay.
TEST(drops_masks_that_it_cannot_move, Each::run) {
  const GstVideoInfo video = video_info("I420", size), gray = video_info("GRAY8", {8, 8});
  auto [frame, cropped] = cropped_frame();
  GstAnalyticsRelationMeta* meta = gst_buffer_add_analytics_relation_meta(frame.get());
  GstAnalyticsMtd mask, face, track;
  Buffer shape = noise(gray);
  if (!gst_buffer_get_video_meta(shape.get()))
    gst_buffer_add_video_meta(shape.get(), GST_VIDEO_FRAME_FLAG_NONE, GST_VIDEO_FORMAT_GRAY8, 8, 8);
  guint region = 1;
  EXPECT(gst_analytics_relation_meta_add_segmentation_mtd(
      meta, gst_buffer_ref(shape.get()), GST_SEGMENTATION_TYPE_SEMANTIC, 1, &region, 20, 14, 12, 8, &mask));
  EXPECT(gst_analytics_relation_meta_add_od_mtd(meta, g_quark_from_string("face"), 20, 14, 12, 8, 0.75f, &face));
  EXPECT(gst_analytics_relation_meta_add_tracking_mtd(meta, 7, 0, &track));
  EXPECT(gst_analytics_relation_meta_set_relation(meta, GST_ANALYTICS_REL_TYPE_RELATE_TO, face.id, track.id));
  EXPECT(gst_analytics_relation_meta_set_relation(meta, GST_ANALYTICS_REL_TYPE_CONTAIN, face.id, mask.id));
  EXPECT_EQ(text_of(frame.get()), "segmentation; face 20,14 12×8 turned 0 0.75; track 7 since 0 seen 0; 1-" +
                                      show(int(GST_ANALYTICS_REL_TYPE_CONTAIN)) + "-0 1-" +
                                      show(int(GST_ANALYTICS_REL_TYPE_RELATE_TO)) + "-2 ");
  Rig rig(run, "", caps_of(video));
  const Buffer result = rig.push(std::move(frame));
  EXPECT_EQ(text_of(result.get()), "face 14,10 12×8 turned 0 0.75; track 7 since 0 seen 0; 0-" +
                                       show(int(GST_ANALYTICS_REL_TYPE_RELATE_TO)) + "-1 ");
  Rig plain(run);  // without a crop it stays
  plain.caps(caps_of(video));
  Buffer whole = noise(video);
  GstAnalyticsRelationMeta* own = gst_buffer_add_analytics_relation_meta(whole.get());
  EXPECT(gst_analytics_relation_meta_add_segmentation_mtd(
      own, gst_buffer_ref(shape.get()), GST_SEGMENTATION_TYPE_SEMANTIC, 1, &region, 20, 14, 12, 8, &mask));
  EXPECT_EQ(text_of(plain.push(std::move(whole)).get()), "segmentation; ");
}
#endif
#endif

/// The filters keep the parameters of a region. When GStreamer's videoconvert and videoscale (1.22 to 1.28) convert,
/// they drop the parameters: GstVideoMetaTransform, which they use, keeps only the box, the type and the id.
/// If this fails for a newer version, correct docs/metas.md and docs/troubleshooting.md.
TEST(keeps_parameters_of_regions_as_videoconvert_does_not, Each::run) {
  const GstVideoInfo video = video_info("I420", size);
  const std::string filter = run.element + " backend=" + run.backend + " " + profile(run.element).needs;
  struct Row {
    std::string behind;
    bool kept;
  };
  for (const Row& row :
       {Row{"identity", true}, Row{filter, true}, Row{"videoconvert ! capsfilter caps=video/x-raw,format=I420", true},
        Row{"videoconvert ! capsfilter caps=video/x-raw,format=RGBA", false},
        Row{"videoscale ! capsfilter caps=video/x-raw,width=90,height=74", false}}) {
    at(row.behind);
    const std::string motion = "cudadiff backend=" + run.backend +
                               " output=passthrough open-radius=0 cell-size=4 light-change-ratio=0 track-min-frames=1";
    GstHarness* harness = gst_harness_new_parse((motion + " ! " + row.behind).c_str());
    gst_harness_set_src_caps_str(harness, caps_of(video).c_str());
    Buffer out;
    for (int i = 0; i < 2; ++i) {
      Buffer frame = timed(flat(video, {20, 128, 128}), guint64(i) * GST_SECOND / 25);
      if (i) paint(video, frame, {16, 8, 12, 8}, 250);
      EXPECT_EQ(gst_harness_push(harness, frame.release()), GST_FLOW_OK);
      out.reset(gst_harness_pull(harness));
    }
    EXPECT(out != nullptr);
    const auto rois = rois_of(out.get());
    EXPECT(!rois.empty());
    GstVideoRegionOfInterestMeta* roi = rois[0];
    EXPECT_EQ(std::string(g_quark_to_string(roi->roi_type)), "motion");
    EXPECT_EQ(roi->id, 1);
    const int scale = row.behind.rfind("videoscale", 0) == 0 ? 2 : 1;
    EXPECT_EQ(box_of(roi), cv::Rect(16 * scale, 8 * scale, 12 * scale, 8 * scale));
    EXPECT_EQ(gst_video_region_of_interest_meta_get_param(roi, "motion") != nullptr, row.kept);
#if CUDAVISION_HAVE_ANALYTICS
    const std::string place = scale == 2 ? "32,16 24×16" : "16,8 12×8";
    // moved, scaled, and still related
    EXPECT_EQ(text_of(out.get()), "motion " + place + " turned 0 1; track 1 since 40000000 seen 40000000; 0-8-1 ");
#endif
    gst_harness_teardown(harness);
  }
}

int main() { return run_tests("regions"); }
