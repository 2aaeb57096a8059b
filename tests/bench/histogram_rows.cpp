// SPDX-License-Identifier: LGPL-2.1-or-later
#include "kernels/histogram/histogram.hpp"
#include "tests/bench/rows.hpp"

namespace cudavision::bench {
namespace {

/// `read`: the share of the picture's bytes that the histogram reads.
Row histogram(std::string name, HistogramChannels channels, int bins, Format format, double read = 1, double must = 0) {
  HistogramParams params;
  params.bins = bins;
  params.channels = channels;
  Row row{std::move(name), format,
          [=](const Geometry& geometry, Backend backend) -> Result<std::function<Status(const Slot&, Queue)>> {
            auto plan = make_histogram(params, geometry, backend);
            if (!plan.ok()) return plan.error();
            return std::function<Status(const Slot&, Queue)>(
                [counter = std::shared_ptr<Histogram>(std::move(plan.value()))](const Slot& slot, Queue queue) {
                  return counter->submit(slot.src, Region{}, queue);
                });
          }};
  row.moved = read;
  row.must = must;
  if (bins == 256 && format == Format::GRAY8) row.peer = {"histogram", 1, {1}, true};
  return row;
}

Row equalize(Format format) {
  Row row{"equalize", format,
          filter([](const Geometry& geometry, Backend backend) { return make_equalize(LumaMatrix::bt601, geometry, backend); })};
  row.moved = 3;  // read to count, then read and written
  return row;
}

}  // namespace

std::vector<Row> histogram_rows() {
  std::vector<Row> list;
  list.push_back(histogram("histogram", HistogramChannels::luma, 256, Format::GRAY8, 1, 2.0));
  list.push_back(histogram("histogram", HistogramChannels::luma, 256, Format::NV12, 2 / 3.0));
  list.push_back(histogram("histogram-components", HistogramChannels::components, 256, Format::NV12));
  for (Format format : {Format::RGBA, Format::RGB}) list.push_back(histogram("histogram", HistogramChannels::luma, 256, format));
  list.push_back(histogram("histogram-components", HistogramChannels::components, 256, Format::RGBA));
  list.push_back(histogram("histogram-1024", HistogramChannels::luma, 1024, Format::P010_10LE, 2 / 3.0));
  list.push_back(histogram("histogram-65536", HistogramChannels::luma, 65536, Format::GRAY16_LE));
  for (Format format : {Format::GRAY8, Format::RGBA, Format::NV12}) list.push_back(equalize(format));
  return list;
}

}  // namespace cudavision::bench
