// SPDX-License-Identifier: LGPL-2.1-or-later
// Random settings, plans and frames for the tests of differences.
#pragma once

#include <cstring>

#include "tests/kernels/harness.hpp"
#include "tests/kernels/reference/diff.hpp"

namespace cudavision::test {

using diff::Learning;
using diff::Looks;
using diff::Output;
using diff::Reference;

inline diff::Params params_of(Output output) {
  diff::Params params = reference::without_light();
  params.output = output;
  return params;
}
inline diff::Params params_of(Reference reference, Output output) {
  diff::Params params = params_of(output);
  params.reference = reference;
  return params;
}

inline diff::Params random_params(Random& random, int width, int height) {
  diff::Params params = reference::without_light();
  params.reference =
      random.pick<Reference>({Reference::previous, Reference::first, Reference::background, Reference::median});
  params.interval = random.pick<int>({1, 1, 2, 3});
  params.learning_rate = random.pick<double>({-1, 0.5, 1, 0, 0.0001, 0.25});
  params.output = random.pick<Output>({Output::difference, Output::mask, Output::overlay, Output::none});
  params.mode = random.pick<diff::Mode>({diff::Mode::absolute, diff::Mode::signed_, diff::Mode::squared});
  params.analysis_scale = random.pick<int>({1, 1, 1, 2, 4, 8});
  params.threshold = random.pick<int>({15, 0, 3, 60, 254, 255});
  // threshold 0 selects another model
  if (params.reference == Reference::background && params.threshold == 0) params.threshold = 1;
  params.gain = random.pick<double>({1, 1, 0.5, 2.3, 17, 256, 0});
  params.luma_only = random.below(3) == 0;
  params.open_radius = random.pick<int>({0, 0, 1, 1, 2, 3, 7, 16});
  params.cell_size = random.pick<int>({16, 16, 4, 5, 8, 17, 32, 100, 1024});
  params.looks = random.pick<Looks>({Looks::all, Looks::all, Looks::extents, Looks::none});
  params.cell_threshold = random.pick<double>({0, 0.2, 0.2, 0.5, 1});
  params.drop_shadows = random.below(2) == 0;
  params.shadow_threshold = random.pick<double>({0.5, 0.5, 0, 0.7, 1});
  params.light_change_ratio = random.pick<double>({0, 0, 0.6, 0.1, 0.0001, 1});
  for (int i = random.below(3) ? 0 : random.between(1, 3); i > 0; --i)
    params.mask_regions.push_back(
        {random.between(-3, width), random.between(-3, height), random.between(1, width), random.between(1, height)});
  if (random.below(16) == 0) params.mask_regions.push_back({-5, -5, 2147483647, 2147483647});  // everything
  return params;
}

inline std::unique_ptr<diff::Diff> plan_for(Backend backend, const diff::Params& params, const Geometry& geometry) {
  auto made = diff::make(params, geometry, backend);
  EXPECT_TRUE(made.ok()) << made.error().message();
  return made.ok() ? std::move(made.value()) : nullptr;
}

inline Work work_of(diff::Diff& plan) {
  return [&plan](const Image& src, const Image& dst, Queue queue) { return plan.submit(src, dst, queue); };
}

inline Picture run(Backend backend, diff::Diff& plan, const Picture& src) {
  Job job(backend, src, src.inverted());
  const Status status = job.submit(work_of(plan));
  EXPECT_TRUE(status.ok()) << status.message();
  return job.finish();
}

/// Both backends must find the same pictures, counts, looks and causes in the frames [begin, end). With `steers`, some
/// frames have cells with every learning decision.
template <typename PictureOf>
void expect_equal_backends(const diff::Params& params, const Geometry& geometry, int begin, int end,
                           const PictureOf& picture_of, bool steers = false) {
  const auto cpu = plan_for(Backend::cpu, params, geometry), cuda = plan_for(Backend::cuda, params, geometry);
  constexpr Learning choices[] = {Learning::usual, Learning::hold, Learning::take, Learning::steady};
  std::vector<Learning> decisions;
  for (std::size_t i = 0; steers && i < cpu->result().cells.changed.size(); ++i) decisions.push_back(choices[i % 4]);
  for (int frame = begin; frame < end; ++frame) {
    SCOPED_TRACE(reference::definition(geometry.format).name + (", frame " + std::to_string(frame)));
    if (frame == begin + (end - begin) * 2 / 3) cpu->steer(decisions), cuda->steer(decisions);
    if (frame == begin + (end - begin) * 5 / 6) cpu->steer({}), cuda->steer({});
    const Picture src = picture_of(frame);
    ASSERT_EQ(run(Backend::cpu, *cpu, src).sample_difference(run(Backend::cuda, *cuda, src), 0), "");
    const diff::FrameResult &x = cpu->result(), &y = cuda->result();
    ASSERT_EQ(x.cells.changed, y.cells.changed);
    for (std::size_t i = 0; params.looks != Looks::none && i < x.cells.changed.size(); ++i)
      if (x.cells.changed[i] > 0) {
        ASSERT_EQ(std::memcmp(&x.cells.looks.at(i), &y.cells.looks.at(i), sizeof(diff::CellLooks)), 0) << "cell " << i;
      }
    ASSERT_EQ(x.mean_difference, y.mean_difference);
    ASSERT_EQ(x.compared, y.compared);
    ASSERT_EQ(x.cause, y.cause);
    ASSERT_EQ(std::pair(x.moved_x, x.moved_y), std::pair(y.moved_x, y.moved_y));
  }
}

}  // namespace cudavision::test
