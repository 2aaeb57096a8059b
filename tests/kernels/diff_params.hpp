// SPDX-License-Identifier: LGPL-2.1-or-later
// For the tests of differences: settings at random, plans, and frames that plans compare.
#pragma once

#include "tests/kernels/harness.hpp"
#include "tests/kernels/reference/diff.hpp"

namespace cudavision::test {

inline diff::Params random_params(Random& random, int width, int height) {
  diff::Params params = reference::without_light();
  params.reference = random.pick<diff::Reference>(
      {diff::Reference::previous, diff::Reference::first, diff::Reference::background, diff::Reference::median});
  params.interval = random.pick<int>({1, 1, 2, 3});
  params.learning_rate = random.pick<double>({-1, 0.5, 1, 0, 0.0001, 0.25});
  params.output = random.pick<diff::Output>(
      {diff::Output::difference, diff::Output::mask, diff::Output::overlay, diff::Output::none});
  params.mode = random.pick<diff::Mode>({diff::Mode::absolute, diff::Mode::signed_, diff::Mode::squared});
  params.analysis_scale = random.pick<int>({1, 1, 1, 2, 4, 8});
  params.threshold = random.pick<int>({15, 0, 3, 60, 254, 255});
  // 0 is another model.
  if (params.reference == diff::Reference::background && params.threshold == 0) params.threshold = 1;
  params.gain = random.pick<double>({1, 1, 0.5, 2.3, 17, 256, 0});
  params.luma_only = random.below(3) == 0;
  params.open_radius = random.pick<int>({0, 0, 1, 1, 2, 3, 7, 16});
  params.cell_size = random.pick<int>({16, 16, 4, 5, 8, 17, 32, 100, 1024});
  params.looks =
      random.pick<diff::Looks>({diff::Looks::all, diff::Looks::all, diff::Looks::extents, diff::Looks::none});
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

/// Submits a frame, waits, and returns the output.
inline Picture run(Backend backend, diff::Diff& plan, const Picture& src) {
  Job job(backend, src, src.inverted());
  const Status status = job.submit(work_of(plan));
  EXPECT_TRUE(status.ok()) << status.message();
  return job.finish();
}

}  // namespace cudavision::test
