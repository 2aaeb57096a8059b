// SPDX-License-Identifier: LGPL-2.1-or-later
#include <algorithm>
#include <array>

#include "kernels/cpu/lanes.hpp"
#include "kernels/diff/cpu_stages.hpp"
#include "kernels/diff/diff.hpp"

namespace cudavision::diff {
namespace {

/// Finds the direction across the outline of the mask at the pixels of a row of a cell, as StructureJob::vote() does.
class Outline {
 public:
  // cppcheck-suppress uninitMemberVar ; begin_row() sets the columns
  Outline(const cv::Mat& mask, CellSpan across) : mask_(mask), across_(across) {}

  /// Moves to a row, which is the first row or the next one: sums, for each column, the changed pixels in the
  /// surrounding rows, and their offsets from the row.
  void begin_row(int y, bool is_first) {
    const int top = std::max(0, y - reach), bottom = std::min(mask_.rows - 1, y + reach);
    rows_ = {bottom - top + 1, (top + bottom - 2 * y) * (bottom - top + 1) / 2};
    const int first = std::max(0, across_.first - reach), last = std::min(mask_.cols - 1, across_.last + reach);
    if (is_first) {
      std::fill_n(columns_.begin(), across_.last - across_.first + 1 + 2 * reach, Column{0, 0});
      for (int v = top; v <= bottom; ++v) add(v, v - y, first, last);
      return;
    }
    const int out = y - 1 - reach;  // the offset of each summed row decreases by one
    if (out >= 0) remove(out, first, last);
    for (int x = first; x <= last; ++x) columns_[std::size_t(place(x))].come_nearer();
    if (y + reach < mask_.rows) add(y + reach, reach, first, last);
  }
  /// The direction at pixel x of the row. here: whether that pixel changed.
  Across at(int x, bool here) const {
    Across sum{0, 0};
    if (x >= reach && x + reach < mask_.cols) {
      const Column* const from = &columns_[std::size_t(place(x - reach))];
      sum.x = 2 * (from[4].count - from[0].count) + from[3].count - from[1].count;
      for (int i = 0; i < 5; ++i) sum.y += from[i].offsets;
      return here ? Across{-sum.x, 5 * rows_.offsets - sum.y} : sum;
    }
    const int first = std::max(0, x - reach), last = std::min(mask_.cols - 1, x + reach);
    for (int u = first; u <= last; ++u) {
      const Column& column = columns_[std::size_t(place(u))];
      sum.x += (here ? rows_.count - column.count : column.count) * (u - x);
      sum.y += here ? rows_.offsets - column.offsets : column.offsets;
    }
    return sum;
  }

 private:
  static constexpr int reach = StructureJob::outline;
  static_assert(reach == 2);
  struct Column {
    std::int8_t count, offsets;  ///< number of changed pixels in the column, and the sum of their vertical offsets

    void come_nearer() { offsets = std::int8_t(offsets - count); }
  };
  /// Adds the changed pixels of row v, which is `offset` rows below the current row.
  void add(int v, int offset, int first, int last) {
    const unsigned char* const row = mask_.ptr(v);
    for (int x = first; x <= last; ++x) {
      Column& column = columns_[std::size_t(place(x))];
      const int changed = row[x] != 0;
      column.count = std::int8_t(column.count + changed);
      column.offsets = std::int8_t(column.offsets + changed * offset);
    }
  }
  /// Removes the changed pixels of row v, the first of the summed rows.
  void remove(int v, int first, int last) {
    const unsigned char* const row = mask_.ptr(v);
    for (int x = first; x <= last; ++x) {
      Column& column = columns_[std::size_t(place(x))];
      const int changed = row[x] != 0;
      column.count = std::int8_t(column.count - changed);
      column.offsets = std::int8_t(column.offsets + changed * reach);
    }
  }
  int place(int x) const { return x - across_.first + reach; }

  const cv::Mat& mask_;
  const CellSpan across_;
  struct {
    int count, offsets;
  } rows_{};  ///< values of a column in which all pixels changed
  std::array<Column, max_cell + 2 * reach> columns_;
};

Structure structure_of_cell(const StructureJob& job, const cv::Mat& mask, CellSpan across, CellSpan down) {
  Structure structure{};
  Outline outline(mask, across);
  for (int y = down.first; y <= down.last; ++y) {
    const unsigned char* const row = mask.ptr(y);
    outline.begin_row(y, y == down.first);
    for (int x = across.first; x <= across.last; ++x)
      job.vote(x, y, outline.at(x, row[x] != 0), row[x] != 0, structure);
  }
  return structure;
}

/// Adds the changed pixels first … last of a row.
template <typename T>
CUDAVISION_INLINE void add_row(const LooksJob& given, const unsigned char* row, int y, CellSpan pixels, CellSpan across,
                               CellLooks& looks) {
  const LooksJob job = given;
  const int log2 = log2_columns(across);
  for (int x = pixels.first; x <= pixels.last; ++x) {
    if (row[x] == 0) continue;
    const PixelLooks here = looks_of<T>(job, x, y);
    ++looks.pixels;
    looks.luma += std::uint32_t(here.luma);
    looks.luma_squares += std::uint32_t(here.luma * here.luma);
    looks.cb += here.cb;
    looks.cr += here.cr;
    looks.columns |= std::uint64_t(1) << ((x - across.first) >> log2);
  }
}

/// sums: whether more than the extent is measured.
template <typename T>
CUDAVISION_FLAT CellLooks looks_of_cell(const LooksJob& job, const cv::Mat& mask, CellSpan across, CellSpan down,
                                        bool sums) {
  CellLooks looks{};
  bool any = false;
  for (int y = down.first; y <= down.last; ++y) {
    const unsigned char* const row = mask.ptr(y);
    CellSpan pixels = across;
    while (pixels.first <= pixels.last && row[pixels.first] == 0) ++pixels.first;
    if (pixels.first > pixels.last) continue;
    while (row[pixels.last] == 0) --pixels.last;
    looks.left = any ? std::min(looks.left, std::uint16_t(pixels.first)) : std::uint16_t(pixels.first);
    looks.right = std::max(looks.right, std::uint16_t(pixels.last));
    if (!any) looks.top = std::uint16_t(y);
    looks.bottom = std::uint16_t(y);
    any = true;
    if (sums) add_row<T>(job, row, y, pixels, across, looks);
  }
  return looks;
}

}  // namespace

void measure_looks(const LooksJob& job, bool bytes, const cv::Mat& mask, const Cells& cells,
                   const std::vector<std::uint32_t>& changed, std::vector<CellLooks>& looks) {
  looks.resize(changed.size());
  const int width = divide_up(cells.frame_width, cells.cell_size);
  for (std::size_t i = 0; i < changed.size(); ++i) {
    if (changed[i] == 0) continue;
    const int x = int(i) % width, y = int(i) / width;
    const CellSpan across = span_of_cell(x, cells.cell_size, cells.frame_width, job.log2_scale);
    const CellSpan down = span_of_cell(y, cells.cell_size, cells.frame_height, job.log2_scale);
    const Rect box = cells.box(x, y);
    const bool measured = job.measures(changed[i], std::uint32_t(box.width) * std::uint32_t(box.height)),
               sums = measured && !job.only_extents;
    looks[i] = bytes ? looks_of_cell<std::uint8_t>(job, mask, across, down, sums)
                     : looks_of_cell<std::uint16_t>(job, mask, across, down, sums);
    if (measured && job.structure.frame) looks[i].structure = structure_of_cell(job.structure, mask, across, down);
  }
}

}  // namespace cudavision::diff
