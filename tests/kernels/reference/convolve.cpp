// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tests/kernels/reference/convolve.hpp"

#include <algorithm>
#include <cmath>

namespace cudavision::reference {
namespace {

struct Kernel {
  int width, height;
  double divisor;
  std::vector<double> weights, vertical;
};

Kernel kernel_of(const convolve::Params& params) {
  if (params.preset != convolve::Preset::custom) {
    const convolve::PresetInfo& preset = convolve::presets().at(std::size_t(params.preset));
    return {preset.width, preset.height, params.divisor != 0 ? params.divisor : preset.divisor, preset.weights,
            preset.vertical};
  }
  const int count = int(params.weights.size());
  int width = params.kernel_width, height = params.kernel_height;
  if (width == 0 && height == 0) width = height = int(std::lround(std::sqrt(count)));
  if (width == 0) width = count / height;
  if (height == 0) height = count / width;
  double sum = 0;
  for (double weight : params.weights) sum += weight;
  return {width, height, params.divisor != 0 ? params.divisor : sum != 0 ? sum : 1, params.weights, {}};
}

bool integers(const std::vector<double>& weights) {
  return std::all_of(weights.begin(), weights.end(), [](double w) { return w == std::rint(w); });
}

/// Σ weights·window, exact for integer weights, otherwise in long double.
class Sum {
 public:
  Sum(const std::vector<double>& weights, bool exact)
      : exact_(exact),
        integer_(exact ? weights.begin() : weights.end(), weights.end()),
        real_(weights.begin(), weights.end()) {}

  double operator()(const std::vector<int>& window) const {
    return exact_ ? double(total<__int128>(integer_, window)) : double(total<long double>(real_, window));
  }

 private:
  template <typename Total, typename Weight>
  static Total total(const std::vector<Weight>& weights, const std::vector<int>& window) {
    Total sum = 0;
    for (std::size_t i = 0; i < weights.size(); ++i) sum += Total(weights[i]) * window[i];
    return sum;
  }

  bool exact_;
  std::vector<long long> integer_;
  std::vector<double> real_;
};

}  // namespace

Picture apply(const convolve::Params& params, const Picture& src, const Region& region, Layout layout) {
  const Kernel kernel = kernel_of(params);
  const int ax = params.anchor_x < 0 ? kernel.width / 2 : params.anchor_x;
  const int ay = params.anchor_y < 0 ? kernel.height / 2 : params.anchor_y;
  const int max = src.format().max_value();
  const bool exact = integers(kernel.weights) && integers(kernel.vertical);
  const Sum sum(kernel.weights, exact), vertical(kernel.vertical, exact);

  return filtered(src, region, params.filter_alpha, layout, [&](const Grid& in, const Component& c) {
    const bool chroma = c.role == Role::cb || c.role == Role::cr;
    const int neutral = chroma ? (max + 1) / 2 : 0;
    const int outside = params.border_value[std::size_t(c.role)];
    // The index in the picture under kernel sample k: correlation moves with k, convolution against it.
    const auto reach = [&](int k, int anchor) { return params.flip ? anchor - k : k - anchor; };
    const auto leaves = [&](int at, int n, int size, int anchor) {
      return at + std::min(reach(0, anchor), reach(size - 1, anchor)) < 0 ||
             at + std::max(reach(0, anchor), reach(size - 1, anchor)) >= n;
    };
    Grid out(in.width, in.height);
    std::vector<int> window(kernel.weights.size()), columns(kernel.width);
    for (int x = 0; x < in.width; ++x) {
      for (int k = 0; k < kernel.width; ++k) columns[k] = extrapolate(x + reach(k, ax), in.width, params.border);
      for (int y = 0; y < in.height; ++y) {
        if (params.border == Border::fill || params.border == Border::copy) {
          if (leaves(x, in.width, kernel.width, ax) || leaves(y, in.height, kernel.height, ay)) {
            out.at(x, y) = params.border == Border::fill ? outside : in.at(x, y);
            continue;
          }
        }
        for (int j = 0; j < kernel.height; ++j) {
          const int row = extrapolate(y + reach(j, ay), in.height, params.border);
          for (int i = 0; i < kernel.width; ++i)
            window[std::size_t(j) * kernel.width + i] =
                (row < 0 || columns[i] < 0 ? outside : in.at(columns[i], row)) - neutral;
        }
        double value = sum(window) / kernel.divisor + (chroma ? 0 : params.bias);
        if (params.absolute && !chroma) value = std::fabs(value);
        if (!kernel.vertical.empty())
          value = chroma ? 0 : std::hypot(sum(window), vertical(window)) / std::fabs(kernel.divisor) + params.bias;
        out.at(x, y) = int(std::clamp(std::nearbyint(value + neutral), 0.0, double(max)));
      }
    }
    return out;
  });
}

int tolerance(const convolve::Params& params, Format format) {
  const Kernel kernel = kernel_of(params);
  if (integers(kernel.weights) && kernel.divisor == 1) return 0;
  return std::max(1, 1 << std::max(0, definition(format).depth - 12));
}

}  // namespace cudavision::reference
