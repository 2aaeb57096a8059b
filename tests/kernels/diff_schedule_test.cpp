// SPDX-License-Identifier: LGPL-2.1-or-later
// Tests the schedule of the CUDA kernels of differences (kernels/diff/cuda_schedule.hpp). No device is needed.
#include "kernels/diff/cuda_shapes.hpp"
#include "tests/kernels/diff_params.hpp"

namespace cudavision::test {
namespace {

diff::Plan resolved(const diff::Params& params, const Geometry& geometry) {
  const auto plan = diff::resolve(params, geometry);
  EXPECT_TRUE(plan.ok()) << plan.error().message();
  return plan.value();
}

TEST(DiffSchedule, EveryPixelIsInOneTile) {
  for (Format format : all_formats())
    for (int width : {1, 3, 16, 127, 128, 129, 511, 512, 513, 1920, 7680, 16384})
      for (int height : {1, 2, 15, 16, 17, 1080, 4320, 16384})
        for (int radius : {0, 1, 2}) {
          diff::Params params = reference::without_light();
          params.open_radius = radius;
          const diff::Schedule s = diff::make_schedule(resolved(params, {format, width, height}));
          const diff::Layout& l = s.layout;
          const int pixels = diff::strip_pixels(l.channels0, l.sample_bytes);
          const int rows = diff::strip_rows(l.channels0, l.sample_bytes, l.planes, l.shift_y);
          EXPECT_EQ(s.analysis.width, 32 * pixels);
          EXPECT_EQ(s.frame.width, radius ? diff::Opened::width(s.wide) : s.analysis.width);
          EXPECT_LE(s.analysis.width, diff::compared_tile);
          EXPECT_EQ(s.threads / 32 * rows, diff::tuning.tile_rows) << "warps of a tile";
          EXPECT_LE(s.threads, 1024);
          for (const diff::Tiles& tiles : {s.frame, s.analysis}) {
            EXPECT_LE(tiles.width * tiles.rows, 0xffff) << "a count of a tile is a word of 16 bits";
            EXPECT_TRUE(just_cover(tiles.x, tiles.width, width) && just_cover(tiles.y, tiles.rows, height));
          }
        }
}

TEST(DiffSchedule, LayoutFollowsTheFormat) {
  for (Format format : all_formats()) {
    const FormatInfo& f = info(format);
    const diff::Layout l = diff::layout_of(f);
    const FormatInfo& unpacked = f.packing ? info(f.packing->unpacked) : f;
    EXPECT_EQ(l.planes, unpacked.planes - (f.alpha_set() >= 0)) << f.name;
    EXPECT_EQ(l.channels0, f.sets[0].channels) << f.name;
    if (l.planes > 1) {
      EXPECT_EQ(l.channels1, f.sets[1].channels) << f.name;
      EXPECT_EQ(l.shift_x, f.sets[1].shift_x) << f.name;
      EXPECT_EQ(l.shift_y, f.sets[1].shift_y) << f.name;
    }
  }
}

/// The layout of a format selects its kernel. The number of planes alone does not.
TEST(DiffSchedule, EveryFormatHasTheShapeOfItsLayout) {
  for (Format format : all_formats()) {
    const diff::Layout layout = diff::layout_of(info(format));
    diff::with_shape(layout, [&](auto shape) {
      using S = decltype(shape);
      EXPECT_TRUE(S::is(layout)) << info(format).name;
      EXPECT_EQ(sizeof(typename S::T), info(format).depth > 8 ? 2u : 1u) << info(format).name;
      EXPECT_EQ(S::words1 * 4, (S::pixels >> layout.shift_x) * layout.channels1 * layout.sample_bytes)
          << info(format).name << ": the words of a lane are whole samples of all planes";
    });
  }
}

TEST(DiffSchedule, TilesHaveSlotsForTheirCells) {
  for (Format format : {Format::GRAY8, Format::YUY2, Format::RGBA})
    for (int cell = diff::min_cell; cell <= diff::max_cell; ++cell)
      for (int radius : {0, 1, 2}) {
        diff::Params params = reference::without_light();
        params.cell_size = cell;
        params.open_radius = radius;
        const int width = 5000, height = 300;
        const diff::Schedule s = diff::make_schedule(resolved(params, {format, width, height}));
        const diff::Tiles& tiles = s.frame;
        ASSERT_TRUE(s.opens || tiles.slots <= diff::max_slots(diff::compared_tile)) << tiles.slots;
        ASSERT_LE(s.open_shared, 48u << 10);
        ASSERT_GE(tiles.record_bytes, 4 + 2 * tiles.slots);
        ASSERT_EQ(tiles.record_bytes % 32, 0);
        for (int x = 0; x < width; ++x) {
          const int slot = x / cell - diff::Schedule::first_cell(x / tiles.width, tiles.width, cell);
          ASSERT_TRUE(slot >= 0 && slot < tiles.slots_x) << "cell size " << cell << ", x " << x;
        }
        for (int y = 0; y < height; ++y) {
          const int rows = tiles.rows, slot = y / cell - diff::Schedule::first_cell(y / rows, rows, cell);
          ASSERT_TRUE(slot >= 0 && slot < tiles.slots / tiles.slots_x) << "cell size " << cell << ", y " << y;
        }
      }
}

TEST(DiffSchedule, ReciprocalOfTheCellSizeIsExact) {
  for (std::uint32_t cell = diff::min_cell; cell <= std::uint32_t(diff::max_cell); ++cell) {
    const std::uint64_t reciprocal = diff::cell_reciprocal(cell);
    bool exact = true;
    for (std::uint32_t at = 0; at <= 1 << 14; ++at) exact = exact && std::uint32_t(at * reciprocal >> 32) == at / cell;
    EXPECT_TRUE(exact) << cell;
  }
}

TEST(DiffSchedule, KernelsFollowFromTheOutput) {
  for (Output output : {Output::difference, Output::mask, Output::overlay, Output::none})
    for (const auto& [radius, light] : {std::pair{0, 0.0}, {3, 0.0}, {0, 0.6}, {3, 0.6}}) {
      diff::Params params = params_of(output);
      params.open_radius = radius;
      params.light_change_ratio = light;
      params.reference = radius > 0 ? Reference::background : Reference::median;
      const diff::Schedule s = diff::make_schedule(resolved(params, {Format::NV12, 64, 48}));
      const bool changed = output == Output::mask || output == Output::overlay;
      const bool opens = radius > 0 || light > 0;
      EXPECT_EQ(s.opens, opens);
      EXPECT_EQ(s.restarts, light > 0);
      EXPECT_EQ(s.compare == diff::Writes::difference, output == Output::difference);
      EXPECT_EQ(s.compare == diff::Writes::changed, changed);
      EXPECT_EQ(s.corrects, changed && opens);
      EXPECT_EQ(s.open == diff::Writes::mask, output == Output::mask && opens);
      EXPECT_EQ(s.open == diff::Writes::changed, output == Output::overlay && opens);
    }
}

TEST(DiffSchedule, MemoryDoesNotOverlap) {
  Random random(5);
  for (int round = 0; round < 500; ++round) {
    const Geometry geometry{random.pick(all_formats()), random.between(1, 700), random.between(1, 90)};
    diff::Params params = random_params(random, geometry.width, geometry.height);
    params.reference = random.pick<Reference>(
        {Reference::previous, Reference::first, Reference::background, Reference::mog2, Reference::median});
    if (random.below(8) == 0) params.reference = Reference::background, params.threshold = 0;
    const diff::Plan plan = resolved(params, geometry);
    const diff::Memory memory = diff::memory_of(plan);
    const std::size_t frame = diff::frame_layout(plan).bytes, bits = plan.mask_pitch() * plan.analysis.height;
    const bool adaptive = plan.params.reference == Reference::adaptive, shows = params.output == Output::difference;
    const bool opens = adaptive || params.open_radius > 0 || params.light_change_ratio > 0,
               scales = params.analysis_scale > 1;
    const bool model = plan.has_model(), background = plan.params.reference == Reference::background ||
                                                      plan.params.reference == Reference::median;
    const bool looks = params.looks != Looks::none, follows = opens || scales;
    const bool completes = adaptive && (params.output == Output::mask || params.output == Output::overlay);
    const diff::Tiles tiles = diff::make_schedule(plan).frame;
    bool shared = false;  // whether an edge of a tile lies inside a cell
    for (int x = tiles.width; x < 4 * tiles.width * params.cell_size; x += tiles.width)
      shared = shared || x % params.cell_size != 0;
    for (int y = tiles.rows; y < 4 * tiles.rows * params.cell_size; y += tiles.rows)
      shared = shared || y % params.cell_size != 0;
    const std::size_t mask = diff::final_pitch(plan) * std::size_t(geometry.height);
    const std::size_t width = plan.analysis.width, height = plan.analysis.height, cells = plan.cells.changed.size();
    const std::size_t model_bytes =
        adaptive ? diff::adaptive::state_bytes(int(width), int(height), diff::adaptive::device_places)
        : model  ? diff::mog2::state_bytes(int(width), int(height), diff::compared_channels(plan))
                 : 2 * frame;
    struct Part {
      const char* name;
      std::size_t offset, bytes;
      bool exists;
    };
    const auto expect_apart = [](const std::vector<Part>& parts, std::size_t end) {
      std::size_t at = 0;  // parts are in order
      for (const auto& [name, offset, bytes, exists] : parts) {
        EXPECT_EQ(offset != diff::Memory::none, exists) << name;
        if (!exists) continue;
        EXPECT_GE(offset, at) << name;
        EXPECT_EQ(offset % 256, 0u) << name;
        at = offset + bytes;
      }
      EXPECT_GE(end, at);
    };
    EXPECT_EQ(memory.ring.size(), std::size_t(diff::ring_size(plan.params)));
    std::vector<Part> kept;
    for (std::size_t offset : memory.ring) kept.push_back({"ring", offset, frame, true});
    kept.push_back({"model", memory.model, model_bytes, model || background});
    kept.push_back({"state", memory.state, 256, true});
    expect_apart(kept, memory.kept_bytes);
    EXPECT_EQ(memory.final_mask == memory.changed, !follows);  // no step follows the comparison
    const bool searched = opens && !scales && !adaptive;
    expect_apart(
        {{"unmasked", memory.unmasked, bits, !plan.unmasked_bits.empty()},
         {"changed", memory.changed, bits, follows || looks},
         {"final_mask", follows ? memory.final_mask : diff::Memory::none, mask, follows && (looks || completes)},
         {"found_tiles", memory.found_tiles, std::size_t(diff::make_schedule(plan).analysis.count()), searched},
         {"filled_tiles", memory.filled_tiles, std::size_t(tiles.count()), searched},
         {"list", memory.list, 4 * cells, looks},
         {"list_stamps", memory.list_stamps, 4 * cells, looks && shared},
         {"list_count", memory.list_count, 8, looks},
         {"filled", memory.filled, bits, completes && scales},
         {"shown", memory.shown, mask, completes},
         {"spare_records", memory.spare_records, std::size_t(tiles.count() * tiles.record_bytes), completes},
         {"learning", memory.learning, cells, adaptive},
         {"foreground", memory.foreground, bits, model && !adaptive},
         {"small", memory.small, frame, scales && (!adaptive || shows)},
         {"small_difference", memory.small_difference, frame, scales && shows}},
        memory.bits_bytes);
  }
}

}  // namespace
}  // namespace cudavision::test
