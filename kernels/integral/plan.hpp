// SPDX-License-Identifier: LGPL-2.1-or-later
// Private to the operations that use tables: the tables that a backend computes, and their sources.
#pragma once

#include "kernels/integral/integral.hpp"

namespace cudavision::integral {

/// The samples of a table: one channel of a channel set, or the luma of red, green and blue.
struct TableSource {
  bool luma = false;  ///< whether the samples are luma of red, green and blue; if so, set and channel are 0
  std::uint8_t set = 0, channel = 0;  ///< indices into FormatInfo::sets and ChannelSet::roles
};

struct Plan {
  Geometry geometry;
  bool padded = false;
  std::vector<TableInfo> tables;     ///< sums, then sums of squares
  std::vector<TableSource> sources;  ///< source of each table
};

/// The sources for `channel`: luma alone, or every component except padding. `alpha`: whether to include alpha.
std::vector<TableSource> table_sources(const FormatInfo& format, TableChannel channel, bool alpha);
/// The plan for these sources. `squared`: whether to add tables of squares, of type `squared_type`. Neither type may be
/// automatic.
Plan resolve_tables(const Geometry& geometry, bool padded, const std::vector<TableSource>& sources, SumType type,
                    bool squared, SumType squared_type);
/// The channel with this role. The format must have it.
TableSource find_role(const FormatInfo& format, Role role);

/// Make the backends. The context must be current to make and use a CUDA plan. Errors: resource.
Result<std::unique_ptr<Integral>> make_cuda(Plan plan);
Result<std::unique_ptr<Integral>> make_cpu(Plan plan);

}  // namespace cudavision::integral
