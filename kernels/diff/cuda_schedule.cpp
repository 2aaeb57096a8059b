// SPDX-License-Identifier: LGPL-2.1-or-later
#include "kernels/diff/cuda_schedule.hpp"

#include <algorithm>
#include <utility>

namespace cudavision::diff {

Layout layout_of(const FormatInfo& format) {
  const ChannelSet &first = format.sets[0], &rest = format.sets[1];
  const int bytes = format.sample_bytes();
  if (first.channels > 1 || format.color_sets() == 1) return {bytes, first.channels, 1, 1, 0, 0};
  return {bytes, 1, rest.channels, format.color_sets(), rest.shift_x, rest.shift_y};
}

int slots_along(int pixels, int cell_size) {
  return pixels % cell_size == 0 ? pixels / cell_size : (pixels + cell_size - 2) / cell_size + 1;
}

namespace {

Tiles tiles_of(const Geometry& picture, int width, int rows, int cell_size) {
  Tiles tiles;
  tiles.width = width;
  tiles.rows = rows;
  tiles.x = divide_up(picture.width, width);
  tiles.y = divide_up(picture.height, rows);
  tiles.slots_x = slots_along(width, cell_size);
  tiles.slots = tiles.slots_x * slots_along(rows, cell_size);
  tiles.record_bytes = (4 + 2 * tiles.slots + 31) / 32 * 32;
  tiles.share_cells = width % cell_size != 0 || rows % cell_size != 0;
  for (int tile = 0; tile < tiles.x; ++tile) tiles.first_x.push_back(Schedule::first_cell(tile, width, cell_size));
  return tiles;
}

/// Whether kernels copy channels to the output that share a plane with colour channels.
bool has_copied(const FormatInfo& format) {
  for (int i = 0; i < format.color_sets(); ++i)
    for (int c = 0; c < format.sets[i].channels; ++c)
      if (const Role role = format.sets[i].roles[c]; role != Role::other && !is_color(role)) return true;
  return false;
}

}  // namespace

Schedule make_schedule(const Plan& plan) {
  const Params& params = plan.params;
  const bool shows_changed = plan.shows_mask();
  Schedule schedule;
  schedule.layout = layout_of(info(plan.geometry.format));
  schedule.compares = plan.compares_samples();
  schedule.scales = plan.scales();
  schedule.opens = plan.opens() || plan.scales();
  schedule.restarts = plan.detects_light() && (plan.keeps_first() || plan.has_background());
  if (params.output == Output::difference) schedule.compare = Writes::difference;
  const bool shows_picture = params.output == Output::overlay || has_copied(info(plan.geometry.format));
  schedule.corrects = shows_changed && schedule.skips_tiles() && !plan.has_adaptive();
  if (shows_changed && schedule.opens) schedule.open = shows_picture ? Writes::changed : Writes::mask;
  if (shows_changed && (schedule.corrects || !schedule.opens)) schedule.compare = Writes::changed;

  const Layout& layout = schedule.layout;
  const int pixels = strip_pixels(layout.channels0, layout.sample_bytes);
  schedule.threads =
      32 * tuning.tile_rows / strip_rows(layout.channels0, layout.sample_bytes, layout.planes, layout.shift_y);
  schedule.wide = plan.geometry.width * plan.geometry.height >= tuning.wide_pixels;
  schedule.analysis = tiles_of(plan.analysis, 32 * pixels, tuning.tile_rows, params.cell_size);
  schedule.frame = schedule.analysis;
  // Shared memory: the slots of cells, then rows of words that are shown, or that an opening by more than 1 needs.
  if (schedule.opens) {
    schedule.frame = tiles_of(plan.geometry, Opened::width(schedule.wide), tuning.tile_rows, params.cell_size);
    const int rows = tuning.tile_rows / params.analysis_scale, radius = params.open_radius;
    const int loaded = std::max(rows + 4 * radius, tuning.tile_rows), opened = rows + 2 * radius;
    const int shown = schedule.corrects ? tuning.tile_rows : 0;  // rows of words that hold removed pixels
    const int words = Opened::parts(schedule.wide) * 32 * ((radius > 1 ? loaded + opened : tuning.tile_rows) + shown);
    schedule.open_shared = sizeof(std::uint32_t) * std::size_t(schedule.frame.slots + 1 + words);
  }
  schedule.cell_reciprocal = cell_reciprocal(std::uint32_t(params.cell_size));
  return schedule;
}

Memory memory_of(const Plan& plan) {
  const Params& params = plan.params;
  const std::size_t frame_bytes = frame_layout(plan).bytes, mask_bytes = plan.mask_pitch() * plan.analysis.height;
  const auto take = [](std::size_t& block, std::size_t bytes) {
    return std::exchange(block, block + (bytes + 255) / 256 * 256);
  };
  Memory memory;
  for (int i = ring_size(params); i > 0; --i) memory.ring.push_back(take(memory.kept_bytes, frame_bytes));
  if (plan.has_model()) memory.model = take(memory.kept_bytes, plan.model_bytes());
  if (plan.has_background()) memory.model = take(memory.kept_bytes, 2 * frame_bytes);
  memory.state = take(memory.kept_bytes, state_bytes);
  if (!plan.unmasked_bits.empty()) memory.unmasked = take(memory.bits_bytes, mask_bytes);
  const bool counts_later = plan.opens() || plan.scales();  // then the comparison does not give the final mask
  const bool needs_final = plan.measures_looks() || plan.completes();
  if (counts_later || needs_final) memory.changed = take(memory.bits_bytes, mask_bytes);
  if (needs_final)
    memory.final_mask =
        counts_later ? take(memory.bits_bytes, final_pitch(plan) * plan.geometry.height) : memory.changed;
  const Schedule schedule = make_schedule(plan);
  if (schedule.skips_tiles() && !plan.has_adaptive()) {
    memory.found_tiles = take(memory.bits_bytes, schedule.analysis.count());
    memory.filled_tiles = take(memory.bits_bytes, schedule.frame.count());
  }
  if (plan.measures_looks()) {
    const std::size_t cells = sizeof(std::uint32_t) * plan.cells.changed.size();
    memory.list = take(memory.bits_bytes, cells);
    if (schedule.frame.share_cells) memory.list_stamps = take(memory.bits_bytes, cells);
    memory.list_count = take(memory.bits_bytes, 2 * sizeof(std::uint32_t));
  }
  if (plan.completes()) {
    if (plan.scales()) memory.filled = take(memory.bits_bytes, mask_bytes);
    memory.shown = take(memory.bits_bytes, final_pitch(plan) * plan.geometry.height);
    memory.spare_records = take(memory.bits_bytes, schedule.frame.count() * schedule.frame.record_bytes);
  }
  if (plan.has_adaptive()) memory.learning = take(memory.bits_bytes, plan.cells.changed.size());
  if (plan.has_mixture()) memory.foreground = take(memory.bits_bytes, mask_bytes);
  if (plan.scales() && plan.compares_samples()) memory.small = take(memory.bits_bytes, frame_bytes);
  if (plan.scales() && params.output == Output::difference)
    memory.small_difference = take(memory.bits_bytes, frame_bytes);
  return memory;
}

std::size_t final_pitch(const Plan& plan) { return std::size_t(plan.geometry.width + 511) / 512 * 64; }

int picture_row_bytes(const Geometry& geometry, int plane) {
  const FormatInfo& format = info(geometry.format);
  int bytes = 0;
  for (int i = 0; i < format.set_count; ++i) {
    const ChannelSet& set = format.sets[i];
    if (set.plane != plane) continue;
    int last = set.channels;
    while (set.roles[last - 1] == Role::other) --last;
    bytes = std::max(bytes, ((geometry.grid(set).width - 1) * set.channels + last) * format.sample_bytes());
  }
  return bytes;
}

}  // namespace cudavision::diff
