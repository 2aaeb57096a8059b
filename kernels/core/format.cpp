// SPDX-License-Identifier: LGPL-2.1-or-later
#include "kernels/core/format.hpp"

#include <cstring>

namespace cudavision {
namespace {

constexpr Role Y = Role::luma, U = Role::cb, V = Role::cr, R = Role::red, G = Role::green, B = Role::blue,
               A = Role::alpha, X = Role::padding, O = Role::other;

constexpr ChannelSet one(int plane, Role role, int sx = 0, int sy = 0) {
  return {std::uint8_t(plane), 1, std::uint8_t(sx), std::uint8_t(sy), {role, O, O, O}};
}
constexpr ChannelSet two(int plane, Role a, Role b, int sx, int sy) {
  return {std::uint8_t(plane), 2, std::uint8_t(sx), std::uint8_t(sy), {a, b, O, O}};
}
constexpr ChannelSet three(Role a, Role b, Role c) { return {0, 3, 0, 0, {a, b, c, O}}; }
constexpr ChannelSet four(Role a, Role b, Role c, Role d, int sx = 0) {
  return {0, 4, std::uint8_t(sx), 0, {a, b, c, d}};
}

using Sets = std::array<ChannelSet, max_sets>;
/// A plane for each component; the last one may be alpha.
constexpr Sets planar(Role a, Role b, Role c, int sx = 0, int sy = 0) {
  return {one(0, a), one(1, b, sx, sy), one(2, c, sx, sy)};
}
constexpr Sets with_alpha(Sets sets) {
  sets[3] = one(3, A);
  return sets;
}

constexpr Sets yuv_420 = planar(Y, U, V, 1, 1), yuv_422 = planar(Y, U, V, 1), yuv_444 = planar(Y, U, V);
constexpr Sets gbr = planar(G, B, R);

/// Fields of `bits` bits, `per_word` in each word, above `shift` unused bits. `order` has a digit for each field of a
/// group of pixels, beginning with the lowest bits of the first word: the plane of the unpacked picture.
constexpr Packing fields(Format unpacked, int pixels, int word_bytes, int per_word, int bits, int shift,
                         const char* order) {
  Packing packing{unpacked, std::uint8_t(word_bytes), 0, std::uint8_t(pixels), 0, {}};
  int i = 0;
  for (; order[i]; ++i)
    packing.fields[std::size_t(i)] = {std::uint8_t(order[i] - '0'), std::uint8_t(i / per_word),
                                      std::uint8_t(shift + bits * (i % per_word)), std::uint8_t(bits)};
  packing.words = std::uint8_t(i / per_word);
  packing.field_count = std::uint8_t(i);
  return packing;
}
/// Three fields of 10 bits, and 2 bits of alpha, in a word.
constexpr Packing ten_bits(const char* order) {
  Packing packing = fields(Format::GBRA_10LE, 1, 4, 3, 10, 0, order);
  packing.fields[packing.field_count++] = {3, 0, 30, 2};
  return packing;
}

constexpr Packing packed_v308 = fields(Format::Y444, 1, 1, 1, 8, 0, "012"),
                  packed_ayuv = fields(Format::A444, 1, 1, 1, 8, 0, "3012"),
                  packed_vuya = fields(Format::A444, 1, 1, 1, 8, 0, "2103"),
                  packed_ayuv64 = fields(Format::A444_16LE, 1, 2, 1, 16, 0, "3012"),
                  packed_y210 = fields(Format::I422_10LE, 2, 2, 1, 10, 6, "0102"),
                  packed_y212 = fields(Format::I422_12LE, 2, 2, 1, 12, 4, "0102"),
                  packed_y412 = fields(Format::A444_12LE, 1, 2, 1, 12, 4, "1023"), packed_rgb10 = ten_bits("201"),
                  packed_bgr10 = ten_bits("102"),
                  packed_v210 = fields(Format::I422_10LE, 6, 4, 3, 10, 0, "102010201020");

// name | depth shift | planes sets | channel sets | first libgstcuda | packing
constexpr std::array<FormatInfo, format_count> table{{
    {Format::GRAY8, "GRAY8", 8, 0, 1, 1, {one(0, Y)}, 0},
    {Format::RGB, "RGB", 8, 0, 1, 1, {three(R, G, B)}, 22},
    {Format::BGR, "BGR", 8, 0, 1, 1, {three(B, G, R)}, 22},
    {Format::RGBA, "RGBA", 8, 0, 1, 1, {four(R, G, B, A)}, 22},
    {Format::BGRA, "BGRA", 8, 0, 1, 1, {four(B, G, R, A)}, 22},
    {Format::ARGB, "ARGB", 8, 0, 1, 1, {four(A, R, G, B)}, 22},
    {Format::ABGR, "ABGR", 8, 0, 1, 1, {four(A, B, G, R)}, 22},
    {Format::RGBx, "RGBx", 8, 0, 1, 1, {four(R, G, B, X)}, 22},
    {Format::BGRx, "BGRx", 8, 0, 1, 1, {four(B, G, R, X)}, 22},
    {Format::xRGB, "xRGB", 8, 0, 1, 1, {four(X, R, G, B)}, 0},
    {Format::xBGR, "xBGR", 8, 0, 1, 1, {four(X, B, G, R)}, 0},
    {Format::NV12, "NV12", 8, 0, 2, 2, {one(0, Y), two(1, U, V, 1, 1)}, 22},
    {Format::NV21, "NV21", 8, 0, 2, 2, {one(0, Y), two(1, V, U, 1, 1)}, 22},
    {Format::I420, "I420", 8, 0, 3, 3, yuv_420, 22},
    {Format::YV12, "YV12", 8, 0, 3, 3, planar(Y, V, U, 1, 1), 22},
    {Format::Y42B, "Y42B", 8, 0, 3, 3, yuv_422, 22},
    {Format::Y444, "Y444", 8, 0, 3, 3, yuv_444, 22},
    {Format::YUY2, "YUY2", 8, 0, 1, 2, {two(0, Y, O, 0, 0), four(O, U, O, V, 1)}, 22},
    {Format::UYVY, "UYVY", 8, 0, 1, 2, {two(0, O, Y, 0, 0), four(U, O, V, O, 1)}, 22},
    {Format::RGBP, "RGBP", 8, 0, 3, 3, planar(R, G, B), 22},
    {Format::BGRP, "BGRP", 8, 0, 3, 3, planar(B, G, R), 22},
    {Format::GBR, "GBR", 8, 0, 3, 3, gbr, 22},
    {Format::GRAY16_LE, "GRAY16_LE", 16, 0, 1, 1, {one(0, Y)}, 0},
    {Format::P010_10LE, "P010_10LE", 10, 6, 2, 2, {one(0, Y), two(1, U, V, 1, 1)}, 22},
    {Format::P016_LE, "P016_LE", 16, 0, 2, 2, {one(0, Y), two(1, U, V, 1, 1)}, 22},
    {Format::I420_10LE, "I420_10LE", 10, 0, 3, 3, yuv_420, 22},
    {Format::I422_10LE, "I422_10LE", 10, 0, 3, 3, yuv_422, 22},
    {Format::Y444_10LE, "Y444_10LE", 10, 0, 3, 3, yuv_444, 24},
    {Format::Y444_16LE, "Y444_16LE", 16, 0, 3, 3, yuv_444, 22},
    {Format::RGBA64_LE, "RGBA64_LE", 16, 0, 1, 1, {four(R, G, B, A)}, 0},
    {Format::ARGB64_LE, "ARGB64_LE", 16, 0, 1, 1, {four(A, R, G, B)}, 0},
    {Format::NV16, "NV16", 8, 0, 2, 2, {one(0, Y), two(1, U, V, 1, 0)}, 0},
    {Format::NV61, "NV61", 8, 0, 2, 2, {one(0, Y), two(1, V, U, 1, 0)}, 0},
    {Format::NV24, "NV24", 8, 0, 2, 2, {one(0, Y), two(1, U, V, 0, 0)}, 0},
    {Format::Y41B, "Y41B", 8, 0, 3, 3, planar(Y, U, V, 2), 0},
    {Format::YVYU, "YVYU", 8, 0, 1, 2, {two(0, Y, O, 0, 0), four(O, V, O, U, 1)}, 0},
    {Format::VYUY, "VYUY", 8, 0, 1, 2, {two(0, O, Y, 0, 0), four(V, O, U, O, 1)}, 0},
    {Format::GBRA, "GBRA", 8, 0, 4, 4, with_alpha(gbr), 22},
    {Format::A420, "A420", 8, 0, 4, 4, with_alpha(yuv_420), 0},
    {Format::A444, "A444", 8, 0, 4, 4, with_alpha(yuv_444), 0},
    {Format::P012_LE, "P012_LE", 12, 4, 2, 2, {one(0, Y), two(1, U, V, 1, 1)}, 24},
    {Format::I420_12LE, "I420_12LE", 12, 0, 3, 3, yuv_420, 24},
    {Format::I422_12LE, "I422_12LE", 12, 0, 3, 3, yuv_422, 22},
    {Format::Y444_12LE, "Y444_12LE", 12, 0, 3, 3, yuv_444, 24},
    {Format::GBR_10LE, "GBR_10LE", 10, 0, 3, 3, gbr, 24},
    {Format::GBR_12LE, "GBR_12LE", 12, 0, 3, 3, gbr, 24},
    {Format::GBR_16LE, "GBR_16LE", 16, 0, 3, 3, gbr, 24},
    {Format::BGRA64_LE, "BGRA64_LE", 16, 0, 1, 1, {four(B, G, R, A)}, 0},
    {Format::ABGR64_LE, "ABGR64_LE", 16, 0, 1, 1, {four(A, B, G, R)}, 0},
    {Format::GRAY10_LE16, "GRAY10_LE16", 10, 0, 1, 1, {one(0, Y)}, 0},
    {Format::GBRA_10LE, "GBRA_10LE", 10, 0, 4, 4, with_alpha(gbr), 0},
    {Format::GBRA_12LE, "GBRA_12LE", 12, 0, 4, 4, with_alpha(gbr), 0},
    {Format::A420_10LE, "A420_10LE", 10, 0, 4, 4, with_alpha(yuv_420), 0},
    {Format::A422_10LE, "A422_10LE", 10, 0, 4, 4, with_alpha(yuv_422), 0},
    {Format::A444_10LE, "A444_10LE", 10, 0, 4, 4, with_alpha(yuv_444), 0},
    {Format::A444_12LE, "A444_12LE", 12, 0, 4, 4, with_alpha(yuv_444), 0},
    {Format::A444_16LE, "A444_16LE", 16, 0, 4, 4, with_alpha(yuv_444), 0},
    {Format::v308, "v308", 8, 0, 1, 3, yuv_444, 0, &packed_v308},
    {Format::AYUV, "AYUV", 8, 0, 1, 4, with_alpha(yuv_444), 0, &packed_ayuv},
    {Format::VUYA, "VUYA", 8, 0, 1, 4, with_alpha(yuv_444), 26, &packed_vuya},
    {Format::AYUV64, "AYUV64", 16, 0, 1, 4, with_alpha(yuv_444), 0, &packed_ayuv64},
    {Format::Y210, "Y210", 10, 0, 1, 3, yuv_422, 0, &packed_y210},
    {Format::Y212_LE, "Y212_LE", 12, 0, 1, 3, yuv_422, 0, &packed_y212},
    {Format::Y412_LE, "Y412_LE", 12, 0, 1, 4, with_alpha(yuv_444), 0, &packed_y412},
    {Format::RGB10A2_LE, "RGB10A2_LE", 10, 0, 1, 4, with_alpha(gbr), 22, &packed_rgb10},
    {Format::BGR10A2_LE, "BGR10A2_LE", 10, 0, 1, 4, with_alpha(gbr), 22, &packed_bgr10},
    {Format::v210, "v210", 10, 0, 1, 3, yuv_422, 0, &packed_v210},
}};

constexpr bool ordered_by_enum() {
  for (int i = 0; i < format_count; ++i)
    if (int(table[i].format) != i) return false;
  return true;
}
static_assert(ordered_by_enum(), "info() indexes the table by the enum");

/// Whether packed formats have the properties of the formats that they are unpacked to.
constexpr bool packed_as_unpacked() {
  for (const FormatInfo& row : table) {
    if (!row.packing) continue;
    const FormatInfo& unpacked = table[std::size_t(row.packing->unpacked)];
    if (row.depth != unpacked.depth || row.shift != 0 || unpacked.shift != 0 || row.set_count != unpacked.set_count ||
        unpacked.packing)
      return false;
  }
  return true;
}
static_assert(packed_as_unpacked(), "operations see the unpacked picture");

}  // namespace

const std::array<FormatInfo, format_count>& formats() { return table; }

const FormatInfo& info(Format format) { return table[std::size_t(format)]; }

const FormatInfo* find_format(const char* name) {
  for (const FormatInfo& row : table)
    if (std::strcmp(row.name, name) == 0) return &row;
  return nullptr;
}

}  // namespace cudavision
