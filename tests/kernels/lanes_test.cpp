// SPDX-License-Identifier: LGPL-2.1-or-later
// Vectors of several numbers: each lane must have the result of the operation on a single number, with each instruction
// set.
#include "kernels/cpu/lanes.hpp"

#include <algorithm>

#include "tests/kernels/harness.hpp"

namespace cudavision::test {
namespace {

using cpu::Lanes;

/// Mixes small and equal numbers with the ends of the range.
template <typename T>
void fill(T* numbers, int count, Random& random) {
  for (int i = 0; i < count; ++i) {
    const int kind = random.below(8);
    numbers[i] = kind == 0   ? std::numeric_limits<T>::max()
                 : kind == 1 ? std::numeric_limits<T>::lowest()
                             : T(random.between(std::is_signed_v<T> ? -3 : 0, 3));
  }
}

/// Returns how many results differ from the results for single numbers.
template <typename T, int N>
CUDAVISION_INLINE int differences(Random& random) {
  using L = Lanes<T, N>;
  T a[N], b[N], result[N];
  typename L::Signed mask[N];
  fill(a, N, random), fill(b, N, random);
  if (random.below(4) == 0) std::copy(a, a + N, b);
  const L x = L::load(a), y = L::load(b);
  int different = 0;
  const auto compare = [&](auto of) CUDAVISION_INLINED {
    const auto is = of(x, y);
    is.store(mask);
    bool any = false, all = true;
    for (int i = 0; i < N; ++i) {
      const bool expected = of(a[i], b[i]);
      any |= expected, all &= expected;
      different += mask[i] != (expected ? -1 : 0);
    }
    different += cpu::any(is) != any, different += cpu::all(is) != all;
    pick(is, x, y).store(result);
    for (int i = 0; i < N; ++i) different += result[i] != (of(a[i], b[i]) ? a[i] : b[i]);
  };
  compare([](auto p, auto q) CUDAVISION_INLINED { return p < q; });
  compare([](auto p, auto q) CUDAVISION_INLINED { return p > q; });
  compare([](auto p, auto q) CUDAVISION_INLINED { return p <= q; });
  compare([](auto p, auto q) CUDAVISION_INLINED { return p >= q; });
  compare([](auto p, auto q) CUDAVISION_INLINED { return p == q; });
  least(x, y).store(result);
  for (int i = 0; i < N; ++i) different += result[i] != std::min(a[i], b[i]);
  most(x, y).store(result);
  for (int i = 0; i < N; ++i) different += result[i] != std::max(a[i], b[i]);
  if constexpr (sizeof(T) == 4) {
    std::int32_t lanes[N];
    for (std::int32_t& lane : lanes) lane = random.below(N);
    x.at(L::Int::load(lanes)).store(result);
    for (int i = 0; i < N; ++i) different += result[i] != a[lanes[i]];
  }
  return different;
}
/// Tests the vectors of the adaptive background: N 32-bit numbers, and N or 2 N 16-bit numbers.
template <int N>
CUDAVISION_INLINE int all_differences(Random& random) {
  return differences<float, N>(random) + differences<std::int32_t, N>(random) + differences<std::int16_t, N>(random) +
         differences<std::int16_t, 2 * N>(random) + differences<std::uint16_t, 2 * N>(random) +
         differences<std::uint8_t, N>(random) + differences<std::uint8_t, 2 * N>(random);
}
#ifdef CUDAVISION_AVX2
CUDAVISION_AVX512 int widest(Random& random) { return all_differences<16>(random); }
CUDAVISION_AVX2 int wide(Random& random) { return all_differences<8>(random); }
#endif
CUDAVISION_FLAT int narrow(Random& random) { return all_differences<4>(random); }

TEST(LanesTest, EqualSingleNumbers) {
  const auto run = CUDAVISION_WIDEST_OF(widest, wide, narrow);
  Random random{7};
  for (int i = 0; i < 2000; ++i) ASSERT_EQ(run(random), 0) << cpu::most_lanes() << " lanes, round " << i;
}

TEST(LanesTest, HasALimit) {
  const int before = cpu::most_lanes();
  cpu::limit_lanes(4);
  EXPECT_EQ(cpu::most_lanes(), 4);
  cpu::limit_lanes(before);
  EXPECT_EQ(cpu::most_lanes(), before);
}

}  // namespace
}  // namespace cudavision::test
