// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/core/filter.hpp"

namespace cudavision {

enum class TableLayout : std::uint8_t {
  inclusive,  ///< W × H: entry (x, y) sums the samples 0 … x, 0 … y
  padded,  ///< (W + 1) × (H + 1): entry (x, y) sums those left of x and above y; the first row and column are zero, as in OpenCV
};

enum class SumType : std::uint8_t {
  automatic,  ///< u32 where no table of the frame can overflow, else u64
  u32,        ///< modulo 2^32: the sum over a rectangle is right as long as it fits itself
  u64,        ///< exact
  f32,        ///< the exact sum, rounded
  f64,        ///< the exact sum, rounded
};

enum class TableChannel : std::uint8_t {
  luma,  ///< the Y plane; of RGB floor(0.299f·R + 0.587f·G + 0.114f·B) in float32
  all,   ///< each component at its own size, alpha too, without padding
};

struct IntegralParams {
  TableLayout layout = TableLayout::inclusive;
  SumType sum_type = SumType::automatic;
  bool squared = false;  ///< also tables of the squares: f64 where the sums are f32 or f64, else u64
  TableChannel channel = TableChannel::luma;
};

/// One table that a plan fills.
struct TableInfo {
  Role role = Role::luma;       ///< what is summed
  bool squared = false;         ///< whether it is the squares
  SumType type = SumType::u32;  ///< of an entry, never automatic
  int width = 0, height = 0;    ///< entries

  int entry_bytes() const { return type == SumType::u32 || type == SumType::f32 ? 4 : 8; }
};

/// A plan for summed-area tables: made once, submitted often, on one stream at a time.
class Integral {
 public:
  virtual ~Integral() = default;
  Integral(const Integral&) = delete;
  Integral& operator=(const Integral&) = delete;

  const Geometry& geometry() const { return geometry_; }
  /// The tables in the order submit() takes them: the sums of each channel in the order of the format, then the squares.
  const std::vector<TableInfo>& tables() const { return tables_; }

  /// Fills `tables`, one place for each of tables(): entries of the table's type, aligned as that type asks, rows `pitch` bytes
  /// apart (tight or not; nothing is written between them), in the backend's memory. Returns without waiting on CUDA.
  /// Errors: settings, when the number of tables is wrong; resource, when memory is short or a launch fails.
  Status submit(const Image& src, const std::vector<Plane>& tables, Queue queue);

 protected:
  Integral(const Geometry& geometry, Backend backend, std::vector<TableInfo> tables)
      : geometry_(geometry), tables_(std::move(tables)), src_(backend) {}
  virtual Status compute(const Image& src, const std::vector<Plane>& tables, Queue queue) = 0;

 private:
  Geometry geometry_;
  std::vector<TableInfo> tables_;
  detail::AlignedPicture src_;
};

/// The tables that a plan of these parameters has.
std::vector<TableInfo> describe_tables(const IntegralParams& params, const Geometry& geometry);

/// Errors: settings (a backend not built in), resource.
Result<std::unique_ptr<Integral>> make_integral(const IntegralParams& params, const Geometry& geometry, Backend backend);

namespace detail {

/// Where the samples of a table come from: a channel of a set; or (`luma`) the luma of the frame's red, green and blue.
struct TableSource {
  bool luma = false;
  std::uint8_t set = 0, channel = 0;
};

/// What a backend computes: tables, sums before squares, and their sources.
struct IntegralPlan {
  Geometry geometry;
  bool padded = false;
  std::vector<TableInfo> tables;
  std::vector<TableSource> sources;
};

/// The luma alone; with `all` every component but alpha (`alpha`: that too) and padding.
std::vector<TableSource> table_sources(const FormatInfo& format, TableChannel channel, bool alpha);
/// The plan for these sources, with squares of those for which `squared` says so. Types must not be automatic.
IntegralPlan resolve_tables(const Geometry& geometry, bool padded, const std::vector<TableSource>& sources, SumType type,
                            bool squared, SumType squared_type);
/// The set and channel of a role; the format has it.
TableSource find_role(const FormatInfo& format, Role role);

Result<std::unique_ptr<Integral>> make_integral(IntegralPlan plan, Backend backend);
Result<std::unique_ptr<Integral>> make_integral_cuda(IntegralPlan plan);
Result<std::unique_ptr<Integral>> make_integral_cpu(IntegralPlan plan);

}  // namespace detail
}  // namespace cudavision
