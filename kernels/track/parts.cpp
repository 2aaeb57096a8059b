// SPDX-License-Identifier: LGPL-2.1-or-later
#include "kernels/track/parts.hpp"

#include <algorithm>

namespace cudavision::track {
namespace {

// Chosen like the constants of matching.cpp. A valley of 0.25 to 0.7 and a width of 0.15 to 0.25 work about as well.
constexpr double valley = 0.45;  ///< a column divides if it has at most this share of the rows of cells on either side
constexpr double least_width = 0.2;     ///< smallest width of a part, as a share of the height of the region
constexpr double valley_of_row = 0.75;  ///< like `valley`, in a row of objects of the usual size
constexpr double least_usual = 0.6;     ///< smallest width of a part of such a row ÷ usual width
constexpr double as_tall = 0.6;         ///< smallest common height of neighbours, as a share of the taller one
constexpr double least_ratio = 1.5;     ///< smallest height ÷ width of an upright box

/// A part of a region that is being divided: some columns of the analysis.
struct Columns {
  int first, last;
};

class Divider {
 public:
  Divider(const diff::Cells& cells, const std::vector<PartCell>& all) : cells_(cells), all_(all) {}

  /// Divides a region. Returns the columns of its parts from left to right, or nothing if it is not divided.
  std::vector<Columns> run(const SizeMap& sizes) {
    if (all_.empty() || !all_.front().looks) return {};
    Columns whole{all_.front().looks->left, all_.front().looks->right};
    Rect box;
    for (const PartCell& cell : all_) {
      whole.first = std::min<int>(whole.first, cell.looks->left);
      whole.last = std::max<int>(whole.last, cell.looks->right);
      box = diff::around(box, cell.box);
    }
    first_ = whole.first;
    rows_.assign(std::size_t(whole.last - whole.first + 1), 0);
    for (const PartCell& cell : all_) for_columns(cell, [&](int x) { ++rows_[std::size_t(x - first_)]; });
    valley_ = valley, narrow_ = least_width * box.height / cells_.analysis_scale;
    std::vector<Columns> parts;
    divide(whole, parts);
    parts.front().first = 0, parts.back().last = max_frame_side;  // includes the pixels next to the cells
    if (are_people(parts)) return parts;
    const double usual = sizes.width_in_row(box);
    if (usual == 0) return {};
    valley_ = valley_of_row, narrow_ = least_usual * usual / cells_.analysis_scale;
    parts.clear();
    divide(whole, parts);
    return parts.size() > 1 ? parts : std::vector<Columns>{};
  }

  /// The pixels of a cell in some columns: its changed columns, and the pixels beside it if its first or last column is
  /// among them.
  Rect clipped(const PartCell& cell, const Columns& columns) const {
    const int scale = cells_.analysis_scale;
    int left = max_frame_side, right = -1;
    for_columns(cell, [&](int x) {
      if (x >= columns.first && x <= columns.last) left = std::min(left, x), right = std::max(right, x);
    });
    if (right < 0) return {};
    if (left == cell.looks->left) left = columns.first;
    if (right == cell.looks->right) right = columns.last;
    return intersection(cell.box, {left * scale, cell.box.y, (right - left + 1) * scale, cell.box.height});
  }
  /// The number of a cell's changed columns among some columns.
  int count_in(const PartCell& cell, const Columns& columns) const {
    int count = 0;
    for_columns(cell, [&](int x) { count += x >= columns.first && x <= columns.last; });
    return count;
  }

 private:
  template <typename Work>
  void for_columns(const PartCell& cell, Work work) const {
    int log2_scale = 0;
    while (1 << log2_scale < cells_.analysis_scale) ++log2_scale;
    const diff::CellSpan span = diff::span_of_cell(cell.x, cells_.cell_size, cells_.frame_width, log2_scale);
    const int log2 = diff::log2_columns(span);
    for (int x = cell.looks->left; x <= cell.looks->right; ++x)
      if (cell.looks->columns >> ((x - span.first) >> log2) & 1) work(x);
  }

  int rows(int x) const { return rows_[std::size_t(x - first_)]; }
  int changed_columns(const Columns& part) const {
    int count = 0;
    for (int x = first(part); x <= last(part); ++x) count += rows(x) > 0;
    return count;
  }
  int most_rows(const Columns& part) const {
    int most = 0;
    for (int x = first(part); x <= last(part); ++x) most = std::max(most, rows(x));
    return most;
  }
  // Only columns with changed pixels count.
  int first(const Columns& part) const { return std::max(part.first, first_); }
  int last(const Columns& part) const { return std::min(part.last, first_ + int(rows_.size()) - 1); }
  Rect box_of(const Columns& columns) const {
    Rect box;
    for (const PartCell& cell : all_) box = diff::around(box, clipped(cell, columns));
    return box;
  }

  bool are_people(const std::vector<Columns>& parts) const {
    const double tall = as_tall * (all_.back().y - all_.front().y + 1);
    return parts.size() > 1 && std::all_of(parts.begin(), parts.end(), [&](const Columns& part) {
             return most_rows(part) >= tall && changed_columns(part) >= narrow_ / 2 && upright(box_of(part));
           });
  }

  void divide(const Columns& part, std::vector<Columns>& parts) const {
    // The largest number of rows up to each column, from the left and from the right.
    std::vector<int> left, right;
    for (int x = part.first; x <= part.last; ++x) left.push_back(std::max(left.empty() ? 0 : left.back(), rows(x)));
    for (int x = part.last; x >= part.first; --x) right.push_back(std::max(right.empty() ? 0 : right.back(), rows(x)));
    std::reverse(right.begin(), right.end());
    int at = -1;
    for (int x = part.first; x <= part.last; ++x) {
      const std::size_t i = std::size_t(x - part.first);
      const int sides = std::min(left[i], right[i]);  // 0 in the margin that a wide gap leaves
      if (x - part.first < narrow_ || part.last - x < narrow_ || sides == 0 || rows(x) > valley_ * sides) continue;
      if (at < 0 || rows(x) < rows(at)) at = x;
    }
    if (at < 0) {
      parts.push_back(part);
      return;
    }
    int last = at;  // last column of the valley
    while (last < part.last && rows(last + 1) == rows(at)) ++last;
    const int middle = at + (last - at) / 2;
    divide({part.first, middle}, parts);
    divide({middle + 1, part.last}, parts);
  }

  const diff::Cells& cells_;
  const std::vector<PartCell>& all_;
  int first_ = 0;          // first column of the region
  double valley_ = 0;      // the largest share of rows in a valley
  double narrow_ = 0;      // fewest columns of a part on its side of a valley
  std::vector<int> rows_;  // number of rows of cells with changed pixels in each column, from first_ on
};

}  // namespace

bool upright(const Rect& box) { return box.height >= least_ratio * box.width; }

Offset offset_of(const Rect& a, const Rect& b) {
  return {std::min(a.x + a.width, b.x + b.width) - std::max(a.x, b.x),
          std::max(a.y, b.y) - std::min(a.y + a.height, b.y + b.height)};
}

bool beside(const Rect& a, const Rect& b) {
  const Offset offset = offset_of(a, b);
  return upright(a) && upright(b) && -offset.gap >= as_tall * std::max(a.height, b.height) && offset.overlap <= 0;
}

std::vector<Part> find_parts(const diff::MotionRegions& found, const diff::Cells& cells, std::size_t most,
                             const SizeMap& sizes) {
  std::vector<Part> wholes(std::min(found.kept.size(), most));
  for (std::size_t i = 0; i < wholes.size(); ++i) static_cast<diff::MotionRegion&>(wholes[i]) = found.kept[i];
  for (const diff::CellRun& run : found.runs) {
    if (run.region >= wholes.size()) continue;
    for (int x = run.first; x <= run.last; ++x) {
      const std::size_t at = run.cells + std::size_t(x - run.first);
      wholes[run.region].cells.push_back({x, run.y, found.boxes[at], found.looks.empty() ? nullptr : &found.looks[at]});
    }
  }
  std::vector<Part> parts;
  for (Part& whole : wholes) {
    Divider divider(cells, whole.cells);
    const std::vector<Columns> columns = divider.run(sizes);
    if (columns.empty()) {
      parts.push_back(std::move(whole));
      continue;
    }
    const std::size_t begin = parts.size();
    for (std::size_t k = 0; k < columns.size(); ++k) {
      parts.push_back({});
      parts.back().score = whole.score;
    }
    for (const PartCell& cell : whole.cells) {
      std::size_t owner = 0;  // the part with most of the cell's columns
      int most_columns = -1, parts_of_cell = 0;
      for (std::size_t k = 0; k < columns.size(); ++k) {
        const int count = divider.count_in(cell, columns[k]);
        if (count > most_columns) most_columns = count, owner = k;
        if (count == 0) continue;
        ++parts_of_cell;
        parts[begin + k].box = diff::around(parts[begin + k].box, divider.clipped(cell, columns[k]));
      }
      parts[begin + owner].cells.push_back(
          {cell.x, cell.y, divider.clipped(cell, columns[owner]), parts_of_cell > 1 ? nullptr : cell.looks});
      ++parts[begin + owner].area;
      if (cell.looks) parts[begin + owner].structure.add(cell.looks->structure);
    }
  }
  return parts;
}

}  // namespace cudavision::track
