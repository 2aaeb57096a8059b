// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tests/kernels/reference/gaussian.hpp"

#include <algorithm>
#include <cmath>

namespace cudavision::reference {
namespace {

double sigma_of(int taps) { return 0.3 * ((taps - 1) * 0.5 - 1) + 0.8; }

/// The weights of one axis of a component that is subsampled by 2^shift.
std::vector<std::int64_t> axis(int taps, double sigma, int shift, int depth) {
  if (taps == 0) taps = std::min(int(std::nearbyint(sigma * (depth == 8 ? 3 : 4) * 2 + 1)) | 1, 255);
  const int bits = depth == 8 ? 8 : 16;
  if (shift == 0) return gaussian_weights(taps, sigma, bits);
  const int side = 1 << shift, radius = (taps / 2 + side - 1) / side;  // rounded up
  return gaussian_weights(2 * radius + 1, (sigma > 0 ? sigma : sigma_of(taps)) / side, bits);
}

/// Weighted sums along rows; `outside` is the value where extrapolate() returns −1.
std::vector<std::uint64_t> row_sums(const std::vector<std::uint64_t>& in, int width, int height, std::uint64_t outside,
                                    const std::vector<std::int64_t>& weights, Border border) {
  const int radius = int(weights.size()) / 2;
  std::vector<int> index;
  for (int i = -radius; i < width + radius; ++i) index.push_back(extrapolate(i, width, border));
  std::vector<std::uint64_t> out(in.size());
  for (int y = 0; y < height; ++y) {
    std::vector<std::uint64_t> line;
    for (int i : index) line.push_back(i < 0 ? outside : in[std::size_t(y) * width + i]);
    for (int x = 0; x < width; ++x)
      for (std::size_t k = 0; k < weights.size(); ++k) out[std::size_t(y) * width + x] += weights[k] * line[x + k];
  }
  return out;
}

std::vector<std::uint64_t> transposed(const std::vector<std::uint64_t>& in, int width, int height) {
  std::vector<std::uint64_t> out(in.size());
  for (const auto& [x, y] : positions(width, height)) out[std::size_t(x) * height + y] = in[std::size_t(y) * width + x];
  return out;
}

}  // namespace

std::vector<std::int64_t> gaussian_weights(int taps, double sigma, int bits) {
  // Without a sigma, OpenCV takes the weights of small kernels from tables, here in units of 1/256.
  static const std::vector<std::vector<double>> tables = {
      {256}, {64, 128, 64}, {16, 64, 96, 64, 16}, {8, 28, 56, 72, 56, 28, 8}, {4, 13, 30, 51, 60, 51, 30, 13, 4}};
  const int middle = taps / 2;
  std::vector<double> exact(taps);
  if (sigma <= 0 && middle < int(tables.size())) {
    for (int i = 0; i < taps; ++i) exact[i] = tables[middle][i] / 256;
  } else {
    if (sigma <= 0) sigma = sigma_of(taps);
    double sum = 0;
    for (int i = 0; i < taps; ++i) sum += exact[i] = std::exp(-double(i - middle) * (i - middle) / (2 * sigma * sigma));
    for (double& weight : exact) weight /= sum;
  }

  std::vector<std::int64_t> weights(taps);
  std::int64_t rest = std::int64_t(1) << bits;
  double error = 0;
  for (int i = 0; i < middle; ++i) {
    const double wanted = exact[i] * double(std::int64_t(1) << bits) + error;
    weights[i] = weights[taps - 1 - i] = std::int64_t(std::nearbyint(wanted));
    error = wanted - double(weights[i]);
    rest -= 2 * weights[i];
  }
  weights[middle] = rest;
  return weights;
}

Picture apply(const gaussian::Params& params, const Picture& src, const Region& region, Layout layout) {
  const int depth = src.format().depth, fraction = depth == 8 ? 16 : 32;
  return filtered(src, region, params.filter_alpha, layout, [&](const Grid& in, const Component& c) {
    const auto weights_x = axis(params.kernel_width, params.sigma_x, c.shift_x, depth);
    const auto weights_y = axis(params.kernel_height, params.sigma_y, c.shift_y, depth);
    const std::uint64_t outside = params.border_value[std::size_t(c.role)];
    const std::uint64_t one_axis = std::uint64_t(1) << fraction / 2;  // the sum of the weights of one axis
    std::vector<std::uint64_t> sums(in.values.begin(), in.values.end());
    sums = row_sums(sums, in.width, in.height, outside, weights_x, params.border);
    sums = row_sums(transposed(sums, in.width, in.height), in.height, in.width, outside * one_axis, weights_y,
                    params.border);
    sums = transposed(sums, in.height, in.width);
    Grid out(in.width, in.height);
    for (std::size_t i = 0; i < sums.size(); ++i)
      out.values[i] = int((sums[i] + (std::uint64_t(1) << (fraction - 1))) >> fraction);
    return out;
  });
}

}  // namespace cudavision::reference
