// SPDX-License-Identifier: LGPL-2.1-or-later
#include "kernels/histogram/watch.hpp"

#include <algorithm>
#include <cmath>

namespace cudavision::histogram {
namespace {

constexpr double second = 1e9;

bool beyond(double value, double limit, bool above) { return above ? value > limit : value < limit; }

}  // namespace

const char* name_of(Condition condition) {
  constexpr const char* names[condition_count] = {"dark", "bright", "covered", "defocused", "frozen"};
  return names[std::size_t(condition)];
}

std::vector<Change> Watch::update(const Look& look, const WatchParams& params) {
  before_ = now_;
  label_before_ = label_;
  if (any_) now_ += look.step;
  any_ = true;
  label_ = look.time;

  std::vector<Change> changes;
  judge(Condition::dark, look.brightness, hold_time, changes);
  judge(Condition::bright, look.brightness, hold_time, changes);
  // A black or white picture hides detail and noise, and a picture without detail has no focus. Only the first
  // condition is reported.
  const bool lit = !beyond(look.brightness, rules[int(Condition::dark)].begin, false) &&
                   !beyond(look.brightness, rules[int(Condition::bright)].begin, true) && !is_on(Condition::dark) &&
                   !is_on(Condition::bright);
  const double detail = std::sqrt(look.sharpness * look.deviation);
  judge(Condition::covered, lit ? std::optional(detail) : std::nullopt, hold_time, changes);
  const bool detailed = lit && detail > rules[int(Condition::covered)].end && !is_on(Condition::covered);
  judge(Condition::defocused, focus(look, detailed), hold_time, changes);
  judge(Condition::frozen, lit ? look.difference : std::nullopt, params.frozen_time, changes);
  return changes;
}

std::vector<Change> Watch::end() {
  std::vector<Change> changes;
  for (int i = 0; i < condition_count; ++i)
    if (states_[std::size_t(i)].on)
      changes.push_back(
          {Condition(i), false, states_[std::size_t(i)].since, states_[std::size_t(i)].value, rules[i].end});
  *this = {};
  return changes;
}

/// Evaluates a condition in the next frame. No value: the condition cannot be evaluated now and stays unchanged.
void Watch::judge(Condition condition, std::optional<double> value, double begin_time, std::vector<Change>& changes) {
  State& state = states_[std::size_t(condition)];
  const Rule& rule = rules[std::size_t(condition)];
  if (!value) {
    state.changing.reset();
    return;
  }
  state.value = *value;
  const bool frozen = condition == Condition::frozen;
  const bool speaks = state.on ? beyond(*value, rule.end, !rule.above) : beyond(*value, rule.begin, rule.above);
  if (!speaks) {
    if (!state.on || double(now_ - state.spoke) >= rule.lapse * second) state.changing.reset();
    return;
  }
  state.spoke = now_;
  if (!state.changing) {
    // If a frame equals the previous one, the picture has not changed since the previous frame.
    const bool from_before = frozen && !state.on;
    state.changing = from_before ? before_ : now_;
    state.changing_since = from_before ? label_before_ : label_;
  }
  if (double(now_ - *state.changing) < (state.on ? hold_time : begin_time) * second) return;
  state.on = !state.on;
  state.changing.reset();
  if (state.on) state.since = state.changing_since;
  changes.push_back({condition, state.on, state.since, *value, state.on ? rule.begin : rule.end});
}

/// The sharpness relative to the usual sharpness. Also learns the usual sharpness. No value while the usual sharpness
/// is unknown, or if `judged` is false.
std::optional<double> Watch::focus(const Look& look, bool judged) {
  if (!judged) return {};
  const double relative = look.sharpness / look.deviation, step = double(now_ - before_) / second;
  const bool known = usual_.seconds >= focus_begin;
  const double focus = known ? std::max(look.sharpness / usual_.sharpness, relative / usual_.relative) : 1;
  const bool usual = focus > rules[int(Condition::defocused)].end && !is_on(Condition::defocused);
  double share = 1;  // weight of this frame in the mean
  if (usual) {
    usual_.seconds += step;
    if (usual_.seconds > 0) share = step / std::min(usual_.seconds, focus_memory);
  } else {
    share = step / focus_adaptation;
  }
  share = std::min(share, 1.0);
  usual_.sharpness += share * (look.sharpness - usual_.sharpness);
  usual_.relative += share * (relative - usual_.relative);
  return known ? std::optional(focus) : std::nullopt;
}

}  // namespace cudavision::histogram
