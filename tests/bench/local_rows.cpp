// SPDX-License-Identifier: LGPL-2.1-or-later
#include "kernels/local/local.hpp"
#include "tests/bench/rows.hpp"

namespace cudavision::bench {
namespace {

Row local(std::string name, local::Operation operation, int radius, Format format) {
  local::Params params;
  params.operation = operation;
  params.radius = radius;
  params.search_radius = 5;
  Row row{std::move(name), format,
          filter([=](const Geometry& geometry, Backend backend) { return local::make(params, geometry, backend); })};
  return row;
}

}  // namespace

std::vector<Row> local_rows() {
  std::vector<Row> list;
  for (Format format : {Format::GRAY8, Format::NV12})
    for (int radius : {3, 63})
      list.push_back(local("box-mean-r" + std::to_string(radius), local::Operation::box_mean, radius, format));
  list.push_back(local("threshold-r15", local::Operation::threshold, 15, Format::NV12));
  list.push_back(local("deviation-r15", local::Operation::deviation, 15, Format::GRAY8));
  for (int radius : {1, 7})
    list.push_back(local("nlm-r" + std::to_string(radius) + "-s5", local::Operation::nlm, radius, Format::GRAY8));
  return list;
}

}  // namespace cudavision::bench
