// SPDX-License-Identifier: LGPL-2.1-or-later
// Detects camera faults from the luma of frames. Uses simple arithmetic on values that are equal on both backends.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace cudavision::histogram {

enum class Condition { dark, bright, covered, defocused, frozen };
inline constexpr int condition_count = 5;
/// The name of a condition: the name of its enumerator.
const char* name_of(Condition condition);

/// When a condition begins and ends. The two limits differ, so that a noisy value does not make the condition begin and
/// end repeatedly.
struct Rule {
  /// Limits of the value. The condition begins when the value is beyond `begin`. It ends when the value is back on the
  /// other side of `end`.
  double begin, end;
  bool above;    ///< true: the condition is on while the value is above its limits; false: while it is below
  double lapse;  ///< seconds for which the value may return beyond the limit while the condition is about to end
};
/// The value of each condition, and its limits.
///   dark, bright: brightness.
///   covered: detail, √(sharpness · deviation). Both are small in a picture without detail, even if it is noisy.
///   defocused: focus, the larger of sharpness and sharpness ÷ deviation, each relative to its running mean.
///     Sharpness falls when the light is switched off, but the ratio does not. When the lens is out of focus, both do.
///   frozen: difference. A frame of the same picture, encoded again, may differ for a moment (a key frame).
inline constexpr Rule rules[condition_count] = {{0.06, 0.09, false, 0},
                                                {0.9, 0.85, true, 0},
                                                {2.5, 3.5, false, 0},
                                                {0.5, 0.7, false, 0},
                                                {0.0002, 0.01, false, 0.5}};

/// A value must be beyond its limit for this many seconds before a condition begins or ends. Exception: WatchParams
/// determines when `frozen` begins.
inline constexpr double hold_time = 1;
/// focus_memory: length in seconds of the running mean that the focus is relative to. focus_begin: seconds until the
/// focus is known.
inline constexpr double focus_memory = 60, focus_begin = 5;
/// Replaces focus_memory while the picture is less sharp than usual. After about ten minutes, the lower sharpness
/// counts as usual.
inline constexpr double focus_adaptation = 600;

struct WatchParams {
  double frozen_time = 2;  ///< seconds, 0 or more
};

/// The properties of a frame that a watch reads. They are in 8-bit steps, except brightness.
struct Look {
  std::uint64_t step = 0;  ///< ns since the previous frame
  std::uint64_t time = 0;  ///< any label of the frame, which is returned in Change::since
  double brightness = 0;   ///< the mean luma, from black (0) to white (1) of the format's range
  double deviation = 0, sharpness = 0;
  std::optional<double> difference;  ///< difference from the previous frame; no value if there was none
};

/// The start or the end of a condition.
struct Change {
  Condition condition;
  bool begins;
  std::uint64_t since;  ///< label of the first frame of the condition; frozen: label of the frame that repeats
  double value, limit;  ///< the condition's value in the frame of the change, and its limit; see rules
};

/// Follows one camera.
class Watch {
 public:
  /// Reads the next frame; returns the conditions that begin and end.
  std::vector<Change> update(const Look& look, const WatchParams& params);
  /// Ends the conditions that are on, and forgets all frames.
  std::vector<Change> end();

 private:
  using Time = std::uint64_t;  ///< ns since the first frame, modulo 2^64: only differences count

  struct State {
    bool on = false;
    double value = 0;
    std::uint64_t since = 0;
    std::optional<Time> changing;  ///< since when the value has been beyond its limit
    std::uint64_t changing_since = 0;
    Time spoke = 0;  ///< when the value was last beyond its limit
  };
  /// The running mean that the focus is relative to.
  struct Usual {
    double sharpness = 0, relative = 0;  ///< relative: sharpness ÷ deviation
    double seconds = 0;                  ///< duration of the frames in the mean
  };

  void judge(Condition condition, std::optional<double> value, double begin_time, std::vector<Change>& changes);
  std::optional<double> focus(const Look& look, bool judged);
  bool is_on(Condition condition) const { return states_[std::size_t(condition)].on; }

  std::array<State, condition_count> states_;
  Usual usual_;
  bool any_ = false;  ///< whether there was a frame
  Time now_ = 0, before_ = 0;
  std::uint64_t label_ = 0, label_before_ = 0;
};

}  // namespace cudavision::histogram
