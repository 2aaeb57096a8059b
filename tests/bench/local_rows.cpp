// SPDX-License-Identifier: LGPL-2.1-or-later
#include "kernels/local/local.hpp"
#include "tests/bench/rows.hpp"

namespace cudavision::bench {
namespace {

Row local(std::string name, local::Operation operation, int radius, Format format, const Region& region = {},
          int search_radius = 5) {
  local::Params params;
  params.operation = operation;
  params.radius = radius;
  params.search_radius = search_radius;
  const auto make = [=](const Geometry& geometry, Backend backend) { return local::make(params, geometry, backend); };
  Row row{std::move(name), format, filter(make, region)};
  if (operation == local::Operation::box_mean && radius <= 15) row.peer = {"box", 2 * radius + 1};
  if (operation == local::Operation::box_mean || operation == local::Operation::threshold)
    row.must = format == Format::GRAY8 ? 2.5 : format == Format::NV12 ? 3 : 0;
  if (operation == local::Operation::deviation && format == Format::GRAY8) row.must = 4;
  if (operation != local::Operation::nlm) row.must_us_1080p = 15;
  if (operation == local::Operation::nlm && format == Format::GRAY8)
    row.must_us = radius == 1 ? 5000 : radius == 7 ? 9000 : 0;
  return row;
}

/// Twenty regions of 40×50 to 97×107 pixels, in a frame of 1280×720 or larger.
Region faces(bool ellipses) {
  Region region{Region::Mode::inside};
  for (int i = 0; i < 20; ++i)
    (ellipses ? region.ellipses : region.rects).push_back({20 + i % 5 * 240, 15 + i / 5 * 170, 40 + 3 * i, 50 + 3 * i});
  return region;
}

}  // namespace

std::vector<Row> local_rows() {
  std::vector<Row> list;
  for (Format format : {Format::GRAY8, Format::NV12})
    for (int radius : {3, 63, 500})
      list.push_back(local("box-mean-r" + std::to_string(radius), local::Operation::box_mean, radius, format));
  // for the plot of time against radius, and for peers
  for (int radius : {7, 15})
    list.push_back(local("box-mean-r" + std::to_string(radius), local::Operation::box_mean, radius, Format::GRAY8));
  list.push_back(local("threshold-r15", local::Operation::threshold, 15, Format::GRAY8));
  list.push_back(local("pixelate-r7", local::Operation::pixelate, 7, Format::NV12));
  list.push_back(local("pixelate-20-rects", local::Operation::pixelate, 0, Format::NV12, faces(false)));
  list.push_back(local("pixelate-20-ellipses", local::Operation::pixelate, 0, Format::NV12, faces(true)));
  for (int radius : {15, 63}) {
    list.push_back(local("threshold-r" + std::to_string(radius), local::Operation::threshold, radius, Format::NV12));
    list.push_back(local("deviation-r" + std::to_string(radius), local::Operation::deviation, radius, Format::GRAY8));
  }
  for (Format format : {Format::RGBA, Format::RGB, Format::GRAY16_LE, Format::P010_10LE, Format::YUY2})
    list.push_back(local("box-mean-r15", local::Operation::box_mean, 15, format));
  for (Format format : {Format::RGBA, Format::P010_10LE, Format::YUY2})
    list.push_back(local("threshold-r15", local::Operation::threshold, 15, format));
  for (Format format : {Format::RGBA, Format::GRAY16_LE})
    list.push_back(local("deviation-r15", local::Operation::deviation, 15, format));
  for (int radius : {1, 3, 7})
    list.push_back(local("nlm-r" + std::to_string(radius) + "-s5", local::Operation::nlm, radius, Format::GRAY8));
  for (Format format : {Format::NV12, Format::RGB, Format::P010_10LE, Format::GRAY16_LE})
    list.push_back(local("nlm-r7-s5", local::Operation::nlm, 7, format));
  // the defaults
  list.push_back(local("nlm-r7-s10", local::Operation::nlm, 7, Format::NV12, {}, local::Params().search_radius));
  return list;
}

}  // namespace cudavision::bench
