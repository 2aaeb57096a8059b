// SPDX-License-Identifier: LGPL-2.1-or-later
// The bytes of a fuzzing engine as numbers and texts.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

namespace cudavision::fuzz {

/// Reads values one after the other. Behind the last byte all values are 0, so every sequence of bytes is valid. The
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
  /// Reads a number from 0 to n − 1, from as few bytes as it needs.
  int below(int n) { return n <= 1 ? 0 : int(number(n <= 1 << 8 ? 1 : n <= 1 << 16 ? 2 : 4) % std::uint64_t(n)); }

  /// Reads a number that is likely to be `valid`, or near it. It may be any value of its type.
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

  /// Reads a text up to a byte 0, which is dropped.
  std::string text() {
    const std::uint8_t* end = std::find(at_, end_, 0);
    std::string text(at_, end);
    at_ = end < end_ ? end + 1 : end_;
    return text;
  }
  /// Reads all bytes that are left.
  std::string rest() {
    std::string text(at_, end_);
    at_ = end_;
    return text;
  }
  /// Cuts off a part of the bytes, as long as a byte says, for another reader.
  Bytes cut_part() {
    const std::size_t share = byte(), size = left() * share / 256;
    const Bytes part(at_, size);
    at_ += size;
    return part;
  }

 private:
  const std::uint8_t *at_, *end_;
};

}  // namespace cudavision::fuzz
