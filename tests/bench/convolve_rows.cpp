// SPDX-License-Identifier: LGPL-2.1-or-later
#include <cmath>
#include <random>

#include "kernels/convolve/convolve.hpp"
#include "tests/bench/rows.hpp"

namespace cudavision::bench {
namespace {

Row convolve(std::string name, const convolve::Params& params, int taps, std::vector<double> weights, Format format,
             double must) {
  Row row{std::move(name), format,
          filter([=](const Geometry& geometry, Backend backend) { return convolve::make(params, geometry, backend); })};
  row.must = must;
  row.peer = {"convolve", taps, {weights.begin(), weights.end()}};
  return row;
}

/// Real weights without structure, of full rank.
Row convolve_full(int taps, Format format, double must) {
  std::mt19937 random(taps);
  convolve::Params params;
  params.kernel_width = params.kernel_height = taps;
  for (int i = 0; i < taps * taps; ++i) params.weights.push_back(0.1 + random() / 4294967296.0);
  const std::string side = std::to_string(taps);
  Row row = convolve("convolve-" + side + "x" + side, params, taps, params.weights, format, must);
  if (taps >= 15) row.multiplies = taps * taps;
  return row;
}

/// Real weights of rank 1.
Row convolve_separable(int taps, Format format) {
  convolve::Params params;
  params.kernel_width = params.kernel_height = taps;
  for (int y = 0; y < taps; ++y)
    for (int x = 0; x < taps; ++x) params.weights.push_back(std::sqrt(x + 1.5) * std::log(y + 2.5));
  const std::string side = std::to_string(taps);
  return convolve("separable-" + side + "x" + side, params, taps, params.weights, format, 0);
}

Row convolve_preset(convolve::Preset preset, Border border, Format format) {
  convolve::Params params;
  params.preset = preset;
  params.border = border;
  const convolve::PresetInfo& found = convolve::presets()[int(preset)];
  const std::string name = found.nick + std::string(border == Border::fill ? "-fill" : "");
  Row row = convolve(name, params, found.width, found.weights, format, 0);
  if (!found.vertical.empty()) row.peer = {};  // no peer computes the magnitude of two kernels in one call
  return row;
}

}  // namespace

std::vector<Row> convolve_rows() {
  std::vector<Row> list;
  for (Format format : {Format::GRAY8, Format::RGBA}) {
    for (auto [taps, must] : {std::pair(3, 1.35), {5, 1.5}, {7, 1.8}, {15, 0.6}, {31, 0.3}})
      list.push_back(convolve_full(taps, format, must));
    for (int taps : {7, 31}) list.push_back(convolve_separable(taps, format));
    list.push_back(convolve_preset(convolve::Preset::sharpen, Border::reflect_101, format));
    list.push_back(convolve_preset(convolve::Preset::laplacian, Border::reflect_101, format));
    list.push_back(convolve_preset(convolve::Preset::sharpen, Border::fill, format));
    list.push_back(convolve_preset(convolve::Preset::gradient, Border::reflect_101, format));
  }
  list[0].all_sizes = true;  // 3×3, GRAY8
  for (auto [taps, must] : {std::pair(3, 1.35), {5, 1.5}, {7, 1.8}})
    list.push_back(convolve_full(taps, Format::NV12, must));
  for (Border border : {Border::reflect_101, Border::fill})
    list.push_back(convolve_preset(convolve::Preset::sharpen, border, Format::NV12));
  for (Format format : {Format::GRAY16_LE, Format::P010_10LE}) {
    list.push_back(convolve_full(3, format, 1.5));
    for (int taps : {5, 7, 31}) list.push_back(convolve_separable(taps, format));
    list.push_back(convolve_preset(convolve::Preset::sharpen, Border::reflect_101, format));
  }
  return list;
}

}  // namespace cudavision::bench
