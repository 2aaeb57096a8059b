// SPDX-License-Identifier: LGPL-2.1-or-later
// Random numbers that are identical on every machine, or numbers from the bytes of a fuzzing engine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <vector>

#include "tests/fuzz/bytes.hpp"

namespace cudavision::fuzz {

/// SplitMix64 (Steele, Lea, Flood 2014). The distributions of <random> differ between standard libraries; these do not.
/// (Compilers may still evaluate the arguments of a call in different orders.)
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  /// The numbers of one case. They depend only on the seed and the case's number.
  Random(std::uint64_t seed, std::uint64_t number) : state_(Random(seed).bits() + number * 0xd1342543de82ef95u) {}

  /// The numbers are read from bytes, which then decide everything that is drawn. Copies read on from the same place.
  explicit Random(const Bytes& bytes) : bytes_(std::make_shared<Bytes>(bytes)) {}

  /// The bytes that are left. Only for a generator that reads bytes.
  Bytes& bytes() { return *bytes_; }

  std::uint64_t bits() {
    if (bytes_) return bytes_->number(8);
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  /// Draws an integer from 0 to n − 1.
  int below(int n) { return bytes_ ? bytes_->below(n) : int((bits() >> 32) * std::uint64_t(n) >> 32); }
  /// Draws an integer from `low` to `high`, both included.
  int between(int low, int high) { return low + below(high - low + 1); }
  /// (At the end of the bytes all numbers are 0. Nothing rare shall happen there.)
  bool one_in(int n) { return bytes_ ? below(n) == n - 1 : below(n) == 0; }
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

  /// Makes a generator for another purpose, for example another thread.
  /// Its use does not change the numbers of this generator.
  Random fork() { return bytes_ ? Random(bytes_->cut_part()) : Random(bits()); }

 private:
  std::uint64_t state_ = 0;
  std::shared_ptr<Bytes> bytes_;
};

}  // namespace cudavision::fuzz
