// SPDX-License-Identifier: LGPL-2.1-or-later
// Summed-area tables (integral images): each entry is the sum of all samples above and to the left of it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/core/filter.hpp"

namespace cudavision::integral {

enum class TableLayout : std::uint8_t {
  inclusive,  ///< W × H entries: entry (x, y) is the sum of columns 0 … x of rows 0 … y
  /// (W + 1) × (H + 1) entries: entry (x, y) is the sum of columns 0 … x − 1 of rows 0 … y − 1; row 0 and column 0 are
  /// zero, as in OpenCV.
  padded,
};

enum class SumType : std::uint8_t {
  automatic,  ///< u32 if no table of the frame can overflow, otherwise u64
  u32,        ///< modulo 2^32: the sum over a rectangle is exact if it fits in 32 bits
  u64,        ///< exact
  f32,        ///< the exact sum, rounded
  f64,        ///< the exact sum, rounded
};

enum class TableChannel : std::uint8_t {
  luma,  ///< the Y plane; for RGB, floor(0.299f·R + 0.587f·G + 0.114f·B) in float32
  all,   ///< each component at its own size, including alpha, excluding padding
};

struct Params {
  TableLayout layout = TableLayout::inclusive;
  SumType sum_type = SumType::automatic;
  bool squared = false;  ///< whether to add tables of squared samples: f64 if the sums are f32 or f64, otherwise u64
  TableChannel channel = TableChannel::luma;
};

/// The bytes of an entry. `type` must not be SumType::automatic.
constexpr int entry_bytes(SumType type) { return type == SumType::u32 || type == SumType::f32 ? 4 : 8; }

/// A table that a plan fills.
struct TableInfo {
  Role role = Role::luma;       ///< the component that is summed
  bool squared = false;         ///< whether the samples are squared before they are summed
  SumType type = SumType::u32;  ///< type of an entry, never automatic
  int width = 0, height = 0;    ///< entries

  int entry_bytes() const { return integral::entry_bytes(type); }
};

/// A plan for summed-area tables. Make it once and submit it often, on one stream at a time.
class Integral {
 public:
  virtual ~Integral() = default;
  Integral(const Integral&) = delete;
  Integral& operator=(const Integral&) = delete;

  /// The tables in the order of submit(): the sums of each channel in the order of the format, then the sums of
  /// squares.
  const std::vector<TableInfo>& tables() const { return tables_; }

  /// Fills one table for each element of tables(). `src`: a picture with the plan's geometry, in the backend's memory.
  /// `tables`: memory of the backend, aligned to the entry type; rows are `pitch` bytes apart. Bytes between rows are
  /// not written. Does not wait for CUDA. Errors: settings (the number of tables is wrong), resource (out of memory, or
  /// a launch fails).
  Status submit(const Image& src, const std::vector<Plane>& tables, Queue queue);

 protected:
  Integral(Backend backend, std::vector<TableInfo> tables) : tables_(std::move(tables)), src_(backend) {}
  virtual Status compute(const Image& src, const std::vector<Plane>& tables, Queue queue) = 0;

 private:
  std::vector<TableInfo> tables_;
  AlignedPicture src_;
};

/// The tables of a plan with these parameters.
std::vector<TableInfo> describe_tables(const Params& params, const Geometry& geometry);

/// Makes a plan. Errors: settings (the backend is not built in), resource.
Result<std::unique_ptr<Integral>> make(const Params& params, const Geometry& geometry, Backend backend);

}  // namespace cudavision::integral
