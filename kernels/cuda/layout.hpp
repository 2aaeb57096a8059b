// SPDX-License-Identifier: LGPL-2.1-or-later
// The layout of a format as template arguments. Plain C++.
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/core/format.hpp"

namespace cudavision::cuda {

/// Calls f(sample, first, rest) with a value of the format's sample type and, as integral constants, the channel counts
/// of its first set and of its other sets. A kernel that processes all sets in one launch takes them as template
/// arguments.
template <typename F>
auto with_layout(const FormatInfo& format, F&& f) {
  using One = std::integral_constant<int, 1>;
  using Two = std::integral_constant<int, 2>;
  using Three = std::integral_constant<int, 3>;
  using Four = std::integral_constant<int, 4>;
  const int first = format.sets[0].channels, rest = format.set_count > 1 ? format.sets[1].channels : first;
  if (format.sample_bytes() == 1) {
    const std::uint8_t sample{};
    if (first == 3) return f(sample, Three{}, Three{});
    if (first == 4) return f(sample, Four{}, Four{});
    if (first == 2) return f(sample, Two{}, Four{});  // packed 4:2:2
    return rest == 2 ? f(sample, One{}, Two{}) : f(sample, One{}, One{});
  }
  const std::uint16_t sample{};
  if (first == 4) return f(sample, Four{}, Four{});
  return rest == 2 ? f(sample, One{}, Two{}) : f(sample, One{}, One{});
}

}  // namespace cudavision::cuda
