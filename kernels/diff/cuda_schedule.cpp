// SPDX-License-Identifier: LGPL-2.1-or-later
#include "kernels/diff/cuda_schedule.hpp"

#include <algorithm>
#include <utility>

namespace cudavision::diff {

Layout layout_of(const FormatInfo& format) {
  const ChannelSet &first = format.sets[0], &rest = format.sets[1];
  const int bytes = format.sample_bytes();
  if (first.channels > 1 || format.set_count == 1) return {bytes, first.channels, 1, 1, 0, 0};
  return {bytes, 1, rest.channels, format.set_count, rest.shift_x, rest.shift_y};
}

int slots_along(int pixels, int cell_size) {
  return pixels % cell_size == 0 ? pixels / cell_size : (pixels + cell_size - 2) / cell_size + 1;
}

namespace {

Tiles tiles_of(const Geometry& picture, int tile_width, int cell_size) {
  Tiles tiles;
  tiles.x = divide_up(picture.width, tile_width);
  tiles.y = divide_up(picture.height, tuning.tile_rows);
  tiles.slots_x = slots_along(tile_width, cell_size);
  tiles.slots = tiles.slots_x * slots_along(tuning.tile_rows, cell_size);
  return tiles;
}

}  // namespace

Schedule make_schedule(const Plan& plan) {
  const Params& params = plan.params;
  const bool shows_changed = params.output == Output::mask || params.output == Output::overlay;
  Schedule schedule;
  schedule.layout = layout_of(info(plan.geometry.format));
  schedule.compares = plan.compares_samples();
  schedule.scales = plan.scales();
  schedule.opens = plan.opens() || plan.scales();
  schedule.restarts = plan.detects_light() && (params.reference == Reference::first || params.reference == Reference::background);
  if (params.output == Output::difference) schedule.compare = Writes::difference;
  if (shows_changed) (schedule.opens ? schedule.open : schedule.compare) = Writes::changed;

  const Layout& layout = schedule.layout;
  schedule.tile_width = 32 * strip_pixels(layout.channels0, layout.sample_bytes);
  schedule.threads = 32 * tuning.tile_rows / strip_rows(layout.shift_y);
  schedule.frame = tiles_of(plan.geometry, schedule.tile_width, params.cell_size);
  schedule.analysis = tiles_of(plan.analysis, schedule.tile_width, params.cell_size);
  if (schedule.scales) schedule.analysis.slots_x = schedule.analysis.slots = 0;
  for (Tiles* tiles : {&schedule.frame, &schedule.analysis}) tiles->record_bytes = (4 + 2 * tiles->slots + 31) / 32 * 32;
  schedule.cell_reciprocal = cell_reciprocal(std::uint32_t(params.cell_size));
  return schedule;
}

Memory memory_of(const Plan& plan) {
  const Params& params = plan.params;
  const std::size_t frame_bytes = frame_layout(plan).bytes, mask_bytes = plan.mask_pitch() * plan.analysis.height;
  const auto take = [](std::size_t& block, std::size_t bytes) { return std::exchange(block, block + (bytes + 255) / 256 * 256); };
  Memory memory;
  const int frames = plan.borrows() ? 0 : ring_size(params);
  for (int i = 0; i < frames; ++i) memory.ring.push_back(take(memory.kept_bytes, frame_bytes));
  if (plan.has_model()) memory.model = take(memory.kept_bytes, plan.model_bytes());
  if (params.reference == Reference::background) memory.model = take(memory.kept_bytes, 2 * frame_bytes);
  memory.state = take(memory.kept_bytes, 256);
  if (!plan.counted_bits.empty()) memory.counted = take(memory.bits_bytes, mask_bytes);
  if (plan.opens() || plan.scales()) memory.changed = take(memory.bits_bytes, mask_bytes);
  if (params.reference == Reference::mog2) memory.foreground = take(memory.bits_bytes, mask_bytes);
  if (plan.scales() && plan.compares_samples()) memory.small = take(memory.bits_bytes, frame_bytes);
  if (plan.scales() && params.output == Output::difference) memory.small_difference = take(memory.bits_bytes, frame_bytes);
  return memory;
}

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
