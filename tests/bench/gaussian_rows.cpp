// SPDX-License-Identifier: LGPL-2.1-or-later
#include <cmath>
#include <tuple>

#include "kernels/gaussian/gaussian.hpp"
#include "tests/bench/rows.hpp"

namespace cudavision::bench {
namespace {

Row gaussian(int taps, Format format, double must = 0, bool only_8k = false) {
  gaussian::Params params;
  params.kernel_width = params.kernel_height = taps;
  Row row{"gaussian-" + std::to_string(taps), format,
          filter([=](const Geometry& geometry, Backend backend) { return gaussian::make(params, geometry, backend); })};
  row.must = must;
  row.only_8k = only_8k;
  row.peer = {taps <= 31 ? "gaussian" : nullptr, taps, {}};
  double sum = 0;
  const double sigma = 0.15 * taps + 0.35;
  for (int i = 0; i < taps; ++i)
    sum += row.peer.weights.emplace_back(std::exp(-0.5 * std::pow((i - taps / 2) / sigma, 2)));
  for (float& weight : row.peer.weights) weight /= float(sum);
  return row;
}

}  // namespace

std::vector<Row> gaussian_rows() {
  std::vector<Row> list;
  for (Format format : {Format::GRAY8, Format::RGBA, Format::NV12})
    for (auto [taps, one, four] :
         {std::tuple(3, 1.3, 1.35), {5, 1.3, 1.35}, {7, 1.3, 1.35}, {15, 1.3, 1.5}, {31, 1.6, 2.0}})
      list.push_back(gaussian(taps, format, format == Format::RGBA ? four : one));
  list[1].all_sizes = true;  // 5 taps, GRAY8
  for (int taps : {63, 255}) list.push_back(gaussian(taps, Format::GRAY8, 0, true));
  for (auto [format, must] : {std::pair(Format::P010_10LE, 1.5), {Format::GRAY16_LE, 1.5}, {Format::YUY2, 2.5}})
    for (int taps : {5, 15}) list.push_back(gaussian(taps, format, must, true));
  return list;
}

}  // namespace cudavision::bench
