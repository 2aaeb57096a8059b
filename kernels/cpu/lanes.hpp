// SPDX-License-Identifier: LGPL-2.1-or-later
// Several numbers at once, for the CPU backend: one operation on Lanes is the same operation on each lane, with the
// same rounding. Lanes have the functions of kernels/core/rounded.hpp, so formulas written for float also work for
// Lanes<float, N>.
//
// A function that uses them is compiled two or three times: with CUDAVISION_AVX512 and N = 16, with CUDAVISION_AVX2 and
// N = 8, and for any processor with N = 4 (SSE2, NEON). All functions that take or return Lanes are CUDAVISION_INLINE.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#define CUDAVISION_PRAGMA(text) _Pragma(#text)
#define CUDAVISION_UNROLLED(times) CUDAVISION_PRAGMA(GCC unroll times)
#define CUDAVISION_FLAT __attribute__((flatten))
#define CUDAVISION_INLINED __attribute__((always_inline))  // for lambdas
#define CUDAVISION_INLINE inline CUDAVISION_INLINED
// Each marks one of two or three versions of a function; most_lanes() selects one. Only the last version is compiled
// for every processor.
#if defined(__x86_64__) && defined(__GNUC__)
#define CUDAVISION_AVX2 __attribute__((flatten, target("avx2")))
#define CUDAVISION_AVX512 __attribute__((flatten, target("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2")))
#define CUDAVISION_WIDEST(wide, narrow) (::cudavision::cpu::most_lanes() >= 8 ? wide : narrow)
#define CUDAVISION_WIDEST_OF(widest, wide, narrow) \
  (::cudavision::cpu::most_lanes() >= 16 ? widest : CUDAVISION_WIDEST(wide, narrow))
#else
#define CUDAVISION_WIDEST(wide, narrow) narrow
#define CUDAVISION_WIDEST_OF(widest, wide, narrow) narrow
#endif
// Whether to name, with builtins, the instructions that GCC 12 does not generate from vector code.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#include <immintrin.h>
#define CUDAVISION_NAMED 1
#else
#define CUDAVISION_NAMED 0
#endif

namespace cudavision::cpu {

/// The largest number of float lanes for which functions run on this processor: 16 with AVX-512 since Ice Lake and Zen
/// 4 (earlier processors lower their clock for it), 8 with AVX2, otherwise 4.
int most_lanes();
/// For tests: limits most_lanes() to at most `most`.
void limit_lanes(int most);

template <typename T, int N>
struct Lanes {
  static_assert(std::is_arithmetic_v<T>);
  static constexpr int count = N;
  using Of = T;
  typedef T Vector __attribute__((vector_size(N * sizeof(T))));
  typedef std::uint64_t Bits __attribute__((vector_size(N * sizeof(T) < 8 ? 8 : N * sizeof(T))));
  /// Signed integers with the size of T. As a mask: 0 or −1.
  using Signed =
      std::conditional_t<sizeof(T) == 1, std::int8_t, std::conditional_t<sizeof(T) == 2, std::int16_t, std::int32_t>>;
  using Mask = Lanes<Signed, N>;
  using Int = Lanes<std::int32_t, N>;

  Vector v;

  // cppcheck-suppress uninitMemberVar ; set before they are used
  Lanes() = default;
  /// The same number in all lanes. A float is not converted to an integer implicitly.
  template <typename A, typename = std::enable_if_t<std::is_integral_v<A> || std::is_same_v<A, T>>>
  CUDAVISION_INLINE Lanes(A all) {
    T same[N];  // GCC 12 compiles only this form to a single instruction
    for (T& one : same) one = T(all);
    std::memcpy(&v, same, sizeof v);
  }
  CUDAVISION_INLINE explicit Lanes(Vector vector) : v(vector) {}
  /// Loads from any alignment.
  static CUDAVISION_INLINE Lanes load(const void* from) {
    Lanes lanes;
    std::memcpy(&lanes.v, from, sizeof lanes.v);
    return lanes;
  }
  /// Lanes with the bits of a vector of the same size.
  template <typename Other>
  static CUDAVISION_INLINE Lanes of_bits(Other other) {
    return Lanes(reinterpret_cast<Vector>(other));
  }
  CUDAVISION_INLINE void store(void* to) const { std::memcpy(to, &v, sizeof v); }
  /// The same values as lanes of another type; integers keep their low bits.
  template <typename To>
  CUDAVISION_INLINE Lanes<To, N> as() const {
    using Result = Lanes<To, N>;
    if constexpr (std::is_integral_v<T> && std::is_integral_v<To> && sizeof(T) + sizeof(To) == 5) {
      // In two steps, because GCC 12 converts between bytes and 32-bit numbers one at a time.
      using Words = std::conditional_t<std::is_signed_v<T>, std::int16_t, std::uint16_t>;
      return as<Words>().template as<To>();
#if CUDAVISION_NAMED
    } else if constexpr (N == 8 && std::is_integral_v<To> && sizeof(T) == 2 && sizeof(To) == 4) {
      using Words = typename Lanes<std::int16_t, 8>::Vector;
      const auto words = reinterpret_cast<Words>(v);
      return Result::of_bits(std::is_signed_v<T> ? __builtin_ia32_pmovsxwd256(words)
                                                 : __builtin_ia32_pmovzxwd256(words));
#endif
    } else {
      return Result(__builtin_convertvector(v, typename Result::Vector));
    }
  }

  friend CUDAVISION_INLINE Lanes operator+(Lanes a, Lanes b) { return Lanes(Vector(a.v + b.v)); }
  friend CUDAVISION_INLINE Lanes operator-(Lanes a, Lanes b) { return Lanes(Vector(a.v - b.v)); }
  friend CUDAVISION_INLINE Lanes operator*(Lanes a, Lanes b) { return Lanes(Vector(a.v * b.v)); }
  friend CUDAVISION_INLINE Lanes operator&(Lanes a, Lanes b) { return Lanes(Vector(a.v & b.v)); }
  friend CUDAVISION_INLINE Lanes operator|(Lanes a, Lanes b) { return Lanes(Vector(a.v | b.v)); }
  friend CUDAVISION_INLINE Lanes operator>>(Lanes a, int bits) { return Lanes(Vector(a.v >> bits)); }
  friend CUDAVISION_INLINE Lanes operator<<(Lanes a, int bits) { return Lanes(Vector(a.v << bits)); }
  friend CUDAVISION_INLINE Mask operator<(Lanes a, Lanes b) {
#if CUDAVISION_NAMED
    if constexpr (N * sizeof(T) == 64) return compare<1, 1>(a, b);
#endif
    return mask(a.v < b.v);
  }
  friend CUDAVISION_INLINE Mask operator>(Lanes a, Lanes b) {
#if CUDAVISION_NAMED
    if constexpr (N * sizeof(T) == 64) return compare<14, 6>(a, b);
#endif
    return mask(a.v > b.v);
  }
  friend CUDAVISION_INLINE Mask operator<=(Lanes a, Lanes b) {
#if CUDAVISION_NAMED
    if constexpr (N * sizeof(T) == 64) return compare<2, 2>(a, b);
#endif
    return mask(a.v <= b.v);
  }
  friend CUDAVISION_INLINE Mask operator>=(Lanes a, Lanes b) {
#if CUDAVISION_NAMED
    if constexpr (N * sizeof(T) == 64) return compare<13, 5>(a, b);
#endif
    return mask(a.v >= b.v);
  }
  friend CUDAVISION_INLINE Mask operator==(Lanes a, Lanes b) {
#if CUDAVISION_NAMED
    if constexpr (N * sizeof(T) == 64) return compare<0, 0>(a, b);
#endif
    return mask(a.v == b.v);
  }

  friend CUDAVISION_INLINE Lanes add(Lanes a, Lanes b) { return a + b; }
  friend CUDAVISION_INLINE Lanes sub(Lanes a, Lanes b) { return a - b; }
  friend CUDAVISION_INLINE Lanes mul(Lanes a, Lanes b) { return a * b; }
  friend CUDAVISION_INLINE Lanes over(Lanes a, Lanes b) { return Lanes(Vector(a.v / b.v)); }
  friend CUDAVISION_INLINE Lanes least(Lanes a, Lanes b) {
#if CUDAVISION_NAMED
    if constexpr (std::is_same_v<T, float> && N == 16)
      return Lanes(__builtin_ia32_minps512_mask(b.v, a.v, a.v, std::uint16_t(-1), 4));
    if constexpr (std::is_same_v<T, float> && N == 8) return Lanes(__builtin_ia32_minps256(b.v, a.v));
    if constexpr (std::is_same_v<T, float> && N == 4) return Lanes(__builtin_ia32_minps(b.v, a.v));
#endif
    return Lanes(Vector(b.v < a.v ? b.v : a.v));
  }
  friend CUDAVISION_INLINE Lanes most(Lanes a, Lanes b) {
#if CUDAVISION_NAMED
    if constexpr (std::is_same_v<T, float> && N == 16)
      return Lanes(__builtin_ia32_maxps512_mask(b.v, a.v, a.v, std::uint16_t(-1), 4));
    if constexpr (std::is_same_v<T, float> && N == 8) return Lanes(__builtin_ia32_maxps256(b.v, a.v));
    if constexpr (std::is_same_v<T, float> && N == 4) return Lanes(__builtin_ia32_maxps(b.v, a.v));
#endif
    return Lanes(Vector(a.v < b.v ? b.v : a.v));
  }
  /// The 32-bit numbers in the given lanes, 0 to N − 1.
  CUDAVISION_INLINE Lanes at(Int lanes) const {
    static_assert(sizeof(T) == 4);
#if CUDAVISION_NAMED
    return Lanes(__builtin_shuffle(v, lanes.v));
#else
    Lanes result;
    for (int i = 0; i < N; ++i) result.v[i] = v[lanes.v[i]];
    return result;
#endif
  }
  /// The absolute value; only for float.
  friend CUDAVISION_INLINE Lanes size(Lanes a) { return of_bits((Int::of_bits(a.v) & Int(0x7fffffff)).v); }
  friend CUDAVISION_INLINE Int to_int(Lanes a) { return a.template as<std::int32_t>(); }
  friend CUDAVISION_INLINE Lanes pick(Mask first, Lanes a, Lanes b) { return Lanes(Vector(first.v ? a.v : b.v)); }

 private:
#if CUDAVISION_NAMED
  /// Compares with AVX-512, because GCC 12 compares such vectors one number at a time. The template arguments are the
  /// instructions' codes of the comparison: for floats and for integers.
  template <int of_floats, int of_integers>
  static CUDAVISION_INLINE Mask compare(Lanes a, Lanes b) {
    if constexpr (std::is_same_v<T, float>) {
      return Mask::of_bits(
          __builtin_ia32_cvtmask2d512(__builtin_ia32_cmpps512_mask(a.v, b.v, of_floats, std::uint16_t(-1), 4)));
    } else if constexpr (sizeof(T) == 4) {
      return Mask::of_bits(__builtin_ia32_cvtmask2d512(
          __builtin_ia32_cmpd512_mask(reinterpret_cast<typename Int::Vector>(a.v),
                                      reinterpret_cast<typename Int::Vector>(b.v), of_integers, std::uint16_t(-1))));
    } else {
      static_assert(sizeof(T) == 2);
      using Words = typename Lanes<std::int16_t, N>::Vector;
      const auto x = reinterpret_cast<Words>(a.v), y = reinterpret_cast<Words>(b.v);
      return Mask::of_bits(__builtin_ia32_cvtmask2w512(
          std::is_signed_v<T> ? __builtin_ia32_cmpw512_mask(x, y, of_integers, std::uint32_t(-1))
                              : __builtin_ia32_ucmpw512_mask(x, y, of_integers, std::uint32_t(-1))));
    }
  }
#endif
  template <typename Compared>
  static CUDAVISION_INLINE Mask mask(Compared compared) {
    return Mask(typename Mask::Vector(compared));
  }
};

template <int N>
CUDAVISION_INLINE Lanes<float, N> to_float(Lanes<std::int32_t, N> a) {
  return a.template as<float>();
}
// Masks.
template <typename T, int N>
CUDAVISION_INLINE Lanes<T, N> both(Lanes<T, N> a, Lanes<T, N> b) {
  return a & b;
}
template <typename T, int N>
CUDAVISION_INLINE Lanes<T, N> either(Lanes<T, N> a, Lanes<T, N> b) {
  return a | b;
}
template <typename T, int N>
CUDAVISION_INLINE Lanes<T, N> no(Lanes<T, N> a) {
  return Lanes<T, N>(typename Lanes<T, N>::Vector(~a.v));
}
template <typename T, int N>
CUDAVISION_INLINE bool any(Lanes<T, N> mask) {
#if CUDAVISION_NAMED
  if constexpr (N * sizeof(T) == 32 || N * sizeof(T) == 64) {
    using Half = Lanes<T, N / 2>;
    Half halves[2];
    std::memcpy(halves, &mask.v, sizeof halves);
    return any(Half::of_bits(halves[0].v | halves[1].v));
  }
  if constexpr (N * sizeof(T) == 16) {
    using Bytes = Lanes<char, 16>;
    const auto zeros = reinterpret_cast<typename Bytes::Vector>(mask.v) == typename Bytes::Vector{};
    return __builtin_ia32_pmovmskb128(reinterpret_cast<typename Bytes::Vector>(zeros)) != 0xffff;
  }
#endif
  std::uint64_t all = 0;
  if constexpr (N * sizeof(T) > 8) {
    const auto bits = reinterpret_cast<typename Lanes<T, N>::Bits>(mask.v);
    for (unsigned i = 0; i < N * sizeof(T) / 8; ++i) all |= bits[i];
  } else {
    std::memcpy(&all, &mask.v, sizeof mask.v);
  }
  return all != 0;
}
template <typename T, int N>
CUDAVISION_INLINE bool all(Lanes<T, N> mask) {
  return !any(no(mask));
}

}  // namespace cudavision::cpu
