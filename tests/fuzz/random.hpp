// SPDX-License-Identifier: LGPL-2.1-or-later
// Random numbers that are identical on every machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <vector>

namespace cudavision::fuzz {

/// SplitMix64 (Steele, Lea, Flood 2014). The distributions of <random> differ between standard libraries; these do not. (Compilers may
/// still evaluate the arguments of a call in different orders.)
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  /// The numbers of one case. They depend only on the seed and the case's number.
  Random(std::uint64_t seed, std::uint64_t number) : state_(Random(seed).bits() + number * 0xd1342543de82ef95u) {}

  std::uint64_t bits() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  /// Draws an integer from 0 to n − 1.
  int below(int n) { return int((bits() >> 32) * std::uint64_t(n) >> 32); }
  /// Draws an integer from `low` to `high`, both included.
  int between(int low, int high) { return low + below(high - low + 1); }
  bool one_in(int n) { return below(n) == 0; }
  /// Draws a number from 0 (included) to 1 (excluded).
  double unit() { return double(bits() >> 11) / 9007199254740992.0; }

  template <typename T>
  T pick(std::initializer_list<T> choices) {
    return choices.begin()[below(int(choices.size()))];
  }
  template <typename T>
  const T& pick(const std::vector<T>& choices) {
    return choices[std::size_t(below(int(choices.size())))];
  }

  /// Makes a generator for another purpose, for example another thread. Its use does not change the numbers of this generator.
  Random fork() { return Random(bits()); }

 private:
  std::uint64_t state_;
};

}  // namespace cudavision::fuzz
