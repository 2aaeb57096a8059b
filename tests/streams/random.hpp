// SPDX-License-Identifier: LGPL-2.1-or-later
// Random numbers that are identical on every machine, or numbers from the bytes of a fuzzing engine.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace cudavision::streams {

/// Reads values one after the other. After the last byte all values are 0, so every sequence of bytes is valid. The
/// bytes must outlive the reader and its copies.
class Bytes {
 public:
  Bytes(const std::uint8_t* data, std::size_t size) : at_(data), end_(data + size) {}

  std::size_t left() const { return std::size_t(end_ - at_); }
  std::uint8_t byte() { return at_ < end_ ? *at_++ : 0; }

  /// Reads an unsigned number of 1 to 8 bytes, little-endian.
  std::uint64_t number(int bytes) {
    std::uint64_t value = 0;
    for (int i = 0; i < bytes; ++i) value |= std::uint64_t(byte()) << 8 * i;
    return value;
  }
  /// Reads a number from 0 to n − 1, from as few bytes as necessary.
  int below(int n) { return n <= 1 ? 0 : int(number(n <= 1 << 8 ? 1 : n <= 1 << 16 ? 2 : 4) % std::uint64_t(n)); }

  /// Reads a number that is likely to be `valid` or close to it, but may be any value of its type.
  template <typename T>
  T around(T valid) {
    const auto sum = [&](std::int64_t more) { return T(std::uint64_t(valid) + std::uint64_t(more)); };
    switch (byte() % 8) {
      case 1:
        return sum(std::int8_t(byte()));
      case 2:
        return T(byte());
      case 3:
        return T(number(2));
      case 4:
        return T(number(sizeof(T)));
      case 5:
        return sum(std::int64_t(1) << byte() % (8 * sizeof(T)));
      default:
        return valid;
    }
  }

  /// Reads a text up to a zero byte, which is dropped.
  std::string text() {
    const std::uint8_t* end = std::find(at_, end_, 0);
    std::string text(at_, end);
    at_ = end < end_ ? end + 1 : end_;
    return text;
  }
  /// Reads all remaining bytes.
  std::string rest() {
    std::string text(at_, end_);
    at_ = end_;
    return text;
  }
  /// Cuts off a part of the bytes for another reader. The first byte decides its length.
  Bytes cut_part() {
    const std::size_t share = byte(), size = left() * share / 256;
    const Bytes part(at_, size);
    at_ += size;
    return part;
  }

 private:
  const std::uint8_t *at_, *end_;
};

/// SplitMix64 (Steele, Lea, Flood 2014). The distributions of <random> differ between standard libraries; these do not.
/// (Compilers may still evaluate the arguments of a call in different orders.) A copy draws the same numbers again.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  /// The numbers of one case. They depend only on the seed and the number of the case.
  Random(std::uint64_t seed, std::uint64_t number) : state_(Random(seed).bits() + number * 0xd1342543de82ef95u) {}
  /// Reads the numbers from bytes, which then decide everything that is drawn.
  explicit Random(const Bytes& bytes) : bytes_(bytes) {}

  bool reads_bytes() const { return bytes_.has_value(); }
  /// The remaining bytes. Only for a generator that reads bytes.
  Bytes& bytes() { return *bytes_; }

  std::uint64_t bits() {
    if (bytes_) return bytes_->number(8);
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  /// Draws an unsigned number of 1 to 7 bytes.
  std::uint64_t number(int bytes) { return bytes_ ? bytes_->number(bytes) : bits() >> (64 - 8 * bytes); }
  int byte() { return int(number(1)); }
  /// Draws an integer from 0 to n − 1.
  int below(int n) { return bytes_ ? bytes_->below(n) : int((bits() >> 32) * std::uint64_t(n) >> 32); }
  /// Draws an integer from `low` to `high`, inclusive.
  int between(int low, int high) { return low + below(high - low + 1); }
  /// At the end of the bytes all numbers are 0, which must not cause rare cases.
  bool one_in(int n) { return bytes_ ? below(n) == n - 1 : below(n) == 0; }
  /// Draws a number from 0 (inclusive) to 1 (exclusive).
  double unit() { return double(bits() >> 11) / 9007199254740992.0; }

  template <typename T>
  T pick(std::initializer_list<T> choices) {
    return choices.begin()[below(int(choices.size()))];
  }
  template <typename T>
  const T& pick(const std::vector<T>& choices) {
    return choices[std::size_t(below(int(choices.size())))];
  }

  /// Draws a number at which programs fail: the limit of a type or of this plugin, or a neighbour of one.
  std::int64_t edge() {
    constexpr std::int64_t int_end = std::numeric_limits<int>::max(), end = std::numeric_limits<std::int64_t>::max();
    static constexpr std::int64_t numbers[] = {0,   1,       2,       3,        4,         6,         7,   8,   16,
                                               31,  33,      63,      64,       65,        127,       128, 254, 255,
                                               256, 1000,    16384,   16385,    65535,     65536,     -1,  -2,  -3,
                                               -8,  1 << 20, 1 << 30, 40000000, -40000000, 1000000000};
    static constexpr std::int64_t ends[] = {int_end - 3, int_end, int_end + 1, -int_end,    -int_end - 1,   end,
                                            end - 1,     -end,    -end - 1,    2 * int_end, 2 * int_end + 1};
    if (one_in(16)) return std::int64_t(bits());
    const int at = below(int(std::size(numbers) + std::size(ends)));
    return at < int(std::size(numbers)) ? numbers[at] : ends[at - int(std::size(numbers))];
  }
  /// Draws a number that is likely to be `valid` or close to it, but may be any value of its type.
  template <typename T>
  T around(T valid) {
    if (bytes_) return bytes_->around(valid);
    if (!one_in(6)) return valid;
    const std::uint64_t bits = std::uint64_t(valid);
    switch (below(4)) {
      case 0:
        return T(bits + std::uint64_t(between(-4, 4)));
      case 1:
        return pick<T>({T(valid / 2), T(bits * 2), T(0 - bits), T(~bits), T(bits ^ 1)});
      case 2:
        return T(below(64));
      default:
        return T(edge());
    }
  }

  /// Makes a generator for another purpose, such as another thread. Its use does not change the numbers of this
  /// generator.
  Random fork() { return bytes_ ? Random(bytes_->cut_part()) : Random(bits()); }

 private:
  std::uint64_t state_ = 0;
  std::optional<Bytes> bytes_;
};

}  // namespace cudavision::streams
