// SPDX-License-Identifier: LGPL-2.1-or-later
#include "kernels/blend/blend.hpp"
#include "tests/bench/rows.hpp"

namespace cudavision::bench {
namespace {

/// `cells` pads that show the current picture, over the picture of `diff_interval` frames before, which fills the output.
Row blend(const std::string& name, Format format, double moved, double must, int cells, std::function<void(BlendPad&)> set) {
  struct State {
    std::unique_ptr<Blend> plan;
    std::vector<Image> past;
    std::vector<BlendPad> pads;
  };
  Row row{"blend-" + name, format,
          [=](const Geometry& geometry, Backend backend) -> Result<std::function<Status(const Slot&, Queue)>> {
            auto plan = make_blend(geometry, {}, backend);
            if (!plan.ok()) return plan.error();
            const auto state = std::make_shared<State>();
            state->plan = std::move(plan.value());
            state->pads.resize(std::size_t(cells) + 1);
            state->pads[0].place = {0, 0, geometry.width, geometry.height};
            state->pads[0].op = BlendOperator::source;
            const std::vector<Rect> places = grid_layout(cells, 0, 0, 0, geometry.width, geometry.height);
            for (int i = 0; i < cells; ++i) {
              state->pads[i + 1].place = places[i];
              set(state->pads[i + 1]);
            }
            return std::function<Status(const Slot&, Queue)>([state](const Slot& slot, Queue queue) {
              state->past.push_back(slot.src);
              state->pads[0].src = state->past.front();
              for (std::size_t i = 1; i < state->pads.size(); ++i) state->pads[i].src = slot.src;
              if (state->past.size() > diff_interval) state->past.erase(state->past.begin());
              return state->plan->submit(slot.dst, {}, state->pads, queue);
            });
          }};
  row.moved = moved;
  row.must = must;
  return row;
}

}  // namespace

std::vector<Row> blend_rows() {
  std::vector<Row> list;
  for (Format format : {Format::GRAY8, Format::NV12, Format::RGBA}) {
    list.push_back(blend("over", format, 3, 1.15, 1, [](BlendPad& p) { p.alpha = 0.65; }));
    if (format == Format::RGBA) list.back().peer = {"alphacomp"};
    list.push_back(blend("average", format, 3, 1.15, 1, [](BlendPad& p) { p.op = BlendOperator::average, p.alpha = 0.65; }));
    list.push_back(blend("key", format, 3, 1.15, 1, [](BlendPad& p) {
      p.op = BlendOperator::average, p.alpha = 0.65;
      p.key.mode = BlendKey::Mode::first_pixel, p.key.tolerance = 10;
    }));
    list.push_back(blend("multiply", format, 3, 0, 1, [](BlendPad& p) { p.op = BlendOperator::multiply; }));
    list.push_back(blend("inset", format, 2, 0, 1, [](BlendPad& p) {
      p.place = {p.place.width / 2 + 1, p.place.height / 2 + 1, p.place.width / 3, p.place.height / 3};
    }));
    list.push_back(blend("grid-9", format, 2, 0, 9, [](BlendPad& p) { p.interpolation = Interpolation::area; }));
    list.push_back(blend("grid-63", format, 2, 0, 63, [](BlendPad&) {}));
  }
  return list;
}

}  // namespace cudavision::bench
