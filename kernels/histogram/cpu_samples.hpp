// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "kernels/core/sample.hpp"
#include "kernels/histogram/plan.hpp"

namespace cudavision::histogram {

/// One row of samples of a channel.
template <typename T>
struct SampleRow {
  const T* row;
  int step, shift, max_value;
  int operator[](int x) const { return sample_of(row[x * step], shift, max_value); }
};

/// The samples of a channel of a frame.
struct Samples {
  const unsigned char* data = nullptr;
  std::ptrdiff_t pitch = 0;
  int step = 1, shift = 0, max_value = 0;

  template <typename T>
  SampleRow<T> row(int y) const {
    return {reinterpret_cast<const T*>(data + y * pitch), step, shift, max_value};
  }
};

/// The samples with this role; none if the format does not have it.
inline Samples samples_of(const Image& image, Role role) {
  const FormatInfo& format = info(image.geometry.format);
  for (int i = 0; i < format.set_count; ++i) {
    const ChannelSet& set = format.sets[i];
    for (int c = 0; c < set.channels; ++c)
      if (set.roles[c] == role)
        return {static_cast<const unsigned char*>(image.planes[set.plane].data) + c * format.sample_bytes(),
                image.planes[set.plane].pitch, set.channels, format.shift, format.max_value()};
  }
  return {};
}

}  // namespace cudavision::histogram
