// SPDX-License-Identifier: LGPL-2.1-or-later
#include <opencv2/imgproc.hpp>

#include "kernels/convolve/cuda_schedule.hpp"
#include "tests/kernels/filters.hpp"
#include "tests/kernels/harness.hpp"
#include "tests/kernels/opencv.hpp"

namespace cudavision::test {
namespace {

const std::vector<std::pair<int, int>> small_kernels = {{1, 1}, {3, 3}, {5, 5}, {7, 7}, {3, 1},
                                                        {1, 7}, {2, 2}, {4, 6}, {9, 3}};
const std::vector<std::pair<int, int>> kernels = {{1, 1}, {3, 3}, {5, 5}, {7, 7},   {15, 15}, {3, 1},
                                                  {1, 7}, {2, 2}, {4, 6}, {16, 16}, {33, 31}, {63, 63}};
const std::vector<std::pair<int, int>> small_sizes = {{1, 1},  {2, 1},   {1, 2},   {3, 2},  {5, 7},
                                                      {17, 3}, {31, 33}, {64, 48}, {75, 20}};

enum class Weights { integer, zero_sum, wide, real, unit_sum, wide_real, rank1_integer, rank1_real };
constexpr int weights_count = 8;

std::vector<double> make_weights(Random& random, Weights kind, int width, int height) {
  std::vector<double> weights(std::size_t(width) * height), row(width), column(height);
  const auto integer = [&](int most) { return double(random.between(-most, most)); };
  const auto real = [&] { return random.unit() * 2 - 1; };
  const bool whole = kind == Weights::rank1_integer;
  for (double& weight : row) weight = whole ? integer(9) : real();
  for (double& weight : column) weight = whole ? integer(9) : real();
  double sum = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    switch (kind) {
      case Weights::integer:
        weights[i] = integer(12);
        break;
      case Weights::zero_sum:
        weights[i] = i + 1 < weights.size() ? integer(5) : -sum;
        break;
      case Weights::wide:
        weights[i] = i % 2 ? -weights[i - 1] + integer(1) : integer(100000000);
        break;
      case Weights::real:
        weights[i] = real();
        break;
      case Weights::unit_sum:
        weights[i] = random.unit();
        break;
      case Weights::wide_real:
        weights[i] = i % 2 ? -weights[i - 1] + real() : real() * 1e5;
        break;
      default:
        weights[i] = column[i / width] * row[i % width];
        break;
    }
    sum += weights[i];
  }
  if (kind == Weights::unit_sum)
    for (double& weight : weights) weight /= sum;
  return weights;
}

/// Randomises everything except the kernel and the border.
void randomise_options(Random& random, convolve::Params& params, Format format, int width, int height) {
  const bool gradient = params.preset == convolve::Preset::gradient;
  params.divisor = gradient ? random.pick<double>({0, 2, -4}) : random.pick<double>({0, 1, 1, 1, 2, 16, -3.5});
  params.bias = gradient ? random.pick<double>({0, 5, -20}) : random.pick<double>({0, 0, 10, -20.5, 100});
  params.absolute = random.below(3) == 0;
  params.flip = random.below(2);
  params.anchor_x = random.pick<int>({-1, -1, 0, width - 1, random.below(width)});
  params.anchor_y = random.pick<int>({-1, -1, 0, height - 1, random.below(height)});
  params.border_value = random_border_value(random, format);
  params.filter_alpha = random.below(2);
}

convolve::Params random_kernel(Random& random, Weights kind, std::pair<int, int> size, Format format) {
  convolve::Params params{convolve::Preset::custom, make_weights(random, kind, size.first, size.second), size.first,
                          size.second};
  randomise_options(random, params, format, size.first, size.second);
  return params;
}

class ConvolveSweep : public OnBackendWithFormat {
 protected:
  /// Tests case i of a sweep. Sizes, kinds of weights and borders take turns.
  void expect_kernel(Random& random, int i, std::pair<int, int> kernel, int kind, std::pair<int, int> size) const {
    convolve::Params params = random_kernel(random, Weights(kind % weights_count), kernel, format);
    params.border = borders[(i + i / weights_count + int(format)) % borders.size()].value;
    Case c = random_case(random, format, size);
    if (random.below(3) == 0) c.data = random.pick<Data>({Data::flat, Data::faint});
    expect_reference(backend, params, c, unsigned(i));
  }
};

TEST_P(ConvolveSweep, SizesEqualReference) {
  const int f = int(format);
  Random random(unsigned(f) + 300);
  for (int i = 0; i < rounds() * int(sizes.size()); ++i)
    expect_kernel(random, i, small_kernels[(i * 2 + i / 9 + f) % 9], i + f, sizes[i % sizes.size()]);
}

TEST_P(ConvolveSweep, KernelsEqualReference) {
  const int f = int(format);
  Random random(unsigned(f) + 400);
  for (int i = 0; i < rounds() * int(kernels.size()); ++i)
    expect_kernel(random, i, kernels[i % kernels.size()], i * 3 + i / 12 + f, small_sizes[(i * 2 + i / 9 + f) % 9]);
}

TEST_P(ConvolveSweep, PresetsEqualReference) {
  Random random(unsigned(format) + 500);
  for (const convolve::PresetInfo& preset : convolve::presets()) {
    if (preset.value == convolve::Preset::custom) continue;
    convolve::Params params;
    params.preset = preset.value;
    if (random.below(2)) randomise_options(random, params, format, preset.width, preset.height);
    params.border = borders[random.below(int(borders.size()))].value;
    expect_reference(backend, params, random_case(random, format, random.pick(small_sizes)), unsigned(preset.value));
  }
}

/// Aligned frames several blocks wide: the inner blocks have their own loop on CUDA.
TEST_P(ConvolveSweep, WideFramesEqualReference) {
  const int f = int(format);
  Random random(unsigned(f) + 700);
  for (int i = 0; i < 2 * rounds(); ++i) {
    const int side = 3 + 2 * ((i + f) % 3);
    convolve::Params params = random_kernel(random, Weights((i + f) % weights_count), {side, side}, format);
    params.border = borders[(i + i / 2 + f) % borders.size()].value;
    if (i % 3) params.absolute = params.filter_alpha = false;
    const Case c{{format, 1600, 40}, {0, 0, 256}, {0, 0, 256}, {}, Data::random};
    expect_reference(backend, params, c, unsigned(i));
  }
}

/// If no row of the frame is repeated outside it, nothing may be read there. Each case runs at both ends of the memory.
TEST_P(ConvolveSweep, BordersWithoutRowsEqualReference) {
  Random random(unsigned(format) + 800);
  unsigned seed = 0;
  for (Border border : {Border::fill, Border::copy})
    for (int side : {3, 5, 7})
      for (int width : {85, 150})
        for (int twice = 0; twice < 2; ++twice) {
          convolve::Params params = random_kernel(random, Weights::integer, {side, side}, format);
          params.border = border;
          expect_reference(backend, params, {{format, width, 40}, {0, 0, 16}, {0, 0, 16}, {}, Data::random}, ++seed);
        }
}

/// Separable integer kernels, 3×3 and one column wider, with sums up to both sides of 2^15, in rows of any length. The
/// CPU backend computes 3×3 kernels with small sums in 16 bits.
TEST_P(ConvolveSweep, SmallIntegersEqualReference) {
  Random random(unsigned(format) + 600);
  const std::vector<std::pair<int, int>> rows = {{1, 1}, {2, 5}, {17, 3}, {256, 4}, {341, 3}, {1025, 4}, {2051, 3}};
  for (int i = 0; i < 3 * int(rows.size()); ++i) {
    convolve::Params params;
    const std::vector<std::vector<double>> columns = {{1, 2, 1},       {3, 10, 3},   {-1, 0, 1},
                                                      {-32, -64, -32}, {32, 65, 31}, {127, 1, 0}};
    const std::vector<double>& column = columns[std::size_t(random.below(6))];
    params.kernel_width = i % 4 == 3 ? 4 : 3, params.kernel_height = 3;
    for (double y : column) {
      for (double x : {-1, random.between(-1, 1), 1}) params.weights.push_back(x * y);
      if (params.kernel_width == 4) params.weights.push_back(2 * y);
    }
    params.divisor = 1;
    params.bias = random.pick<double>({0, 0, -20, 127, 0.5, -600});
    params.absolute = i % 2;
    params.flip = random.below(2);
    params.anchor_x = random.between(-1, 2), params.anchor_y = random.between(-1, 2);
    params.border = borders[random.below(int(borders.size()))].value;
    params.border_value = random_border_value(random, format);
    params.filter_alpha = random.below(2);
    Case c = random_case(random, format, rows[std::size_t(i) % rows.size()]);
    c.data = random.pick<Data>({Data::random, Data::random, Data::max, Data::checkerboard});
    expect_reference(backend, params, c, unsigned(i));
  }
}
INSTANTIATE_FOR_FORMATS(ConvolveSweep, all_formats());

class ConvolveLarge : public OnBackendWithFormat {};

TEST_P(ConvolveLarge, EqualsReference) {
  Random random(9);
  convolve::Params params;
  for (Weights kind : {Weights::unit_sum, Weights::integer}) {
    params.weights = make_weights(random, kind, 5, 5);
    expect_reference(backend, params, {{format, 1920, 1080}, {0, 0, 256}, {}, {}, Data::random}, 3);
  }
}
const std::vector<Format> main_formats = {Format::NV12, Format::RGBA, Format::P010_10LE};
INSTANTIATE_FOR_FORMATS(ConvolveLarge, main_formats);

class ConvolveOracle : public testing::TestWithParam<Runner> {};

TEST_P(ConvolveOracle, OpenCVFilter2D) {
  if (GetParam().backend) SKIP_UNLESS_AVAILABLE(*GetParam().backend);
  Random random(11);
  for (const auto& [format, type] : opencv_types)
    for (const auto& [width, height] : small_kernels)
      for (const auto& [border, mode] : opencv_borders)
        for (const auto& [columns, rows] : {std::pair{67, 41}, std::pair{9, 10}}) {
          convolve::Params params{convolve::Preset::custom, make_weights(random, Weights::integer, width, height),
                                  width, height, 1};
          params.bias = random.between(-50, 50);
          params.anchor_x = random.between(-1, width - 1);
          params.anchor_y = random.between(-1, height - 1);
          params.border = border;
          params.filter_alpha = true;
          const Geometry geometry{format, columns, rows};
          const Picture src = make_picture(geometry, unsigned(width));
          Picture expected(geometry);
          cv::Mat result = mat_of(expected, type);
          cv::filter2D(mat_of(src, type), result, -1, cv::Mat(height, width, CV_64F, params.weights.data()),
                       {params.anchor_x, params.anchor_y}, params.bias, mode);
          ASSERT_EQ(GetParam().check(params, src, expected), "") << info(format).name << "\n" << describe(params);
        }
}
INSTANTIATE_FOR_RUNNERS(ConvolveOracle);

TEST(ConvolvePresets, TableIsAsSpecified) {
  using Values = std::vector<double>;
  const std::vector<std::tuple<convolve::Preset, const char*, double, Values>> specified = {
      {convolve::Preset::identity, "identity", 1, {}},
      {convolve::Preset::box, "box", 9, {1, 1, 1, 1, 1, 1, 1, 1, 1}},
      {convolve::Preset::sharpen, "sharpen", 1, {-5, 3, -5, 3, 9, 3, -5, 3, -5}},
      {convolve::Preset::sharpen_5, "sharpen-5", 1, {0,  -1, 1,  -1, 0,  -1, 1,  -1, 1,  -1, 0,  -1, 8,
                                                     -1, 0,  -1, 1,  -1, 1,  -1, 0,  -1, 1,  -1, 0}},
      {convolve::Preset::unsharp, "unsharp", 256, {-1,  -4, -6, -4,  -1,  -4,  -16, -24, -16, -4, -6, -24, 476,
                                                   -24, -6, -4, -16, -24, -16, -4,  -1,  -4,  -6, -4, -1}},
      {convolve::Preset::laplacian, "laplacian", 1, {0, 1, 0, 1, -4, 1, 0, 1, 0}},
      {convolve::Preset::laplacian_8, "laplacian-8", 1, {1, 1, 1, 1, -8, 1, 1, 1, 1}},
      {convolve::Preset::sobel_x, "sobel-x", 1, {-1, 0, 1, -2, 0, 2, -1, 0, 1}},
      {convolve::Preset::sobel_y, "sobel-y", 1, {-1, -2, -1, 0, 0, 0, 1, 2, 1}},
      {convolve::Preset::scharr_x, "scharr-x", 1, {-3, 0, 3, -10, 0, 10, -3, 0, 3}},
      {convolve::Preset::scharr_y, "scharr-y", 1, {-3, -10, -3, 0, 0, 0, 3, 10, 3}},
      {convolve::Preset::prewitt_x, "prewitt-x", 1, {-1, 0, 1, -1, 0, 1, -1, 0, 1}},
      {convolve::Preset::prewitt_y, "prewitt-y", 1, {-1, -1, -1, 0, 0, 0, 1, 1, 1}},
      {convolve::Preset::emboss, "emboss", 1, {-2, -1, 0, -1, 1, 1, 0, 1, 2}},
      {convolve::Preset::gradient, "gradient", 1, {-1, 0, 1, -2, 0, 2, -1, 0, 1}},
  };
  EXPECT_EQ(specified.size() + 1, convolve::presets().size()) << "all but `custom` are here";
  for (const auto& [preset, nick, divisor, weights] : specified) {
    const convolve::PresetInfo& row = convolve::presets().at(std::size_t(preset));
    EXPECT_EQ(row.value, preset);
    EXPECT_STREQ(row.nick, nick);
    EXPECT_EQ(row.divisor, divisor) << nick;
    EXPECT_TRUE(weights.empty() || row.weights == weights) << nick;
  }
  EXPECT_EQ(convolve::presets().at(std::size_t(convolve::Preset::gradient)).vertical,
            convolve::presets().at(std::size_t(convolve::Preset::sobel_y)).weights);
  for (const convolve::PresetInfo& row : convolve::presets()) {
    EXPECT_EQ(row.weights.size(), std::size_t(row.width) * row.height) << row.nick;
    EXPECT_EQ(row.vertical.empty(), row.value != convolve::Preset::gradient) << row.nick;
  }
  for (convolve::Preset preset :
       {convolve::Preset::identity, convolve::Preset::box, convolve::Preset::unsharp}) {  // these keep the brightness
    double sum = 0;
    for (double weight : convolve::presets().at(std::size_t(preset)).weights) sum += weight;
    EXPECT_NEAR(sum / convolve::presets().at(std::size_t(preset)).divisor, 1, 1e-9);
  }
}

TEST(ConvolveErrors, NameThePropertyAndItsRange) {
  using Params = convolve::Params;
  Params good;
  good.weights = {0, -1, 0, -1, 5, -1, 0, -1, 0};
  expect_refused(good, "weights", {0, 2, 8, 10, 64 * 64}, [](Params& params, int n) { params.weights.assign(n, 1); });
  const std::vector<double> unbounded{not_a_number, infinite, -infinite};
  expect_refused(good, "weights", unbounded, [](Params& params, double value) { params.weights[4] = value; });
  expect_refused(good, "divisor", unbounded, &Params::divisor);
  expect_refused(good, "bias", unbounded, &Params::bias);
  expect_refused(good, "anchor-x", {3, 100, -2}, &Params::anchor_x);
  expect_refused(good, "anchor-y", {3, 100, -2}, &Params::anchor_y);
  good.kernel_height = 2;
  expect_refused(good, "weights", {3}, &Params::kernel_width);
  good.kernel_height = 0;
  expect_refused(good, "kernel-width", {-1}, &Params::kernel_width);
  expect_refused(good, "weights", {4}, &Params::kernel_width);
  good.weights.assign(64, 1);
  good.kernel_width = good.kernel_height = 1;
  expect_refused(good, "kernel-width", {64}, &Params::kernel_width);
  expect_refused(good, "kernel-height", {64}, &Params::kernel_height);
}

TEST(ConvolveErrors, SideFollowsFromTheOther) {
  convolve::Params params;
  params.weights.assign(12, 1);
  params.kernel_width = 4;
  const auto plan = convolve::resolve(params, {Format::GRAY8, 8, 8});
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan.value().width, 4);
  EXPECT_EQ(plan.value().height, 3);
  EXPECT_DOUBLE_EQ(plan.value().scale, 1.0 / 12);
}

// ---- cuda_schedule.cpp, which needs no device

convolve::Plan plan_of(const convolve::Params& params, Format format) {
  const auto plan = convolve::resolve(params, {format, 64, 48});
  EXPECT_TRUE(plan.ok()) << plan.error().message();
  return plan.value();
}

convolve::Plan box_plan(Format format, int width, int height, bool rank_1 = true) {
  convolve::Params params;
  params.kernel_width = width;
  params.kernel_height = height;
  params.weights.assign(std::size_t(width) * height, 1);
  if (!rank_1) params.weights.front() = 2;
  return plan_of(params, format);
}

constexpr std::size_t large_shared = 227 * 1024;  // H100, H200
convolve::Schedule schedule_of(const convolve::Plan& plan, convolve::Matrix matrix = convolve::Matrix::pair) {
  return convolve::make_schedule(plan, matrix, large_shared).value();
}

std::vector<std::pair<const char*, convolve::Schedule>> all_families(Format format) {
  const auto of = [&](int side, bool rank_1) { return schedule_of(box_plan(format, side, side, rank_1)); };
  if (info(format).sample_bytes() == 1)
    return {{"strips 3", of(3, false)},
            {"strips 7", of(7, false)},
            {"matrix tiles", of(9, false)},
            {"two passes", of(21, true)}};
  return {{"small 3", of(3, false)}, {"small 5", of(5, true)}, {"direct", of(9, false)}, {"two passes", of(21, true)}};
}

TEST(ConvolveSchedule, EverySampleIsInOneBlock) {
  Random random(1);
  for (Format format : all_formats()) {
    const FormatInfo& layout = info(format);
    for (const auto& [name, schedule] : all_families(format))
      for (int round = 0; round < 8; ++round) {
        const Rect rect{random.below(300), random.below(50), random.between(1, 700), random.between(1, 300)};
        const int channels = layout.sets[random.below(layout.set_count)].channels;
        const convolve::StripHeight strip{random.between(8, 64), random.between(8, 64), random.below(2) == 1};
        const int width = convolve::block_width(schedule);
        const convolve::Cut cut = convolve::cut(schedule, layout, channels, rect, strip);
        std::vector<int> samples(std::size_t(rect.width) * rect.height);
        for (int block = 0; block < cut.blocks(); ++block) {
          convolve::Place place{};
          int y = 0, height = schedule.warps * cut.rows;
          if (schedule.family == convolve::Family::matrix_strip) {
            const convolve::StripPlace strip = convolve::strip_place(block, cut);
            place.x = strip.x, y = strip.y, height = strip.rows;
          } else {
            place = convolve::tile_place(block, cut.tiles_x);
            y = place.y * height;
          }
          const int x = (rect.x & -convolve::block_alignment(schedule)) + place.x * width - rect.x;
          for (int i = y; i < std::min(rect.height, y + height); ++i)
            for (int j = std::max(x, 0); j < std::min(rect.width, x + width); ++j)
              ++samples[std::size_t(i) * rect.width + j];
        }
        EXPECT_EQ(std::count(samples.begin(), samples.end(), 1), rect.width * rect.height)
            << layout.name << ", " << name;
      }
  }
}

TEST(ConvolveSchedule, RowsOfStripsFillTheDevice) {
  for (int side : {3, 5, 7}) {
    const auto schedule = schedule_of(box_plan(Format::GRAY8, side, side));
    const auto height_of = [&](int width, int height, int blocks) {
      return convolve::strip_height(schedule, info(Format::GRAY8), {Rect{0, 0, width, height}, Rect{}, Rect{}}, blocks);
    };
    const int step = convolve::strip_group(1), width = convolve::strip_width;
    EXPECT_EQ(height_of(16, 16, 100000).rows, step - side + 1);  // the lowest block
    EXPECT_LE(height_of(width, 1 << 20, 1).rows, convolve::tuning.strip_most_rows - side + 1);
    for (int height : {1, 100, 1080, 4320})
      EXPECT_EQ((height_of(7680, height, 500).rows + side - 1) % step, 0);  // whole groups of rows
  }
}

/// Small frames get shorter blocks at the sides only where all blocks still run at once.
TEST(ConvolveSchedule, ShortEdgesOfSmallFramesRunAtOnce) {
  const auto schedule = schedule_of(box_plan(Format::GRAY8, 3, 3));
  const FormatInfo& format = info(Format::GRAY8);
  const Rect rect{0, 0, 1920, 1080};
  for (bool short_edges : {true, false}) {
    const int blocks = short_edges ? 528 : 500;  // 516 blocks of two heights, or 312 of one
    const convolve::StripHeight strip = convolve::strip_height(schedule, format, {rect, Rect{}, Rect{}}, blocks);
    const convolve::Cut cut = convolve::cut(schedule, format, 1, rect, strip);
    EXPECT_EQ(strip.short_edges, short_edges);
    EXPECT_EQ(cut.edge_rows < cut.rows, short_edges);
    EXPECT_LE(cut.blocks(), blocks);
  }
}

/// Chroma of a small frame has fewer rows per block than luma, so that all blocks run at once.
TEST(ConvolveSchedule, RowsOfMoreChannelsMakeLowerBlocks) {
  const auto schedule = schedule_of(box_plan(Format::NV12, 7, 7), convolve::Matrix::single);
  const FormatInfo& format = info(Format::NV12);
  const SetRects rects{Rect{0, 0, 1920, 1080}, Rect{0, 0, 960, 540}, Rect{}};
  const convolve::StripHeight strip = convolve::strip_height(schedule, format, rects, 528);
  const convolve::Cut luma = convolve::cut(schedule, format, 1, rects[0], strip);
  const convolve::Cut chroma = convolve::cut(schedule, format, 2, rects[1], strip);
  EXPECT_GT(luma.rows, chroma.rows);
  EXPECT_LE(luma.blocks() + chroma.blocks(), 528);
}

/// Small frames run all tiles at once. In large frames a block processes several tiles from top to bottom.
TEST(ConvolveSchedule, BlocksGoDownTilesOfLargeFrames) {
  const auto schedule_for = [](Format format, int side) {
    return schedule_of(box_plan(format, side, side, false), convolve::Matrix::single);
  };
  const convolve::Schedule schedule = schedule_for(Format::GRAY8, 15);
  const auto tiles = [&](int width, int height, int blocks) {
    return convolve::tiles_height(schedule, info(Format::GRAY8), {Rect{0, 0, width, height}, Rect{}, Rect{}}, blocks)
        .rows;
  };
  EXPECT_EQ(tiles(1920, 1080, 264), 1);
  EXPECT_EQ(tiles(1920, 1 << 20, 264), convolve::tuning.matrix_tile_most);
  EXPECT_EQ(schedule.buffers, 2);
  EXPECT_EQ(schedule_for(Format::RGBA, 63).buffers, 1);  // two blocks must fit on a multiprocessor
}

TEST(ConvolveSchedule, SharedMemoryIsWithinTheLimit) {
  for (std::size_t limit : {std::size_t(48 * 1024), std::size_t(64 * 1024), std::size_t(99 * 1024), large_shared})
    for (Format format :
         {Format::GRAY8, Format::RGBA, Format::NV24, Format::Y41B, Format::GRAY16_LE, Format::GBRA_12LE})
      for (int width = 1; width <= convolve::max_side; width += 2)
        for (int height : {1, 2, 8, 31, 63})
          for (bool rank_1 : {false, true})
            for (bool wide : {false, true}) {
              convolve::Plan plan = box_plan(format, width, height, rank_1);
              plan.wide = wide;
              const auto made = convolve::make_schedule(plan, convolve::Matrix::pair, limit);
              if (!made.ok()) {
                ASSERT_LT(limit, 99u * 1024) << width << "x" << height;
                EXPECT_EQ(made.error().code(), Status::Code::resource);
                continue;
              }
              const convolve::Schedule& schedule = made.value();
              EXPECT_LE(schedule.shared_bytes, limit);
              EXPECT_GE(schedule.warps, 1);
              EXPECT_LE(schedule.warps, 8);
              EXPECT_EQ(schedule.shared_bytes > 0, schedule.family != convolve::Family::small);
            }
}

TEST(ConvolveSchedule, FamilyFollowsFromKernelAndFormat) {
  using convolve::Family;
  const auto family = [](const convolve::Plan& plan) { return schedule_of(plan, convolve::Matrix::single).family; };
  EXPECT_EQ(family(box_plan(Format::NV12, 7, 7)), Family::matrix_strip);
  EXPECT_EQ(family(box_plan(Format::NV12, 8, 8)), Family::matrix_tile);  // reaches 4 pixels to one side
  EXPECT_EQ(family(box_plan(Format::NV12, 15, 15)), Family::matrix_tile);
  EXPECT_EQ(family(box_plan(Format::NV12, 31, 31)), Family::matrix_tile);
  EXPECT_EQ(family(box_plan(Format::NV12, 32, 31)), Family::two_pass);
  EXPECT_EQ(family(box_plan(Format::NV12, 32, 31, false)), Family::matrix_tile);
  EXPECT_EQ(family(box_plan(Format::P010_10LE, 7, 7)), Family::small);
  EXPECT_EQ(family(box_plan(Format::P010_10LE, 9, 9)), Family::two_pass);
  EXPECT_EQ(family(box_plan(Format::P010_10LE, 9, 9, false)), Family::direct);
  convolve::Plan wide = box_plan(Format::NV12, 3, 3, false);
  wide.wide = true;
  EXPECT_EQ(family(wide), Family::direct);
}

/// Gradients use only kernels of sides 3 and 5.
TEST(ConvolveSchedule, GradientsAreSmall) {
  for (Format format : all_formats())
    for (int anchor_x : {-1, 0, 1, 2})
      for (int anchor_y : {-1, 0, 1, 2}) {
        convolve::Params params;
        params.preset = convolve::Preset::gradient;
        params.anchor_x = anchor_x;
        params.anchor_y = anchor_y;
        const convolve::Plan plan = plan_of(params, format);
        const auto schedule = schedule_of(plan, convolve::matrix_weights(plan, 0));
        const bool bytes = info(format).sample_bytes() == 1;
        EXPECT_LE(schedule.side, 5);
        EXPECT_EQ(schedule.family, bytes ? convolve::Family::matrix_strip : convolve::Family::small);
        EXPECT_TRUE(bytes ? schedule.matrix == convolve::Matrix::gradient
                          : schedule.small == convolve::Small::gradient);
      }
}

TEST(ConvolveSchedule, WeightsNeedTwoNumbersAboveTheError) {
  const convolve::Plan integers = box_plan(Format::GRAY8, 3, 3);
  EXPECT_EQ(convolve::matrix_weights(integers, 0), convolve::Matrix::single);
  EXPECT_EQ(convolve::matrix_weights(integers, 1e-6), convolve::Matrix::pair);
  convolve::Params params;
  params.weights.assign(9, 0.3);
  EXPECT_EQ(convolve::matrix_weights(plan_of(params, Format::GRAY8), 0.12), convolve::Matrix::single);
  EXPECT_EQ(convolve::matrix_weights(plan_of(params, Format::GRAY8), 0.13), convolve::Matrix::pair);
}

}  // namespace
}  // namespace cudavision::test
