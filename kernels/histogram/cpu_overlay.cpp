// SPDX-License-Identifier: LGPL-2.1-or-later
#include <algorithm>
#include <vector>

#include "kernels/core/sample.hpp"
#include "kernels/histogram/aligned_overlay.hpp"
#include "kernels/histogram/arithmetic.hpp"

namespace cudavision::histogram {
namespace {

class CpuOverlay final : public AlignedOverlay {
 public:
  CpuOverlay(const OverlayPlan& plan, const Counting& histogram)
      : AlignedOverlay(Backend::cpu),
        plan_(plan),
        histogram_(histogram),
        heights_(std::size_t(plan.channels) * plan.position.width) {}

 private:
  Status draw(const Image& picture, Queue) override {
    const FormatInfo& format = info(plan_.geometry.format);
    set_heights();
    for (int i = 0; i < format.set_count; ++i) {
      if (format.sample_bytes() == 1)
        draw_set<std::uint8_t>(format.sets[i], picture);
      else
        draw_set<std::uint16_t>(format.sets[i], picture);
    }
    return {};
  }

  void set_heights() {
    const int width = plan_.position.width;
    for (int c = 0; c < plan_.channels; ++c) {
      const std::uint32_t* counts = histogram_.latest() + std::size_t(c) * plan_.bins;
      const std::uint32_t largest = *std::max_element(counts, counts + plan_.bins);
      for (int x = 0; x < width; ++x) {
        const int begin = first_bin(x, plan_.bins, width),
                  end = std::max(begin + 1, first_bin(x + 1, plan_.bins, width));
        heights_[std::size_t(c) * width + x] = std::uint16_t(
            bar_height(*std::max_element(counts + begin, counts + end), largest, plan_.position.height, plan_.log));
      }
    }
  }

  template <typename T>
  void draw_set(const ChannelSet& set, const Image& picture) const {
    const FormatInfo& format = info(plan_.geometry.format);
    const int shift = format.shift, max_value = format.max_value();
    const Rect rect = overlay_rect(plan_, set);
    const Plane& plane = picture.planes[set.plane];
    for (int y = rect.y; y < rect.y + rect.height; ++y) {
      T* row = reinterpret_cast<T*>(static_cast<unsigned char*>(plane.data) + y * plane.pitch);
      for (int x = rect.x; x < rect.x + rect.width; ++x) {
        const unsigned covering = covering_bars(plan_, heights_.data(), (x << set.shift_x) - plan_.position.x,
                                                (y << set.shift_y) - plan_.position.y);
        for (int c = 0; c < set.channels; ++c) {
          T& sample = row[x * set.channels + c];
          if (is_color(set.roles[c]))
            sample = T(overlaid(plan_, sample_of(sample, shift, max_value), int(set.roles[c]), covering) << shift);
        }
      }
    }
  }

  const OverlayPlan plan_;
  const Counting& histogram_;
  std::vector<std::uint16_t> heights_;
};

}  // namespace

Result<std::unique_ptr<Overlay>> make_overlay_cpu(OverlayPlan plan, const Counting& histogram) {
  return std::unique_ptr<Overlay>(std::make_unique<CpuOverlay>(plan, histogram));
}

}  // namespace cudavision::histogram
