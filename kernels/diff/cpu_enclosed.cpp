// SPDX-License-Identifier: LGPL-2.1-or-later
#include <cstring>

#include "kernels/diff/cpu_stages.hpp"
#include "kernels/diff/enclosed.hpp"

namespace cudavision::diff {
namespace {

/// The bits of 8 mask pixels; the lowest bit is the first pixel.
std::uint32_t bits_of(const uchar* mask) {
  std::uint64_t bytes;
  std::memcpy(&bytes, mask, sizeof bytes);
  // The factor 2^(56 − 7·j) moves byte j, which is 0 or 1, to bit 56 + j. No other product reaches these bits.
  return std::uint32_t((bytes & 0x0101010101010101u) * 0x0102040810204080u >> 56);
}

}  // namespace

bool Filler::pack(const cv::Mat& mask) {
  const int words = (mask.cols + 31) / 32, pitch = words + 2;
  bits_.assign(std::size_t(pitch) * mask.rows, 0);
  std::uint32_t any = 0;
  for (int y = 0; y < mask.rows; ++y) {
    const uchar* const from = mask.ptr(y);
    std::uint32_t* const to = &bits_[std::size_t(y) * pitch + 1];
    int x = 0;
    for (; x + 8 <= mask.cols; x += 8) to[x / 32] |= bits_of(from + x) << x % 32;
    for (; x < mask.cols; ++x) to[x / 32] |= std::uint32_t(from[x] & 1) << x % 32;
    for (int i = 0; i < words; ++i) any |= to[i];
  }
  return any != 0;
}

void Filler::fill(int reach, const cv::Mat& unmasked, cv::Mat& mask) {
  if (!pack(mask)) return;
  const int words = (mask.cols + 31) / 32, pitch = words + 2;
  for (int y = 0; y < mask.rows; ++y) {
    const std::uint32_t* const row = &bits_[std::size_t(y) * pitch + 1];
    for (int i = 0; i < words; ++i) {
      const auto word = [=](int dx, int dy) { return row[dy * pitch + i + dx]; };
      const std::uint32_t added = filled_word(reach, y, mask.rows - 1 - y, word) & ~row[i];
      for (std::uint32_t left = added; left != 0; left &= left - 1) {
        const int x = 32 * i + __builtin_ctz(left);
        if (unmasked.empty() || unmasked.ptr(y)[x]) mask.ptr(y)[x] = 255;
      }
    }
  }
}

}  // namespace cudavision::diff
