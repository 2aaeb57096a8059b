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
constexpr ChannelSet none{};

// name | depth shift | planes sets | channel sets | first libgstcuda
constexpr std::array<FormatInfo, format_count> table{{
    {Format::GRAY8, "GRAY8", 8, 0, 1, 1, {one(0, Y), none, none}, 0},
    {Format::RGB, "RGB", 8, 0, 1, 1, {three(R, G, B), none, none}, 22},
    {Format::BGR, "BGR", 8, 0, 1, 1, {three(B, G, R), none, none}, 22},
    {Format::RGBA, "RGBA", 8, 0, 1, 1, {four(R, G, B, A), none, none}, 22},
    {Format::BGRA, "BGRA", 8, 0, 1, 1, {four(B, G, R, A), none, none}, 22},
    {Format::ARGB, "ARGB", 8, 0, 1, 1, {four(A, R, G, B), none, none}, 22},
    {Format::ABGR, "ABGR", 8, 0, 1, 1, {four(A, B, G, R), none, none}, 22},
    {Format::RGBx, "RGBx", 8, 0, 1, 1, {four(R, G, B, X), none, none}, 22},
    {Format::BGRx, "BGRx", 8, 0, 1, 1, {four(B, G, R, X), none, none}, 22},
    {Format::xRGB, "xRGB", 8, 0, 1, 1, {four(X, R, G, B), none, none}, 0},
    {Format::xBGR, "xBGR", 8, 0, 1, 1, {four(X, B, G, R), none, none}, 0},
    {Format::NV12, "NV12", 8, 0, 2, 2, {one(0, Y), two(1, U, V, 1, 1), none}, 22},
    {Format::NV21, "NV21", 8, 0, 2, 2, {one(0, Y), two(1, V, U, 1, 1), none}, 22},
    {Format::I420, "I420", 8, 0, 3, 3, {one(0, Y), one(1, U, 1, 1), one(2, V, 1, 1)}, 22},
    {Format::YV12, "YV12", 8, 0, 3, 3, {one(0, Y), one(1, V, 1, 1), one(2, U, 1, 1)}, 22},
    {Format::Y42B, "Y42B", 8, 0, 3, 3, {one(0, Y), one(1, U, 1), one(2, V, 1)}, 22},
    {Format::Y444, "Y444", 8, 0, 3, 3, {one(0, Y), one(1, U), one(2, V)}, 22},
    {Format::YUY2, "YUY2", 8, 0, 1, 2, {two(0, Y, O, 0, 0), four(O, U, O, V, 1), none}, 22},
    {Format::UYVY, "UYVY", 8, 0, 1, 2, {two(0, O, Y, 0, 0), four(U, O, V, O, 1), none}, 22},
    {Format::RGBP, "RGBP", 8, 0, 3, 3, {one(0, R), one(1, G), one(2, B)}, 22},
    {Format::BGRP, "BGRP", 8, 0, 3, 3, {one(0, B), one(1, G), one(2, R)}, 22},
    {Format::GBR, "GBR", 8, 0, 3, 3, {one(0, G), one(1, B), one(2, R)}, 22},
    {Format::GRAY16_LE, "GRAY16_LE", 16, 0, 1, 1, {one(0, Y), none, none}, 0},
    {Format::P010_10LE, "P010_10LE", 10, 6, 2, 2, {one(0, Y), two(1, U, V, 1, 1), none}, 22},
    {Format::P016_LE, "P016_LE", 16, 0, 2, 2, {one(0, Y), two(1, U, V, 1, 1), none}, 22},
    {Format::I420_10LE, "I420_10LE", 10, 0, 3, 3, {one(0, Y), one(1, U, 1, 1), one(2, V, 1, 1)}, 22},
    {Format::I422_10LE, "I422_10LE", 10, 0, 3, 3, {one(0, Y), one(1, U, 1), one(2, V, 1)}, 22},
    {Format::Y444_10LE, "Y444_10LE", 10, 0, 3, 3, {one(0, Y), one(1, U), one(2, V)}, 24},
    {Format::Y444_16LE, "Y444_16LE", 16, 0, 3, 3, {one(0, Y), one(1, U), one(2, V)}, 22},
    {Format::RGBA64_LE, "RGBA64_LE", 16, 0, 1, 1, {four(R, G, B, A), none, none}, 0},
    {Format::ARGB64_LE, "ARGB64_LE", 16, 0, 1, 1, {four(A, R, G, B), none, none}, 0},
}};

constexpr bool ordered_by_enum() {
  for (int i = 0; i < format_count; ++i)
    if (int(table[i].format) != i) return false;
  return true;
}
static_assert(ordered_by_enum(), "info() indexes the table by the enum");

}  // namespace

const std::array<FormatInfo, format_count>& formats() { return table; }

const FormatInfo& info(Format format) { return table[std::size_t(format)]; }

const FormatInfo* find_format(const char* name) {
  for (const FormatInfo& row : table)
    if (std::strcmp(row.name, name) == 0) return &row;
  return nullptr;
}

}  // namespace cudavision
