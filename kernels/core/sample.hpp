// SPDX-License-Identifier: LGPL-2.1-or-later
// How stored words hold samples, for both backends.
#pragma once

#include "kernels/core/border.hpp"

namespace cudavision {

/// The sample in a stored word. Unused low bits are dropped; a value above the depth counts as the largest sample.
template <typename T>
CUDAVISION_HOST_DEVICE constexpr int sample_of(T word, int shift, int max_value) {
  if (sizeof(T) == 1) return word;
  const int value = word >> shift;
  return value < max_value ? value : max_value;
}

/// Whether words of this format can hold a value above the depth, because the word has bits above the sample.
inline bool can_exceed_depth(const FormatInfo& format) {
  return format.depth + format.shift < 8 * format.sample_bytes();
}

}  // namespace cudavision
