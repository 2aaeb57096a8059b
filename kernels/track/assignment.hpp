// SPDX-License-Identifier: LGPL-2.1-or-later
// Assigns rows to columns optimally. Efficient if few pairs are possible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace cudavision::track {

/// A row and a column that may be assigned to each other.
struct PossiblePair {
  std::uint32_t row, column;
  double cost;  ///< at least 0, finite
};

inline constexpr std::uint32_t unassigned = std::numeric_limits<std::uint32_t>::max();

/// Assigns rows to columns, each at most once, with the lowest total cost: the sum of the costs of the pairs, plus
/// `alone` for each row without a column. Returns the column of each row, or `unassigned`. Each pair of a row and a
/// column is listed at most once. The same input gives the same result. Worst case: O(rows · pairs · log(pairs)).
std::vector<std::uint32_t> assign(std::size_t columns, const std::vector<PossiblePair>& pairs,
                                  const std::vector<double>& alone);

}  // namespace cudavision::track
