// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tests/kernels/reference/picture.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace cudavision::reference {
namespace {

constexpr Role Y = Role::luma, U = Role::cb, V = Role::cr, R = Role::red, G = Role::green, B = Role::blue,
               A = Role::alpha, X = Role::padding;
constexpr int alignment = 256, guard = 256;

Definition packed(const char* name, int depth, const std::vector<Role>& roles) {
  Definition format{name, depth, 0, {}};
  const int bytes = format.sample_bytes(), step = bytes * int(roles.size());
  for (std::size_t i = 0; i < roles.size(); ++i) format.components.push_back({roles[i], 0, int(i) * bytes, step, 0, 0});
  return format;
}

/// One plane for each component. The last two are subsampled.
Definition planar(const char* name, int depth, const std::vector<Role>& roles, int shift_x = 0, int shift_y = 0) {
  Definition format{name, depth, 0, {}};
  for (int i = 0; i < int(roles.size()); ++i)
    format.components.push_back({roles[i], i, 0, format.sample_bytes(), i ? shift_x : 0, i ? shift_y : 0});
  return format;
}

Definition with_alpha(Definition format) {
  format.components.push_back({A, 3, 0, format.sample_bytes(), 0, 0});
  return format;
}

/// A luma plane and a plane of interleaved chroma.
Definition semiplanar(const char* name, int depth, int shift, Role first, Role second, int shift_x = 1,
                      int shift_y = 1) {
  Definition format{name, depth, shift, {}};
  const int bytes = format.sample_bytes();
  format.components = {{Y, 0, 0, bytes, 0, 0},
                       {first, 1, 0, 2 * bytes, shift_x, shift_y},
                       {second, 1, bytes, 2 * bytes, shift_x, shift_y}};
  return format;
}

/// Packed pixels that filters unpack. `shift`: unused low bits.
Definition unpacked(Definition format, int shift = 0) {
  format.unpacked = true;
  format.shift = shift;
  return format;
}

/// Luma, chroma, luma, chroma in 16-bit words.
Definition packed_422(const char* name, int depth) {
  return unpacked({name, depth, 0, {{Y, 0, 0, 4, 0, 0}, {U, 0, 2, 8, 1, 0}, {V, 0, 6, 8, 1, 0}}}, 16 - depth);
}

/// One 32-bit word per pixel, starting at the lowest bits.
Definition ten_bits(const char* name, Role first, Role second, Role third) {
  const auto field = [](Role role, int bit, int bits) { return Component{role, 0, 0, 4, 0, 0, {{0, bit, bits}}}; };
  return unpacked({name, 10, 0, {field(first, 0, 10), field(second, 10, 10), field(third, 20, 10), field(A, 30, 2)}});
}

/// Six pixels in four 32-bit words: Cb Y Cr, Y Cb Y, Cr Y Cb, Y Cr Y, starting at the lowest bits.
Definition v210() {
  Definition format{"v210", 10, 0, {{Y, 0, 0, 16, 0, 0}, {U, 0, 0, 16, 1, 0}, {V, 0, 0, 16, 1, 0}}};
  const char order[] = "UYVYUYVYUYVY";
  for (int i = 0; i < 12; ++i) {
    Component& c = format.components[order[i] == 'Y' ? 0 : order[i] == 'U' ? 1 : 2];
    c.fields.push_back({i / 3, 10 * (i % 3), 10});
  }
  return unpacked(format);
}

/// Scales a sample from the range 0 … from to 0 … to, rounded.
int scaled(int sample, int from, int to) { return from == to ? sample : (sample * to + from / 2) / from; }

/// Whether the centre of a pixel is in the ellipse that fills a box: (dx / width)² + (dy / height)² ≤ 1, where dx and
/// dy are twice the distance from the centre of the box.
bool in_ellipse(const Rect& box, int x, int y) {
  if (!contains(box, x, y)) return false;
  const __int128 w = box.width, h = box.height, dx = 2 * (long(x) - box.x) + 1 - box.width,
                 dy = 2 * (long(y) - box.y) + 1 - box.height;
  return dx * dx * h * h + dy * dy * w * w <= w * w * h * h;
}

/// Whether a ray from the centre of the pixel to the left meets the edges an odd number of times. It also meets an edge
/// through the centre.
bool in_polygon(const Polygon& polygon, int x, int y) {
  const __int128 cx = 2 * long(x) + 1, cy = 2 * long(y) + 1;  // in half pixels
  int met = 0;
  for (std::size_t i = 0; i < polygon.size(); ++i) {
    const Point &a = polygon[i], &b = polygon[(i + 1) % polygon.size()];
    const __int128 ax = 2 * long(a.x), ay = 2 * long(a.y), bx = 2 * long(b.x), by = 2 * long(b.y);
    if ((ay < cy) == (by < cy)) continue;
    // the edge is at ax + (bx − ax) · (cy − ay) / (by − ay)
    const __int128 distance = (cx - ax) * (by - ay) - (bx - ax) * (cy - ay);
    met += by > ay ? distance >= 0 : distance <= 0;
  }
  return met % 2 == 1;
}

}  // namespace

const Definition& definition(Format format) {
  static const std::vector<Definition> definitions = {
      packed("GRAY8", 8, {Y}),
      packed("RGB", 8, {R, G, B}),
      packed("BGR", 8, {B, G, R}),
      packed("RGBA", 8, {R, G, B, A}),
      packed("BGRA", 8, {B, G, R, A}),
      packed("ARGB", 8, {A, R, G, B}),
      packed("ABGR", 8, {A, B, G, R}),
      packed("RGBx", 8, {R, G, B, X}),
      packed("BGRx", 8, {B, G, R, X}),
      packed("xRGB", 8, {X, R, G, B}),
      packed("xBGR", 8, {X, B, G, R}),
      semiplanar("NV12", 8, 0, U, V),
      semiplanar("NV21", 8, 0, V, U),
      planar("I420", 8, {Y, U, V}, 1, 1),
      planar("YV12", 8, {Y, V, U}, 1, 1),
      planar("Y42B", 8, {Y, U, V}, 1),
      planar("Y444", 8, {Y, U, V}),
      {"YUY2", 8, 0, {{Y, 0, 0, 2, 0, 0}, {U, 0, 1, 4, 1, 0}, {V, 0, 3, 4, 1, 0}}},
      {"UYVY", 8, 0, {{Y, 0, 1, 2, 0, 0}, {U, 0, 0, 4, 1, 0}, {V, 0, 2, 4, 1, 0}}},
      planar("RGBP", 8, {R, G, B}),
      planar("BGRP", 8, {B, G, R}),
      planar("GBR", 8, {G, B, R}),
      packed("GRAY16_LE", 16, {Y}),
      semiplanar("P010_10LE", 10, 6, U, V),
      semiplanar("P016_LE", 16, 0, U, V),
      planar("I420_10LE", 10, {Y, U, V}, 1, 1),
      planar("I422_10LE", 10, {Y, U, V}, 1),
      planar("Y444_10LE", 10, {Y, U, V}),
      planar("Y444_16LE", 16, {Y, U, V}),
      packed("RGBA64_LE", 16, {R, G, B, A}),
      packed("ARGB64_LE", 16, {A, R, G, B}),
      semiplanar("NV16", 8, 0, U, V, 1, 0),
      semiplanar("NV61", 8, 0, V, U, 1, 0),
      semiplanar("NV24", 8, 0, U, V, 0, 0),
      planar("Y41B", 8, {Y, U, V}, 2),
      {"YVYU", 8, 0, {{Y, 0, 0, 2, 0, 0}, {V, 0, 1, 4, 1, 0}, {U, 0, 3, 4, 1, 0}}},
      {"VYUY", 8, 0, {{Y, 0, 1, 2, 0, 0}, {V, 0, 0, 4, 1, 0}, {U, 0, 2, 4, 1, 0}}},
      with_alpha(planar("GBRA", 8, {G, B, R})),
      with_alpha(planar("A420", 8, {Y, U, V}, 1, 1)),
      with_alpha(planar("A444", 8, {Y, U, V})),
      semiplanar("P012_LE", 12, 4, U, V),
      planar("I420_12LE", 12, {Y, U, V}, 1, 1),
      planar("I422_12LE", 12, {Y, U, V}, 1),
      planar("Y444_12LE", 12, {Y, U, V}),
      planar("GBR_10LE", 10, {G, B, R}),
      planar("GBR_12LE", 12, {G, B, R}),
      planar("GBR_16LE", 16, {G, B, R}),
      packed("BGRA64_LE", 16, {B, G, R, A}),
      packed("ABGR64_LE", 16, {A, B, G, R}),
      packed("GRAY10_LE16", 10, {Y}),
      with_alpha(planar("GBRA_10LE", 10, {G, B, R})),
      with_alpha(planar("GBRA_12LE", 12, {G, B, R})),
      with_alpha(planar("A420_10LE", 10, {Y, U, V}, 1, 1)),
      with_alpha(planar("A422_10LE", 10, {Y, U, V}, 1)),
      with_alpha(planar("A444_10LE", 10, {Y, U, V})),
      with_alpha(planar("A444_12LE", 12, {Y, U, V})),
      with_alpha(planar("A444_16LE", 16, {Y, U, V})),
      unpacked(packed("v308", 8, {Y, U, V})),
      unpacked(packed("AYUV", 8, {A, Y, U, V})),
      unpacked(packed("VUYA", 8, {V, U, Y, A})),
      unpacked(packed("AYUV64", 16, {A, Y, U, V})),
      packed_422("Y210", 10),
      packed_422("Y212_LE", 12),
      unpacked(packed("Y412_LE", 12, {U, Y, V, A}), 4),
      ten_bits("RGB10A2_LE", R, G, B),
      ten_bits("BGR10A2_LE", B, G, R),
      v210(),
  };
  return definitions.at(std::size_t(format));
}

Picture::Picture(const Geometry& geometry, Layout layout) : geometry_(geometry) {
  const int bytes = format().sample_bytes();
  std::size_t end = 0;
  for (int plane = 0; plane <= format().components.back().plane; ++plane) {
    int row = 0, rows = 0;
    for (const Component& c : format().components) {
      if (c.plane != plane) continue;
      rows = height(c);
      const int groups = (width(c) + c.fields_in_group() - 1) / c.fields_in_group();
      row = std::max(row, groups * c.step);  // whole groups of pixels
    }
    const std::ptrdiff_t pitch =
        (row + layout.multiple - 1) / layout.multiple * layout.multiple + layout.padding * bytes + layout.padding_bytes;
    const std::size_t begin =
        (end + guard + alignment - 1) / alignment * alignment + layout.offset * bytes + layout.offset_bytes;
    spans_.push_back({begin, pitch});
    end = begin + pitch * rows;
  }
  bytes_.resize(end + guard);
  for (std::size_t i = 0; i < bytes_.size(); ++i) bytes_[i] = std::uint8_t(i * 37 + 11);
}

Grid Picture::read(const Component& c) const {
  Grid grid(width(c), height(c));
  for (const auto& [x, y] : positions(grid))
    grid.at(x, y) = scaled(std::min(word(c, x, y) >> format().shift, most(c)), most(c), format().max_value());
  return grid;
}

std::uint32_t Picture::word_32(std::size_t at) const {
  std::uint32_t word = 0;
  for (int i = 0; i < 4; ++i) word |= std::uint32_t(bytes_[at + std::size_t(i)]) << 8 * i;
  return word;
}

int Picture::word(const Component& c, int x, int y) const {
  if (const Component::Field* at = field(c, x))
    return int(word_32(address(c, x, y)) >> at->bit) & ((1 << at->bits) - 1);
  const std::uint8_t* at = &bytes_[address(c, x, y)];
  return format().sample_bytes() == 1 ? at[0] : at[0] | at[1] << 8;
}

void Picture::write(const Component& c, const Grid& grid) {
  for (const auto& [x, y] : positions(grid)) write(c, x, y, grid.at(x, y));
}

void Picture::write(const Component& c, int x, int y, int sample) {
  write_word(c, x, y, scaled(sample, format().max_value(), most(c)) << format().shift);
}

void Picture::write_word(const Component& c, int x, int y, int word) {
  if (const Component::Field* at = field(c, x)) {
    const std::uint32_t mask = (1u << at->bits) - 1;
    const std::uint32_t all = (word_32(address(c, x, y)) & ~(mask << at->bit)) | (std::uint32_t(word) & mask)
                                                                                     << at->bit;
    for (int i = 0; i < 4; ++i) bytes_[address(c, x, y) + std::size_t(i)] = std::uint8_t(all >> 8 * i);
    return;
  }
  for (int i = 0; i < format().sample_bytes(); ++i) bytes_[address(c, x, y) + i] = std::uint8_t(word >> 8 * i);
}

void Picture::fill_padding() {
  for (const Component& c : format().components) {
    if (c.fields.empty()) continue;
    const int groups = (width(c) + c.fields_in_group() - 1) / c.fields_in_group();
    for (int y = 0; y < height(c); ++y) {
      for (int x = width(c); x < groups * c.fields_in_group(); ++x) write_word(c, x, y, word(c, width(c) - 1, y));
      if (c.step == 16)  // the upper two bits of the words of v210
        for (int word = 0; word < 4 * groups; ++word)
          bytes_[spans_[0].begin + std::size_t(y * spans_[0].pitch + 4 * word + 3)] &= 0x3f;
    }
  }
  const Component& luma = format().components.front();
  const bool packed_422 = luma.role == Y && luma.step == 2 * format().sample_bytes();
  for (int y = 0; packed_422 && geometry_.width % 2 == 1 && y < geometry_.height; ++y)
    write_word(luma, geometry_.width, y, word(luma, geometry_.width - 1, y));
}

Image Picture::at(void* base) const {
  Image image{geometry_, {}};
  for (std::size_t i = 0; i < spans_.size(); ++i)
    image.planes[i] = {static_cast<std::uint8_t*>(base) + spans_[i].begin, spans_[i].pitch};
  return image;
}

Picture Picture::inverted() const {
  Picture other = *this;
  for (std::uint8_t& byte : other.bytes_) byte = std::uint8_t(~byte);
  return other;
}

std::string Picture::sample_difference(const Picture& actual, int tolerance) const {
  const int unused = (1 << format().shift) - 1;
  for (const Component& c : format().components)
    for (const auto& [x, y] : positions(width(c), height(c))) {
      const int want = word(c, x, y), got = actual.word(c, x, y), shift = format().shift;
      const bool stray = ((want ^ got) & unused) != 0;
      // A field with few bits has wide steps: two samples that differ by one step of the depth may differ by one step
      // of the field.
      const int allowed = most(c) < format().max_value() ? std::min(tolerance, 1) : tolerance;
      if (std::abs((want >> shift) - (got >> shift)) <= allowed && !stray) continue;
      return "plane " + std::to_string(c.plane) + ", role " + std::to_string(int(c.role)) + ", sample (" +
             std::to_string(x) + ", " + std::to_string(y) + ") of " + std::to_string(width(c)) + "x" +
             std::to_string(height(c)) + ": expected " + std::to_string(want >> shift) + ", got " +
             std::to_string(got >> shift) + (stray ? ", unused bits changed" : "") + " (tolerance " +
             std::to_string(tolerance) + ")";
    }
  return {};
}

/// Whether fill_padding() would change groups of bit fields.
std::string Picture::padding_difference() const {
  if (format().components.front().fields.empty()) return {};
  Picture filled = *this;
  filled.fill_padding();
  return filled.bytes_ == bytes_ ? "" : "the padding of groups is not the last samples and zeros";
}

std::string Picture::difference(const Picture& actual, int tolerance) const {
  std::string wrong = sample_difference(actual, tolerance);
  if (!wrong.empty()) return wrong;
  std::vector<bool> ours(bytes_.size());
  if (wrong = actual.padding_difference(); !wrong.empty()) return wrong;
  for (const Component& c : format().components) {
    if (!c.fields.empty()) {
      const int groups = (width(c) + c.fields_in_group() - 1) / c.fields_in_group();
      for (int y = 0; y < height(c); ++y)
        for (int byte = 0; byte < groups * c.step; ++byte)
          ours[spans_[0].begin + std::size_t(y * spans_[0].pitch + byte)] = true;
      continue;
    }
    const bool packed_422 = c.role == Role::luma && c.step == 2 * format().sample_bytes();
    const int columns = packed_422 ? (width(c) + 1) / 2 * 2 : width(c);
    for (int y = 0; columns > width(c) && y < height(c); ++y)
      if (actual.word(c, width(c), y) != actual.word(c, width(c) - 1, y))
        return "the padding of row " + std::to_string(y) + " is not the last luma sample";
    for (const auto& [x, y] : positions(columns, height(c)))
      for (int i = 0; i < format().sample_bytes(); ++i) ours[address(c, x, y) + i] = true;
  }
  for (std::size_t i = 0; i < bytes_.size(); ++i) {
    if (ours[i] || actual.bytes_[i] == std::uint8_t(~bytes_[i])) continue;
    std::string planes;
    for (const Span& span : spans_)
      planes += ", plane at " + std::to_string(span.begin) + " pitch " + std::to_string(span.pitch);
    return "byte " + std::to_string(i) + " outside the picture was written" + planes;
  }
  return {};
}

Picture filtered(const Picture& src, const Region& region, bool filter_alpha, Layout layout,
                 const std::function<Grid(const Grid&, const Component&)>& operation) {
  Picture dst(src.geometry(), layout);
  for (const Component& c : src.format().components) {
    const bool computes = filter_alpha || c.is_color();
    const Grid input = src.read(c), output = computes ? operation(input, c) : input;
    for (const auto& [x, y] : positions(input))
      if (computes && in_region(region, src.geometry(), c, x, y))
        dst.write(c, x, y, output.at(x, y));
      else
        dst.copy(c, x, y, src);
  }
  return dst;
}

int luma(LumaMatrix matrix, int red, int green, int blue) {
  static constexpr float weights[][3] = {
      {0.299f, 0.587f, 0.114f}, {0.2126f, 0.7152f, 0.0722f}, {0.2627f, 0.678f, 0.0593f}, {0.212f, 0.701f, 0.087f}};
  const float* w = weights[int(matrix)];
  // volatile prevents fused multiply-add
  const volatile float r = w[0] * float(red), g = w[1] * float(green), b = w[2] * float(blue);
  const volatile float two = r + g;
  const volatile float all = two + b;
  return int(std::floor(all));
}

Grid luma(LumaMatrix matrix, const Picture& src) {
  const Definition& format = src.format();
  if (const Component* y = format.find(Role::luma)) return src.read(*y);
  const Grid red = src.read(*format.find(Role::red)), green = src.read(*format.find(Role::green)),
             blue = src.read(*format.find(Role::blue));
  Grid out = red;
  for (const auto& [x, y] : positions(out))
    out.at(x, y) = std::min(luma(matrix, red.at(x, y), green.at(x, y), blue.at(x, y)), format.max_value());
  return out;
}

bool in_region(const Region& region, const Geometry& geometry, const Component& c, int x, int y) {
  if (region.mode == Region::Mode::frame) return true;
  bool all = false, any = false;  // whether all or any of the sample's pixels lie in one shape
  const auto look = [&](const auto& holds) {
    int pixels = 0, inside = 0;
    for (const auto& [px, py] : c.pixels(x, y, geometry)) {
      ++pixels;
      inside += holds(px, py);
    }
    any = any || inside > 0;
    all = all || inside == pixels;
  };
  for (const Rect& rect : region.rects) look([&](int px, int py) { return contains(rect, px, py); });
  for (const Rect& box : region.ellipses) look([&](int px, int py) { return in_ellipse(box, px, py); });
  for (const Polygon& polygon : region.polygons) look([&](int px, int py) { return in_polygon(polygon, px, py); });
  return region.mode == Region::Mode::inside ? all : !any;
}

int extrapolate(int i, int n, Border border) {
  while (i < 0 || i >= n) {
    const bool before = i < 0;
    switch (border) {
      case Border::replicate:
        i = before ? 0 : n - 1;
        break;
      case Border::wrap:
        i += before ? n : -n;
        break;
      case Border::reflect:
        i = before ? -1 - i : 2 * n - 1 - i;
        break;
      case Border::reflect_101:
        if (n == 1) return 0;
        i = before ? -i : 2 * (n - 1) - i;
        break;
      case Border::constant:
      case Border::fill:
      case Border::copy:
        return -1;
    }
  }
  return i;
}

}  // namespace cudavision::reference
