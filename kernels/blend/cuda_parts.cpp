// SPDX-License-Identifier: LGPL-2.1-or-later
// Cuts the output into parts, each of which shows the same layers everywhere. So blocks of compose_direct_tiles need
// not search for layers, and tiles begin where pads begin. Example: a pad over a picture of the output's size.
//
//     x0      x1 x2      x3 x4      x5
//  y0 ┌───────────────────────────────┐   Each edge of a pad becomes two cuts, at the multiples of `step` around it.
//     │ 0                             │   So no cut divides a sample of chroma. Parts 1 to 3, 4, 6 and 7 to 9 show both
//  y1 ├───────┬──┬──────────┬──┬──────┤   pads; the pad covers part 5. Neighbouring cells that show the same pads are
//     │ …     │ 1│    2     │ 3│      │   one part: 0. In planes that are not subsampled the step is 1, and the two
//  y2 ├───────┼──┼──────────┼──┼──────┤   cuts are one.
//     │ …     │ 4│    5     │ 6│      │
//     └───────┴──┴──────────┴──┴──────┘
#include <algorithm>
#include <array>

#include "kernels/blend/cuda_schedule.hpp"

namespace cudavision::blend {
namespace {

constexpr int most_cells = 512;

/// The cuts along one axis, in ascending order.
class Cuts {
 public:
  Cuts(int length, int step) : step_(step), length_(length), at_{0, length}, count_(2) {}

  void add(int edge) { at_[count_++] = before(edge), at_[count_++] = after(edge); }
  void finish() {
    std::sort(at_.begin(), at_.begin() + count_);
    count_ = int(std::unique(at_.begin(), at_.begin() + count_) - at_.begin());
  }
  int before(int edge) const { return edge / step_ * step_; }
  int after(int edge) const { return std::min((edge + step_ - 1) / step_ * step_, length_); }

  int cells() const { return count_ - 1; }
  int operator[](int i) const { return at_[i]; }
  int index(int cut) const { return int(std::lower_bound(at_.begin(), at_.begin() + count_, cut) - at_.begin()); }

 private:
  const int step_, length_;
  std::array<int, 4 * max_pads + 2> at_;
  int count_;
};

struct Cell {
  std::uint64_t layers, whole;
  bool covered;

  bool operator==(const Cell& other) const {
    return layers == other.layers && whole == other.whole && covered == other.covered;
  }
};

/// Removes layers that are hidden below a layer that covers the cell.
void hide(std::uint64_t hiding, Cell& cell) {
  const std::uint64_t hidden = cell.whole & hiding;
  cell.covered = hidden;
  if (!hidden) return;
  int top = 63;
  while (!(hidden >> top & 1)) --top;
  cell.layers &= ~std::uint64_t(0) << top, cell.whole &= cell.layers;
}

/// Finds the cells between the cuts, joins them, and appends the parts. Returns false if there are too many parts.
bool find_parts(const Target& target, const std::vector<Layer>& layers, int step_x, int step_y, Planes planes,
                Parts& parts) {
  Cuts x(target.width, step_x), y(target.height, step_y);
  for (const Layer& layer : layers) {
    const Rect& v = layer.visible;
    x.add(v.x), x.add(v.x + v.width), y.add(v.y), y.add(v.y + v.height);
  }
  x.finish(), y.finish();
  if (x.cells() * y.cells() > most_cells) return false;
  std::array<Cell, most_cells> cells{};
  std::uint64_t hiding = 0;
  for (std::size_t l = 0; l < layers.size(); ++l) {
    const Rect& v = layers[l].visible;
    const std::uint64_t bit = std::uint64_t(1) << l;
    if (layers[l].hides) hiding |= bit;
    const int right = v.x + v.width, bottom = v.y + v.height;
    const int left = x.index(x.before(v.x)), end = x.index(x.after(right)), top = y.index(y.before(v.y)),
              last = y.index(y.after(bottom));
    for (int j = top; j < last; ++j)
      for (int i = left; i < end; ++i) {
        Cell& cell = cells[j * x.cells() + i];
        cell.layers |= bit;
        if (v.x <= x[i] && x[i + 1] <= right && v.y <= y[j] && y[j + 1] <= bottom) cell.whole |= bit;
      }
  }
  int above = parts.count, above_end = above;  // the parts of the previous row of cells
  for (int j = 0; j < y.cells(); ++j) {
    const int begin = parts.count;
    for (int i = 0; i < x.cells(); ++i) {
      Cell& cell = cells[j * x.cells() + i];
      hide(hiding, cell);
      OutputPart* const last = parts.count > begin ? &parts.part[parts.count - 1] : nullptr;
      if (last && cell == Cell{last->layers, last->whole, last->covered}) {
        last->rect.width = x[i + 1] - last->rect.x;
        continue;
      }
      if (parts.count == most_parts) return false;
      OutputPart& part = parts.part[parts.count++];
      part = {};
      part.layers = cell.layers, part.whole = cell.whole, part.covered = cell.covered, part.planes = planes;
      part.rect = {x[i], y[j], x[i + 1] - x[i], y[j + 1] - y[j]};
    }
    const auto continues = [&](const OutputPart& a, const OutputPart& b) {
      return a.rect.x == b.rect.x && a.rect.width == b.rect.width && a.layers == b.layers && a.whole == b.whole &&
             a.covered == b.covered;
    };
    if (parts.count - begin == above_end - above &&
        std::equal(parts.part + above, parts.part + above_end, parts.part + begin, continues)) {
      for (int i = above; i < above_end; ++i) parts.part[i].rect.height = y[j + 1] - parts.part[i].rect.y;
      parts.count = begin;
    } else {
      above = begin, above_end = parts.count;
    }
  }
  return true;
}

/// Finds the parts of all planes. Subsampled chroma has separate parts, unless the background shows. Returns false if
/// there are too many parts.
bool find_all_parts(const Target& target, const std::vector<Layer>& layers, Parts& parts) {
  parts.count = 0;
  const int step_x = 1 << target.shift_x, step_y = 1 << target.shift_y;
  if (!find_parts(target, layers, step_x, step_y, Planes::all, parts)) return false;
  if (!target.shift_x) return true;
  OutputPart* const end = parts.part + parts.count;
  if (!std::all_of(parts.part, end, [](const OutputPart& part) { return part.covered; })) return true;
  for (OutputPart* part = parts.part; part < end; ++part) part->planes = Planes::chroma;
  return find_parts(target, layers, 1, 1, Planes::luma, parts);
}

int tiles_across(const OutputPart& part) {
  return divide_up(part.rect.x + part.rect.width - first_tile(part), part.tile_width);
}
int tiles_down(const OutputPart& part) { return divide_up(part.rect.height, part.tile_height); }

/// Chooses the largest tiles that give enough blocks: width × `most` pixels, or the height reduced by a power of two.
/// `most` is a multiple of `least`. Tiles of chroma have 2^shift times as many rows.
void set_tiles(OutputPart* begin, OutputPart* end, int width, int most, int least, int wanted, int shift = 0) {
  for (int height = most;; height /= 2) {
    int blocks = 0;
    for (OutputPart* part = begin; part < end; ++part) {
      part->tile_width = std::int16_t(width);
      part->tile_height = std::int16_t(height << (part->planes == Planes::chroma ? shift : 0));
      blocks += tiles_across(*part) * tiles_down(*part);
    }
    if (blocks >= wanted || height <= least) return;
  }
}

/// Numbers the blocks, beginning with `first`. Returns the number after the last block.
int number_blocks(OutputPart* begin, OutputPart* end, int first) {
  while (begin < end) {
    OutputPart* last = begin;  // the end of the band
    int across = 0;
    for (; last < end && last->rect.y == begin->rect.y && last->rect.height == begin->rect.height &&
           last->planes == begin->planes;
         ++last) {
      last->begin = first, last->column = std::int16_t(across);
      across += tiles_across(*last);
    }
    for (OutputPart* part = begin; part < last; ++part) part->across = std::int16_t(across);
    first += across * tiles_down(*begin);
    begin = last;
  }
  return first;
}

/// Sorts parts by kind, and keeps the order within each kind. Does not allocate. Returns the first part that is copied.
OutputPart* sort(Parts& parts) {
  OutputPart old[most_parts];
  std::copy_n(parts.part, parts.count, old);
  OutputPart *to = parts.part, *copied = to;
  for (OutputPart::Kind kind :
       {OutputPart::Kind::scaled, OutputPart::Kind::edges, OutputPart::Kind::copied, OutputPart::Kind::mixed}) {
    if (kind == OutputPart::Kind::copied) copied = to;
    to = std::copy_if(old, old + parts.count, to, [kind](const OutputPart& part) { return part.kind == kind; });
  }
  return copied;
}

/// Makes a single part, in which blocks search for their layers.
void search(const Target& target, const ComposeLaunch& launch, Parts& parts) {
  parts.simple = parts.blocks = parts.scaled = 0, parts.mixing = 0;
  parts.count = 1;
  OutputPart& part = parts.part[0] = {};
  part.rect = {0, 0, target.width, target.height};
  part.kind = OutputPart::Kind::searched;
  part.tile_width = std::int16_t(launch.direct.tile_width), part.tile_height = std::int16_t(launch.direct.tile_height);
  parts.other_blocks = number_blocks(&part, &part + 1, 0);
}

OutputPart::Kind kind_of(const Target& target, const std::vector<Layer>& layers, const OutputPart& part) {
  const std::uint64_t upper = part.layers & (part.layers - 1);
  if (!part.covered) return OutputPart::Kind::mixed;
  int lowest = 0;
  while (!(part.layers >> lowest & 1)) ++lowest;
  const Layer& layer = layers[std::size_t(lowest)];
  if (!upper) return layer.copies ? OutputPart::Kind::copied : OutputPart::Kind::scaled;
  if (part.planes == Planes::chroma) return OutputPart::Kind::edges;
  const bool pixels = target.packed.data && target.sample_bytes == 1;
  const bool blends = pixels && layer.copies && layer.direct && part.whole == part.layers && !(upper & (upper - 1));
  return blends ? OutputPart::Kind::scaled : OutputPart::Kind::mixed;
}

}  // namespace

void schedule_parts(const Target& target, const std::vector<Layer>& layers, const ComposeLaunch& launch, Parts& parts) {
  if (launch.pixels.across || !find_all_parts(target, layers, parts)) return search(target, launch, parts);
  OutputPart* const end = parts.part + parts.count;
  for (OutputPart* part = parts.part; part < end; ++part) part->kind = kind_of(target, layers, *part);
  OutputPart* const copied = sort(parts);
  OutputPart* const others =
      std::find_if(copied, end, [](const OutputPart& part) { return part.kind == OutputPart::Kind::mixed; });
  const int wanted = target.packed.data ? tuning.wanted_pixel_blocks : tuning.wanted_direct_blocks;
  const int most = tuning.direct_strips * strip_height;
  set_tiles(parts.part, copied, tuning.direct_width, most, strip_height, wanted);
  set_tiles(copied, others, tuning.copy_bytes / target.channels[0].step / tuning.copy_step * tuning.copy_step,
            tuning.copy_rows, tuning.copy_rows / 4, wanted, target.shift_y);
  set_tiles(others, end, tuning.direct_width, most, strip_height, wanted);
  parts.simple = int(others - parts.part);
  parts.scaled = number_blocks(parts.part, copied, 0);
  parts.blocks = number_blocks(copied, others, parts.scaled);
  parts.other_blocks = number_blocks(others, end, 0);
  if (parts.scaled == parts.blocks) parts.scaled = 0;
  parts.mixing =
      std::uint32_t(std::min(parts.scaled / (std::max(parts.blocks, 1) * tuning.scaled_share) * 0x1p32, 0x1p32 - 1));
}

}  // namespace cudavision::blend
