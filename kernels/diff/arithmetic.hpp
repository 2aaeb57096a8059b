// SPDX-License-Identifier: LGPL-2.1-or-later
// The arithmetic of frame differences, for both backends.
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/core/host_device.hpp"
#include "kernels/diff/diff.hpp"

namespace cudavision::diff {

/// How differences are shown; see class Diff.
struct Show {
  Mode mode = Mode::absolute;
  bool plain = true;  ///< gain 1 and not squared: |d| is shown unchanged
  int max = 255, middle = 128;
  std::uint64_t gain = 0;  ///< for |d| in steps of 2^−16; for d², divided by max, in steps of 2^−32

  /// The sample that shows the difference d = sample − reference. `about_middle`: for Mode::signed_ and for chroma.
  CUDAVISION_HOST_DEVICE int operator()(int d, bool about_middle) const {
    const std::uint64_t size = std::uint64_t(d < 0 ? -d : d);
    std::uint64_t shown = size;
    if (!plain)
      shown = mode == Mode::squared ? (size * size * gain + (1ull << 31)) >> 32 : (size * gain + (1u << 15)) >> 16;
    const int most = shown < std::uint64_t(max) ? int(shown) : max;
    if (!about_middle) return most;
    const int value = d < 0 ? middle - most : middle + most;
    return value < 0 ? 0 : value > max ? max : value;
  }
};

inline constexpr int shadow_bits = 15;

/// Whether a pixel shows the background in shadow, by the rule of OpenCV's BackgroundSubtractorMOG2 for a mode: its
/// samples are about `a` times the samples of the background, with a from `least` to 1. Without colour, every pixel in
/// this range of brightness counts.
struct Shadow {
  int channels = 1;     ///< compared channels
  int black[3] = {};    ///< samples of black
  int threshold = 0;    ///< allowed difference from `a` times the background, in samples; scaled by a
  int least = 1 << 14;  ///< lowest brightness of a shadow, in steps of 2^−15

  CUDAVISION_HOST_DEVICE bool operator()(const int (&sample)[3], const int (&background)[3]) const {
    std::int64_t along = 0, size = 0;  // a = along / size
    for (int c = 0; c < channels; ++c) {
      const std::int64_t lit = background[c] - black[c];
      along += (sample[c] - black[c]) * lit;
      size += lit * lit;
    }
    if (size == 0 || along > size || along * (1 << shadow_bits) < least * size) return false;
    for (int c = 0; c < channels; ++c) {
      const std::int64_t away = along * (background[c] - black[c]) - (sample[c] - black[c]) * size;
      if ((away < 0 ? -away : away) > threshold * along) return false;
    }
    return true;
  }
};

inline constexpr int background_rate_bits = 15;

/// Number of fractional bits of the background: equal to the bits of a stored sample.
CUDAVISION_HOST_DEVICE constexpr int background_bits(int sample_bytes) { return 8 * sample_bytes; }
/// The background as a sample, rounded half up.
template <typename T>
CUDAVISION_HOST_DEVICE inline int background_sample(std::uint32_t background) {
  constexpr int bits = background_bits(sizeof(T));
  return int((background + (1u << (bits - 1))) >> bits);
}
/// How a background follows the frames; see background_step().
struct Follow {
  int rate = 0;            ///< fraction of the distance to the sample, in steps of 2^−15
  std::uint32_t most = 0;  ///< the largest distance that counts in a frame, in the fixed point of the background
};
/// Follow::most for a background without a limit.
CUDAVISION_HOST_DEVICE constexpr std::uint32_t unlimited_step(int sample_bytes) {
  return sample_bytes == 1 ? 0xffff : ~0u;
}

/// The background after a sample v: bg + rate·way / 2^15. The way is v − bg, limited to ±`most`. The step is rounded
/// away from zero, so the background reaches v at any rate above 0.
///
/// Two references use this function. Reference::background, a running average, moves by a fraction of the distance.
/// Reference::median moves the whole distance, but at most `most`: it rests where as many samples lie above it as
/// below. (N. McFarlane, C. Schofield: Segmentation and tracking of piglets in images. Machine Vision and Applications
/// 8 (1995), 187–193.) Both use one formula without a branch, so the kernels need no more registers than for the
/// average alone. limited: false if `most` is unlimited_step().
template <typename T, bool limited = true>
CUDAVISION_HOST_DEVICE inline std::uint32_t background_step(std::uint32_t background, int v, const Follow& follow) {
  using Wide = typename std::conditional<sizeof(T) == 1, std::int32_t, std::int64_t>::type;
  Wide way = (Wide(v) << background_bits(sizeof(T))) - Wide(background);
  if constexpr (limited) {
    const Wide most = Wide(follow.most);
    way = way < -most ? -most : way > most ? most : way;
  }
  const Wide round = way > 0 ? (1 << background_rate_bits) - 1 : 0;
  return std::uint32_t(Wide(background) + ((way * follow.rate + round) >> background_rate_bits));
}

}  // namespace cudavision::diff
