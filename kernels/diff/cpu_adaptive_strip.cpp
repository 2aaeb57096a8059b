// SPDX-License-Identifier: LGPL-2.1-or-later
#include "kernels/diff/cpu_adaptive_strip.hpp"

#include <algorithm>

#include "kernels/diff/cpu_adaptive_source.hpp"

namespace cudavision::diff::adaptive {

using cpu::Lanes;

/// Processes a strip of a frame, N pixels at a time.
template <int channels, int N>
struct StripWork : StripSource<channels, N> {
  using From = StripSource<channels, N>;
  using From::strip, From::job, From::ring_index, From::source, From::load, From::light_at;
  using typename From::F, typename From::Int, typename From::Words, typename From::Pixels, typename From::Source;
  using Twice = Lanes<std::int16_t, 2 * N>;
  using Counts = Lanes<std::uint16_t, N>;

  const Rates& rates;
  const cv::Mat& unmasked;
  cv::Mat& changed;

  const std::int16_t* row(Strip::Rows& rows, int y) const {
    return y < 0 || y >= job.height ? rows.zeros() : rows.at(y);
  }
  bool flag(const bool (&flags)[Strip::Rows::kept], int y) const {
    return y >= 0 && y < job.height && flags[ring_index(y)];
  }
  /// Sets the padding after a row to 0.
  void trim(std::int16_t* numbers) const { std::fill_n(numbers + job.width, N, std::int16_t(0)); }

  /// Returns the sum of the differences of the counted pixels.
  CUDAVISION_INLINE std::uint64_t expect_row(int y) const {
    this->mix_light(y);
    std::int16_t *const evidence = strip.evidence_.at(y), *const luma = strip.luma_.at(y);
    const Source row = source(y);
    const bool own = y >= strip.begin_ && y < strip.end_, drops_shadows = job.drops_shadows;
    const int width = job.width, all_before = !own ? 0 : unmasked.empty() ? width / N * N : 0;
    std::uint8_t* const expected_row = job.expected + job.at(0, y);
    Int sum(0);
    for (int x = 0; x < width; x += N) {
      const Pixels pixels = load(row, x);
      const auto expected = adaptive::expect(pixels, light_at(row, x));
      evidence_of(pixels, expected).template as<std::int16_t>().store(evidence + x);
      const auto coarse = coarse_luma(expected.value[0]).template as<std::int16_t>();
      if (drops_shadows) coarse.store(luma + x);
      if (!own) continue;
      expected_byte(coarse).template as<std::uint8_t>().store(expected_row + x);
      const Int difference = largest_difference(pixels);
      sum = sum + (x < all_before ? difference : unmasked_of(difference, x, y));
    }
    trim(evidence), trim(luma);
    std::int32_t sums[N];
    sum.store(sums);
    std::uint64_t total = 0;
    for (std::int32_t one : sums) total += std::uint64_t(one);
    return total;
  }
  /// The differences beginning at pixel (x, y); differences of pixels that are not counted become 0.
  CUDAVISION_INLINE Int unmasked_of(Int differences, int x, int y) const {
    std::int32_t each[N];
    differences.store(each);
    for (int i = 0; i < N; ++i)
      if (x + i >= job.width || (!unmasked.empty() && !unmasked.ptr(y)[x + i])) each[i] = 0;
    return Int::load(each);
  }

  /// Adds the evidence of row `in`, and subtracts the evidence of row `out`.
  CUDAVISION_INLINE void sum_evidence(int in, int out, int first) const {
    const std::int16_t *const added = row(strip.evidence_, in), *const taken = out < first ? strip.evidence_.zeros()
                                                                                           : row(strip.evidence_, out);
    std::int16_t* const sums = strip.evidence_sums_.data() + Strip::Rows::margin;
    const int width = job.width;
    using Sums = Lanes<std::uint16_t, 2 * N>;  // holds sums of 6 rows temporarily
    for (int x = 0; x < width; x += 2 * N)
      (Sums::load(sums + x) + Sums::load(added + x) - Sums::load(taken + x)).store(sums + x);
  }

  CUDAVISION_INLINE void find_above(int y) const {
    std::int16_t *const levels = strip.level_.at(y), *const is_above = strip.above_.at(y);
    const std::int16_t* const sums = strip.evidence_sums_.data() + Strip::Rows::margin;
    const std::uint16_t* const across = strip.counts_[1].data();
    const Rates limits = rates;
    const int width = job.width, pixels_down = count_along(2, y, job.height);
    const Int down(pixels_down);
    // 16-bit sums are enough to recognise most pixels as noise. They are exact if each of the five summands is small. A
    // limit that needs more bits is lowered, so that the exact sums decide.
    constexpr int most_sum = 65535 / 5;
    using Sums = Lanes<std::uint16_t, 2 * N>;
    const Sums limit(pixels_down * limits.raised);
    Words any_above(0);
    for (int x = 0; x < width; x += 2 * N) {
      const auto from = [&](int dx) CUDAVISION_INLINED { return Sums::load(sums + x + dx); };
      const Sums sum = from(-2) + from(-1) + (from(0) + from(1)) + from(2),
                 largest = most(most(most(from(-2), from(-1)), most(from(0), from(1))), from(2));
      if (!cpu::any(either(sum > Sums::load(across + x) * limit, largest > Sums(most_sum)))) {
        Twice(0).store(levels + x), Twice(0).store(is_above + x);
        continue;
      }
      for (int half = x; half < x + 2 * N; half += N) {
        const auto at = [&](int dx) CUDAVISION_INLINED { return Counts::load(sums + half + dx); };
        const Int sum = (at(-2) + at(-1)).template as<std::int32_t>() + (at(0) + at(1)).template as<std::int32_t>() +
                        at(2).template as<std::int32_t>();
        const Int found = level_of(limits, sum, Counts::load(across + half).template as<std::int32_t>() * down);
        const Words over_threshold = (found >= Int(int(above))).template as<std::int16_t>();
        found.template as<std::int16_t>().store(levels + half), over_threshold.store(is_above + half);
        any_above = any_above | over_threshold;
      }
    }
    trim(levels), trim(is_above);
    strip.any_above_[ring_index(y)] = cpu::any(any_above);
  }

  /// Whether the pixels beginning at x, or their neighbours, are set in row y or the adjacent rows.
  template <typename Mask>
  CUDAVISION_INLINE Mask around(Strip::Rows& rows, int x, int y) const {
    Mask any(0);
    for (int dy = -1; dy <= 1; ++dy) {
      const std::int16_t* const from = row(rows, y + dy) + x;
      any = any | Mask::load(from - 1) | Mask::load(from) | Mask::load(from + 1);
    }
    return any;
  }
  bool any_around(const bool (&flags)[Strip::Rows::kept], int y) const {
    return flag(flags, y - 1) || flag(flags, y) || flag(flags, y + 1);
  }

  CUDAVISION_INLINE void find_near_above(int y) const {
    std::int16_t* const near = strip.near_above_.at(y);
    if (!any_around(strip.any_above_, y)) {
      std::fill_n(near, job.width, std::int16_t(0));
      return;
    }
    const Source row = source(y);
    const ShadowRows around_row = shadow_rows(y);
    const int width = job.width;
    for (int x = 0; x < width; x += 2 * N) {
      const Twice is_near = around<Twice>(strip.above_, x, y);
      is_near.store(near + x);
      if (!job.drops_shadows || !cpu::any(is_near)) continue;
      for (int half = x; half < std::min(width, x + 2 * N); half += N)
        if (cpu::any(Words::load(near + half))) compare_with_shadow(row, around_row, half, y);
    }
    trim(near), trim(strip.unlike_.at(y));
  }
  /// The rows around row y that are examined for shadows.
  struct ShadowRows {
    const std::int16_t *frame[5], *luma[5];  ///< zeros outside the frame
    Int down;                                ///< number of these rows in the frame
  };
  ShadowRows shadow_rows(int y) const {
    ShadowRows rows;
    for (int i = 0; i < 5; ++i) {
      const int at = y + i - 2;
      rows.luma[i] = row(strip.luma_, at);
      rows.frame[i] = at < 0 || at >= job.height ? strip.luma_.zeros() : job.frame + job.at(0, at);
    }
    rows.down = count_along(2, y, job.height);
    return rows;
  }
  CUDAVISION_INLINE void compare_with_shadow(const Source& of, const ShadowRows& rows, int x, int y) const {
    const auto sum_of = [&](const std::int16_t* const(&from)[5], auto luma_at) CUDAVISION_INLINED {
      Int sum(0);
      CUDAVISION_UNROLLED(5)
      for (int dx = -2; dx <= 2; ++dx) {
        Counts down(0);
        CUDAVISION_UNROLLED(5)
        for (const std::int16_t* const row : from) down = down + luma_at(row, x + dx).template as<std::uint16_t>();
        sum = sum + down.template as<std::int32_t>();
      }
      return sum;
    };
    const bool inside = x >= 2 && x + 2 + N <= job.width;
    const Int frame = sum_of(rows.frame, [&](const std::int16_t* row, int at_x) CUDAVISION_INLINED {
      // The first and the last pixel of a row lack a neighbour on one side.
      if (inside) return coarse_luma_of(Words::load(row + at_x));
      std::int16_t each[N];
      for (int i = 0; i < N; ++i) each[i] = at_x + i >= 0 && at_x + i < job.width ? row[at_x + i] : std::int16_t(0);
      return coarse_luma_of(Words::load(each));
    });
    const Int luma =
        sum_of(rows.luma, [](const std::int16_t* row, int at_x) CUDAVISION_INLINED { return Words::load(row + at_x); });
    const Int count = Counts::load(&strip.counts_[1][std::size_t(x)]).template as<std::int32_t>() * rows.down;
    const Pixels pixels = load(of, x);
    const auto expected = adaptive::expect(pixels, light_at(of, x));
    unlike_shadow(job, pixels, expected, frame, luma, count).template as<std::int16_t>().store(strip.unlike_.at(y) + x);
  }

  /// Whether the pixels beginning at x are not in shadow. down: frame pixels along 3 rows.
  CUDAVISION_INLINE Words unlike_pixels(int x, int y, Int down) const {
    Counts sum(0);
    for (int dy = -1; dy <= 1; ++dy)
      for (int dx = -1; dx <= 1; ++dx) sum = sum + Counts::load(row(strip.unlike_, y + dy) + x + dx);
    const Int limit = Counts::load(&strip.counts_[0][std::size_t(x)]).template as<std::int32_t>() * down * Int(unlike);
    return (sum.template as<std::int32_t>() > limit).template as<std::int16_t>();
  }
  CUDAVISION_INLINE void find_changed(int y) const {
    std::int16_t* const found = strip.changed_.at(y);
    if (!flag(strip.any_above_, y)) {
      std::fill_n(found, job.width, std::int16_t(0));
      strip.any_changed_[ring_index(y)] = false;
      return;
    }
    const Int down(count_along(1, y, job.height));
    const std::int16_t* const is_above = strip.above_.at(y);
    const int width = job.width;
    Words any_found(0);
    for (int x = 0; x < width; x += 2 * N) {
      const Twice both_halves = Twice::load(is_above + x);
      both_halves.store(found + x);
      if (!cpu::any(both_halves)) continue;
      for (int half = x; half < x + 2 * N; half += N) {
        const Words here =
            Words::load(is_above + half) & (job.drops_shadows ? unlike_pixels(half, y, down) : Words(-1));
        here.store(found + half);
        any_found = any_found | here;
      }
    }
    strip.any_changed_[ring_index(y)] = cpu::any(any_found);
  }

  /// settles: rates.settles, as a constant.
  template <bool settles>
  CUDAVISION_INLINE void learn_pixels(const Source& row, float* const (&mean)[channels],
                                      float* const (&variance)[channels], int x, std::size_t at, const Seen<F>& seen,
                                      const Rates& shares, bool turn) const {
    Pixels pixels = load(row, x);
    const Light<F> light = light_at(row, x);
    Rival<channels, F> rival;
    Shown<channels, F> shown;
    std::int16_t* const stays = settles ? job.stays + at : nullptr;
    const std::size_t n = job.pixels();
    if constexpr (settles) rival.stays = From::as_ints(stays), rival.own_stays = From::as_ints(stays + n);
    learn<settles>(pixels, rival, adaptive::expect(pixels, light), light.gain, seen, shares, turn, shown);
    if constexpr (settles)
      if (!rests_settled(rival, shown, seen)) {
        std::int16_t* const values = job.rival + at;
        CUDAVISION_CHANNELS
        for (int c = 0; c < channels; ++c) rival.value[c] = from_fixed(From::as_ints(values + c * n));
        settle_after(pixels, rival, shown, seen, shares, turn);
        CUDAVISION_CHANNELS
        for (int c = 0; c < channels; ++c) to_fixed(rival.value[c]).template as<std::int16_t>().store(values + c * n);
        rival.stays.template as<std::int16_t>().store(stays);
        rival.own_stays.template as<std::int16_t>().store(stays + n);
      }
    CUDAVISION_CHANNELS
    for (int c = 0; c < channels; ++c) pixels.mean[c].store(mean[c] + x), pixels.variance[c].store(variance[c] + x);
  }
  /// The decisions in Job::learning for the pixels of a row.
  const std::uint8_t* learning_of_row(int y) const {
    const LearningMap& map = job.learning;
    const auto is_usual = [](Learning cell) { return cell == Learning::usual; };
    const Learning* const cells = map.cells ? map.row(y) : nullptr;
    if (!cells || std::all_of(cells, cells + map.width, is_usual)) return strip.usual_.data();
    for (int x = 0, column = 0; x < job.width; ++column) {
      const int end = std::min(job.width, map.first_beyond(column));
      std::fill_n(&strip.learning_[std::size_t(x)], end - x, std::uint8_t(cells[column]));
      x = end;
    }
    return strip.learning_.data();
  }
  /// Learns, and stores the changed pixels.
  template <bool settles>
  CUDAVISION_INLINE void learn_row(int y) const {
    using Bytes = Lanes<std::uint8_t, N>;
    const bool near_any = any_around(strip.any_changed_, y);
    const std::int16_t *const levels = strip.level_.at(y), *const near_above = strip.near_above_.at(y);
    const std::uint8_t* const learning = learning_of_row(y);
    const Source row = source(y);
    const Rates shares = rates;
    const bool turn = has_turn(job, y), learns = turn || !shares.in_turns;
    float *mean[channels], *variance[channels];
    for (int c = 0; c < channels; ++c) {
      const std::size_t first = c * job.pixels() + job.at(0, y);
      mean[c] = job.next_mean + first, variance[c] = job.next_variance + first;
    }
    std::uint8_t* const recent_row = job.recent + job.at(0, y);
    const int width = job.width;
    // The usual case. Pixels near changed pixels are also near pixels above the threshold.
    constexpr int decided = int(Learning::hold) | int(Learning::take);
    const auto nothing_found = [&](auto words, auto bytes, int x) CUDAVISION_INLINED {
      using Some = decltype(words);
      using SomeBytes = decltype(bytes);
      return !cpu::any(Some::load(levels + x) | Some::load(near_above + x)) &&
             !cpu::any(SomeBytes::load(recent_row + x) | (SomeBytes::load(learning + x) & SomeBytes(decided)));
    };
    for (int x = 0; x < width; x += N) {
      if (!learns && x % (2 * N) == 0 && nothing_found(Twice(), Lanes<std::uint8_t, 2 * N>(), x)) {
        x += N;
        continue;
      }
      const Int learning_here = Bytes::load(learning + x).template as<std::int32_t>();
      const auto by = [&](Learning one) CUDAVISION_INLINED { return no((learning_here & Int(int(one))) == Int(0)); };
      if (nothing_found(Words(), Bytes(), x)) {
        if (!learns) continue;
        const Seen<F> nothing{Int(0), Int(0), Int(0), Int(0), Int(0), Int(0), by(Learning::steady)};
        learn_pixels<settles>(row, mean, variance, x, job.at(x, y), nothing, shares, turn);
        continue;
      }
      const Words level = Words::load(levels + x), is_near_above = Words::load(near_above + x);
      const Words near_changed = near_any ? around<Words>(strip.changed_, x, y) : Words(0);
      const Seen<F> seen{level.template as<std::int32_t>(),
                         Bytes::load(recent_row + x).template as<std::int32_t>(),
                         is_near_above.template as<std::int32_t>(),
                         near_changed.template as<std::int32_t>(),
                         by(Learning::hold),
                         by(Learning::take),
                         by(Learning::steady)};
      recent_after(seen).template as<std::uint8_t>().store(recent_row + x);
      learn_pixels<settles>(row, mean, variance, x, job.at(x, y), seen, shares, turn);
    }
    std::uint8_t* const to = changed.ptr(y);
    if (!flag(strip.any_changed_, y)) {
      std::fill_n(to, width, std::uint8_t(0));
      return;
    }
    const std::int16_t* const found = strip.changed_.at(y);
    int x = 0;
    for (; x + 2 * N <= width; x += 2 * N) Twice::load(found + x).template as<std::uint8_t>().store(to + x);
    for (; x < width; ++x) to[x] = std::uint8_t(found[x]);
    if (!unmasked.empty()) cv::bitwise_and(changed.row(y), unmasked.row(y), changed.row(y));
  }

  CUDAVISION_INLINE std::uint64_t operator()() const {
    const int begin = strip.begin_, end = strip.end_, first = std::max(0, begin - Strip::reach);
    const auto in_frame = [&](int y, int reach) CUDAVISION_INLINED {
      return y >= std::max(0, begin - reach) && y < std::min(job.height, end + reach);
    };
    std::uint64_t sum = 0;
    for (int y = first; y < end + Strip::reach; ++y) {
      if (y < job.height) sum += expect_row(y);
      sum_evidence(y, y - 5, first);
      if (in_frame(y - 2, 3)) find_above(y - 2);
      if (in_frame(y - 3, 2)) find_near_above(y - 3);
      if (in_frame(y - 4, 1)) find_changed(y - 4);
      if (in_frame(y - 5, 0)) rates.settles ? learn_row<true>(y - 5) : learn_row<false>(y - 5);
    }
    return sum;
  }
};

void Strip::prepare(const Job& job, int begin, int end) {
  begin_ = begin, end_ = end;
  if (width_ != job.width || light_[0].empty()) {
    width_ = job.width;
    for (Rows* rows : {&evidence_, &luma_, &level_, &above_, &near_above_, &unlike_, &changed_}) rows->resize(width_);
    for (int radius : {1, 2}) {
      counts_[radius - 1].assign(std::size_t(job.pitch), 0);
      for (int x = 0; x < width_; ++x)
        counts_[radius - 1][std::size_t(x)] = std::uint16_t(count_along(radius, x, width_));
    }
    for (std::vector<std::uint8_t>* row : {&learning_, &usual_}) row->assign(std::size_t(job.pitch), 0);
    for (std::vector<float>& light : light_) light.resize(std::size_t(3) * job.pitch);
    rises_.resize(std::size_t(2) * (job.cells_x + 1) + 2 * unused);
  }
  evidence_sums_.assign(std::size_t(job.pitch) + 2 * Rows::margin, 0);
  beyond_.resize(std::size_t(12) * reach * job.pitch);
  for (int side : {0, 1})
    for (int i = 0; i < reach; ++i) {
      const int y = side == 0 ? begin - reach + i : end + i;
      if (y < 0 || y >= job.height) continue;
      for (int c = 0; c < 6; ++c)
        std::copy_n(job.mean + c * job.pixels() + job.at(0, y), job.pitch,
                    &beyond_[(std::size_t(side * 6 + c) * reach + i) * job.pitch]);
    }
}

namespace {

template <int N>
CUDAVISION_INLINE std::uint64_t update_lanes(Strip& strip, const Job& job, const std::vector<float> (&light)[3],
                                             const Rates& rates, const cv::Mat& unmasked, cv::Mat& changed) {
  return job.channels == 1 ? StripWork<1, N>{{strip, job, light}, rates, unmasked, changed}()
                           : StripWork<3, N>{{strip, job, light}, rates, unmasked, changed}();
}
#ifdef CUDAVISION_AVX2
CUDAVISION_AVX512 std::uint64_t update_widest(Strip& strip, const Job& job, const std::vector<float> (&light)[3],
                                              const Rates& rates, const cv::Mat& unmasked, cv::Mat& changed) {
  return update_lanes<16>(strip, job, light, rates, unmasked, changed);
}
CUDAVISION_AVX2 std::uint64_t update_wide(Strip& strip, const Job& job, const std::vector<float> (&light)[3],
                                          const Rates& rates, const cv::Mat& unmasked, cv::Mat& changed) {
  return update_lanes<8>(strip, job, light, rates, unmasked, changed);
}
#endif
CUDAVISION_FLAT std::uint64_t update_narrow(Strip& strip, const Job& job, const std::vector<float> (&light)[3],
                                            const Rates& rates, const cv::Mat& unmasked, cv::Mat& changed) {
  return update_lanes<4>(strip, job, light, rates, unmasked, changed);
}

}  // namespace

std::uint64_t Strip::update(const Job& job, const std::vector<float> (&light)[3], const Rates& rates,
                            const cv::Mat& unmasked, cv::Mat& changed) {
  return CUDAVISION_WIDEST_OF(update_widest, update_wide, update_narrow)(*this, job, light, rates, unmasked, changed);
}

}  // namespace cudavision::diff::adaptive
