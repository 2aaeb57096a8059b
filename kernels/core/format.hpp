// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace cudavision {

/// Pixel formats, by their GStreamer names (GstVideoFormat). format.cpp has their table.
// clang-format off
enum class Format : std::uint8_t {
  GRAY8, RGB, BGR, RGBA, BGRA, ARGB, ABGR, RGBx, BGRx, xRGB, xBGR,
  NV12, NV21, I420, YV12, Y42B, Y444, YUY2, UYVY, RGBP, BGRP, GBR,
  GRAY16_LE, P010_10LE, P016_LE, I420_10LE, I422_10LE, Y444_10LE, Y444_16LE, RGBA64_LE, ARGB64_LE,
  NV16, NV61, NV24, Y41B, YVYU, VYUY, GBRA, A420, A444,
  P012_LE, I420_12LE, I422_12LE, Y444_12LE, GBR_10LE, GBR_12LE, GBR_16LE, BGRA64_LE, ABGR64_LE, GRAY10_LE16,
  GBRA_10LE, GBRA_12LE, A420_10LE, A422_10LE, A444_10LE, A444_12LE, A444_16LE,
  v308, AYUV, VUYA, AYUV64, Y210, Y212_LE, Y412_LE, RGB10A2_LE, BGR10A2_LE, v210,
};
// clang-format on

/// The meaning of a channel.
enum class Role : std::uint8_t {
  luma,
  cb,
  cr,
  red,
  green,
  blue,
  alpha,
  padding,  ///< the x of RGBx: copied, never interpreted
  other,    ///< belongs to another ChannelSet of the same plane (packed 4:2:2): must not be written
};
inline constexpr int role_count = 8;  ///< all roles except `other`

inline constexpr int max_sets = 4;    ///< channel sets of a format
inline constexpr int max_planes = 4;  ///< planes of a format

/// Interleaved channels that share one sampling grid and are processed together. NV12 has two sets (Y; Cb and Cr), RGBA
/// has one, I420 three, A420 four. In packed 4:2:2 two sets share a plane: YUY2 has the set (Y, other) at full width
/// and the set (other, Cb, other, Cr) at half width.
struct ChannelSet {
  std::uint8_t plane;             ///< index into Image::planes
  std::uint8_t channels;          ///< interleaved samples per pixel of the grid, 1–4
  std::uint8_t shift_x, shift_y;  ///< log2 of the subsampling
  std::array<Role, 4> roles;      ///< roles of the first `channels` samples

  /// Whether samples of another set lie between the samples of this one (packed 4:2:2).
  bool shares_plane() const {
    for (int c = 0; c < channels; ++c)
      if (roles[c] == Role::other) return true;
    return false;
  }
};

/// How the samples of a group of pixels are stored in little-endian words.
struct Packing {
  /// The bits of one sample. The fields of a plane are in the order of its samples. A field with fewer bits than the
  /// format's depth (the alpha of RGB10A2_LE) is scaled: its largest value becomes the largest sample.
  struct Field {
    std::uint8_t plane, word, bit, bits;
  };

  Format unpacked;                          ///< planar, of the same size and depth; its samples are not shifted
  std::uint8_t word_bytes;                  ///< 1, 2 or 4
  std::uint8_t words, pixels, field_count;  ///< sizes of a group
  std::array<Field, 12> fields;

  constexpr int group_bytes() const { return words * word_bytes; }
};

struct FormatInfo {
  Format format;
  const char* name;        ///< as in GStreamer caps
  std::uint8_t depth;      ///< significant bits of a sample, 8–16; samples are 0 … 2^depth − 1
  std::uint8_t shift;      ///< unused low bits of the stored word (6 in P010), zero in output
  std::uint8_t planes;     ///< 1–4; the alpha plane is the last one
  std::uint8_t set_count;  ///< 1–4
  std::array<ChannelSet, max_sets> sets;
  std::uint8_t cuda_since;  ///< minor version of the first libgstcuda 1.x that can allocate this format; 0: none can
  /// How pixels are packed in words that kernels do not read; nullptr if they are not. Such a picture is unpacked
  /// before an operation and packed after it (see packing.hpp). Its depth, shift and sets describe the unpacked
  /// picture.
  const Packing* packing = nullptr;

  int sample_bytes() const { return depth > 8 ? 2 : 1; }
  int max_value() const { return (1 << depth) - 1; }
  int neutral_chroma() const { return 1 << (depth - 1); }

  /// Whether any channel has this role.
  bool has(Role role) const {
    for (int i = 0; i < set_count; ++i)
      for (int c = 0; c < sets[i].channels; ++c)
        if (sets[i].roles[c] == role) return true;
    return false;
  }
  bool is_rgb() const { return has(Role::red); }
  bool is_yuv() const { return has(Role::cb); }
  bool is_gray() const { return !is_rgb() && !is_yuv(); }
  bool has_alpha() const { return has(Role::alpha); }

  // Layout queries. Kernels are chosen by these, never by the number of planes.
  /// Whether each component has its own plane.
  bool is_planar() const { return sets[0].channels == 1 && (set_count == 1 || sets[1].channels == 1); }
  bool is_planar_rgb() const { return is_rgb() && is_planar(); }
  /// Whether there is a plane of Y and a plane of Cb and Cr.
  bool is_semi_planar() const { return sets[0].channels == 1 && set_count == 2; }
  bool is_420() const { return is_yuv() && sets[1].shift_x == 1 && sets[1].shift_y == 1; }
  /// The channel set of the alpha plane, which is the last set; −1: there is none.
  int alpha_set() const {
    return sets[set_count - 1].channels == 1 && sets[set_count - 1].roles[0] == Role::alpha ? set_count - 1 : -1;
  }
  /// The number of sets with colours: all except the set of an alpha plane.
  int color_sets() const { return set_count - (alpha_set() >= 0); }
};

inline constexpr int format_count = 67;

/// All formats, in the order of the enum.
const std::array<FormatInfo, format_count>& formats();
const FormatInfo& info(Format format);
/// The row with this GStreamer name, or nullptr.
const FormatInfo* find_format(const char* name);

/// The length of a dimension after subsampling: ceil(length / 2^shift). Does not overflow for any length.
constexpr int subsampled(int length, int shift) { return (length >> shift) + ((length & ((1 << shift) - 1)) != 0); }

/// value ÷ by, rounded up; value ≥ 0, by ≥ 1.
constexpr int divide_up(int value, int by) { return (value + by - 1) / by; }

inline bool is_chroma(Role role) { return role == Role::cb || role == Role::cr; }
/// Whether the channel is luma, chroma, red, green or blue.
inline bool is_color(Role role) { return role < Role::alpha; }

}  // namespace cudavision
