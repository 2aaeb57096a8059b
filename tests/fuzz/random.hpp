// SPDX-License-Identifier: LGPL-2.1-or-later
// Random numbers that are the same on every machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <vector>

namespace cudavision::fuzz {

/// SplitMix64 (Steele, Lea, Flood 2014). The distributions of <random> differ between libraries; these do not. (Compilers may still
/// evaluate the arguments of one call in another order.)
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  /// The numbers of one case, which depend on nothing but the seed and the number of the case.
  Random(std::uint64_t seed, std::uint64_t number) : state_(Random(seed).bits() + number * 0xd1342543de82ef95u) {}

  std::uint64_t bits() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  /// From 0 to n - 1.
  int below(int n) { return int((bits() >> 32) * std::uint64_t(n) >> 32); }
  /// From `low` to `high`, both included.
  int between(int low, int high) { return low + below(high - low + 1); }
  bool one_in(int n) { return below(n) == 0; }
  /// From 0 to 1, without 1.
  double unit() { return double(bits() >> 11) / 9007199254740992.0; }

  template <typename T>
  T pick(std::initializer_list<T> choices) {
    return choices.begin()[below(int(choices.size()))];
  }
  template <typename T>
  const T& pick(const std::vector<T>& choices) {
    return choices[std::size_t(below(int(choices.size())))];
  }

  /// A generator for something else (another thread, say), whose use does not change what comes from this one.
  Random fork() { return Random(bits()); }

 private:
  std::uint64_t state_;
};

}  // namespace cudavision::fuzz
