// SPDX-License-Identifier: LGPL-2.1-or-later
// The CPU backend. Each thread composes a range of rows, tile by tile:
//
//        1024 columns            1024 columns
//      ┌───────────────────────┬───────────────────────┐  ┐
//      │ tile: layer 0, 1, 2 … │ tile                  │  │ 16 rows
//      ├───────────────────────┼───────────────────────┤  ┘
//
// A tile is composed in the output itself if all its layers have samples like the output and give integers
// (cpu_in_place.hpp; subsampled chroma at odd positions: cpu_phases.cpp). Any other tile is composed in rows of float32
// and written once (cpu_rows.hpp). Both give the same result.
#include <algorithm>
#include <opencv2/core.hpp>

#include "kernels/blend/cpu_in_place.hpp"
#include "kernels/blend/cpu_rows.hpp"
#include "kernels/cpu/threads.hpp"

namespace cudavision::blend {
namespace {

class CpuComposer final : public Composer {
 public:
  explicit CpuComposer(Format format)
      : format_(info(format)), scratch_(std::size_t(std::max(1, cv::getNumThreads()))), taps_(max_pads) {}

  Status submit(const Target& target, const std::vector<Layer>& layers, Queue) override {
    bool general = packed_422_of_odd(target.width), phases = false;
    for (std::size_t l = 0; l < layers.size(); ++l) {
      in_place_[l] = find_in_place(format_, target, layers[l]);
      phases = phases || in_place_[l] == InPlace::phases;
      general = general || in_place_[l] == InPlace::no ||
                (in_place_[l] == InPlace::last && (phases || l + 1 < layers.size()));
    }
    if (general)
      for (std::size_t l = 0; l < layers.size(); ++l) find_column_taps(layers[l], taps_[l]);
    const int groups = subsampled(target.height, target.shift_y);
    const int jobs = cpu::parts_of(work_of(target, layers, general), std::min(groups, int(scratch_.size())));
    cpu::for_parts(jobs, [&](int job) {
      const int end = std::min(target.height, cpu::begin_of_part(job + 1, jobs, groups) << target.shift_y);
      for (int y = cpu::begin_of_part(job, jobs, groups) << target.shift_y; y < end; y += tile_rows)
        for (int x = 0; x < target.width; x += tile_columns)
          compose(target, layers, {x, y, std::min(tile_columns, target.width - x), std::min(tile_rows, end - y)},
                  scratch_[std::size_t(job)]);
    });
    return {};
  }

 private:
  /// general: whether tiles are composed in rows of float32.
  cpu::Work work_of(const Target& target, const std::vector<Layer>& layers, bool general) const {
    double pixels = double(target.width) * target.height;
    for (const Layer& layer : layers) pixels += double(layer.visible.width) * layer.visible.height;
    return cpu::picture_work(pixels, general ? 10 : 0.15 * format_.sets[0].channels);
  }

  /// The last word of such a row has a byte that belongs to no pixel and must not be written.
  bool packed_422_of_odd(int width) const { return format_.sets[0].shares_plane() && width % 2; }

  void compose(const Target& target, const std::vector<Layer>& layers, const Rect& tile, Scratch& scratch) {
    if (compose_in_place(target, layers, tile, scratch)) return;
    for (int y = tile.y; y < tile.y + tile.height; y += 1 << target.shift_y)
      compose_rows(target, layers, taps_,
                   {tile.x, y, tile.width, std::min(1 << target.shift_y, tile.y + tile.height - y)}, scratch);
  }

  /// Returns false, and does nothing, if the tile cannot be composed in place.
  bool compose_in_place(const Target& target, const std::vector<Layer>& layers, const Rect& tile, Scratch& scratch) {
    if (packed_422_of_odd(tile.width)) return false;
    const auto [lowest, hidden] = find_lowest(layers, tile);
    bool more = true;
    std::size_t phases = layers.size();  // index of the first layer whose chroma is composed by phases
    for (std::size_t l = lowest; l < layers.size(); ++l) {
      if (intersection(layers[l].visible, tile).empty()) continue;
      if (in_place_[l] == InPlace::phases) phases = std::min(phases, l);
      const bool last = in_place_[l] == InPlace::last;
      if (!more || in_place_[l] == InPlace::no || (last && phases < l)) return false;
      more = !last;
    }
    if (!hidden) paint_background(format_, target, tile, scratch);
    // If the lowest picture would only be copied and the next one covers the tile, the lowest one is read from its own
    // memory.
    const bool skip = hidden && lowest + 1 < layers.size() && in_place_[lowest] == InPlace::yes &&
                      copies_samples(target, layers[lowest]) && covers(layers[lowest + 1], tile);
    const auto base = [&, lowest = lowest](std::size_t l) {
      return skip && l == lowest + 1 ? &layers[lowest] : nullptr;
    };
    for (std::size_t l = lowest + skip; l < layers.size(); ++l)
      if (const Rect part = intersection(layers[l].visible, tile); !part.empty())
        lay_in_place(format_, target, layers[l], base(l), part, l < phases);
    if (phases < layers.size()) lay_phases(format_, target, layers, phases, base(phases), tile, scratch.phases);
    return true;
  }

  const FormatInfo& format_;
  std::vector<Scratch> scratch_;  ///< one for each job
  std::vector<LayerTaps> taps_;   ///< one for each layer
  std::array<InPlace, max_pads> in_place_{};
};

}  // namespace

Result<std::unique_ptr<Composer>> make_cpu(const Geometry& geometry) {
  return std::unique_ptr<Composer>(std::make_unique<CpuComposer>(geometry.format));
}

}  // namespace cudavision::blend
