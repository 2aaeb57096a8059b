// SPDX-License-Identifier: LGPL-2.1-or-later
#include "kernels/blend/blend.hpp"
#include "tests/bench/rows.hpp"

namespace cudavision::bench {
namespace {

/// `cells` pads show the current picture over the picture of `diff_interval` frames ago, which fills the output.
Row blend(const std::string& name, Format format, double must, int cells, std::function<void(blend::Pad&)> set) {
  struct Work {
    std::unique_ptr<blend::Blend> plan;
    std::vector<Image> past = {};
    std::vector<blend::Pad> pads = {};
  };
  const auto make = [=](const Geometry& geometry, Backend backend) -> Result<std::unique_ptr<Work>> {
    auto plan = blend::make(geometry, {}, backend);
    if (!plan.ok()) return plan.error();
    auto work = std::make_unique<Work>(Work{std::move(plan.value())});
    work->pads.resize(std::size_t(cells) + 1);
    work->pads[0].place = {0, 0, geometry.width, geometry.height};
    work->pads[0].op = blend::Operator::source;
    const std::vector<Rect> places = blend::grid_layout(cells, 0, 0, 0, geometry.width, geometry.height);
    for (int i = 0; i < cells; ++i) {
      work->pads[i + 1].place = places[i];
      set(work->pads[i + 1]);
    }
    return work;
  };
  const auto submit = [](Work& work, const Slot& slot, Queue queue) {
    work.past.push_back(slot.src);
    work.pads[0].src = work.past.front();
    for (std::size_t i = 1; i < work.pads.size(); ++i) work.pads[i].src = slot.src;
    if (work.past.size() > diff_interval) work.past.erase(work.past.begin());
    return work.plan->submit(slot.dst, {}, work.pads, queue);
  };
  Row row{"blend-" + name, format, operation(make, submit)};
  row.moved = 3;
  row.must = must;
  return row;
}

/// `cells` scaled pictures. Their limits are times for GRAY8, NV12 and RGBA. `background`: the part of the output that
/// they leave free. The moved bytes are the pictures, the whole output, and this part.
Row scaled(const std::string& name, Format format, std::array<double, 3> must_us, int cells, double background,
           std::function<void(blend::Pad&)> set) {
  Row row = blend(name, format, 0, cells, std::move(set));
  row.moved = cells + background + 1;
  row.must_us = must_us[format == Format::GRAY8 ? 0 : format == Format::NV12 ? 1 : 2];
  row.must_us_1080p = 15;
  return row;
}

}  // namespace

std::vector<Row> blend_rows() {
  std::vector<Row> list;
  for (Format format : {Format::GRAY8, Format::NV12, Format::RGBA}) {
    list.push_back(blend("over", format, 1.1, 1, [](blend::Pad& p) { p.alpha = 0.65; }));
    if (format == Format::RGBA) list.back().peer = {"alphacomp"};
    list.push_back(
        blend("average", format, 1.1, 1, [](blend::Pad& p) { p.op = blend::Operator::average, p.alpha = 0.65; }));
    list.push_back(blend("key", format, 1.1, 1, [](blend::Pad& p) {
      p.op = blend::Operator::average, p.alpha = 0.65;
      p.key.mode = blend::Key::Mode::first_pixel, p.key.tolerance = 10;
    }));
    const double multiply = format == Format::RGBA ? 1.2 : 1.5;
    list.push_back(blend("multiply", format, multiply, 1, [](blend::Pad& p) { p.op = blend::Operator::multiply; }));
    list.push_back(scaled("inset", format, {30.6, 43.5, 53.7}, 1, 8 / 9.0, [](blend::Pad& p) {
      p.place = {p.place.width / 2 + 1, p.place.height / 2 + 1, p.place.width / 3, p.place.height / 3};
    }));
    const auto by_area = [](blend::Pad& p) { p.interpolation = blend::Interpolation::area; };
    list.push_back(scaled("grid-9-area", format, {248, 450, 456}, 9, 0, by_area));
    list.push_back(scaled("grid-63", format, {91, 161, 210}, 63, 0, [](blend::Pad&) {}));
  }
  return list;
}

}  // namespace cudavision::bench
