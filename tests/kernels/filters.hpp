// SPDX-License-Identifier: LGPL-2.1-or-later
// Functions that the templates of harness.hpp call for gaussian and convolve. Include this file before harness.hpp.
#pragma once

#include <sstream>
#include <string>

#include "tests/kernels/reference/convolve.hpp"
#include "tests/kernels/reference/gaussian.hpp"

namespace cudavision::test {

inline int tolerance(const gaussian::Params&, Format) { return 0; }
inline int tolerance(const convolve::Params& params, Format format) { return reference::tolerance(params, format); }

inline std::string describe(Border border, const BorderValue& value) {
  std::ostringstream text;
  text << " border=" << borders[std::size_t(border)].nick << " border_value=";
  for (int sample : value) text << sample << ' ';
  return text.str();
}

inline std::string describe(const gaussian::Params& p) {
  std::ostringstream text;
  text << "gaussian taps " << p.kernel_width << "x" << p.kernel_height << " sigma " << p.sigma_x << ", " << p.sigma_y
       << describe(p.border, p.border_value) << "filter_alpha=" << p.filter_alpha;
  return text.str();
}

inline std::string describe(const convolve::Params& p) {
  std::ostringstream text;
  text << "convolve preset=" << convolve::presets().at(std::size_t(p.preset)).nick << " kernel " << p.kernel_width
       << "x" << p.kernel_height << " divisor=" << p.divisor << " bias=" << p.bias << " absolute=" << p.absolute
       << " anchor=" << p.anchor_x << "," << p.anchor_y << " flip=" << p.flip << describe(p.border, p.border_value)
       << "filter_alpha=" << p.filter_alpha << " weights";
  for (std::size_t i = 0; i < p.weights.size() && i < 49; ++i) text << ' ' << p.weights[i];
  if (p.weights.size() > 49) text << " …";
  return text.str();
}

}  // namespace cudavision::test
