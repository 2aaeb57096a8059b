// SPDX-License-Identifier: LGPL-2.1-or-later
#include "kernels/histogram/histogram.hpp"
#include "kernels/histogram/sharpness.hpp"
#include "tests/bench/rows.hpp"

namespace cudavision::bench {
namespace {

/// `read`: the share of the picture's bytes that the histogram reads.
Row histogram(std::string name, histogram::Channels channels, int bins, Format format, double read = 1,
              double must = 0) {
  histogram::Params params;
  params.bins = bins;
  params.channels = channels;
  Row row{
      std::move(name), format,
      operation([=](const Geometry& geometry, Backend backend) { return histogram::make(params, geometry, backend); },
                [](histogram::Histogram& plan, const Slot& slot, Queue queue) {
                  return plan.submit(slot.src, Region{}, queue);
                })};
  row.moved = read;
  row.must = must;
  if (bins == 256 && format == Format::GRAY8) row.peer = {"histogram", 1, {1}, true}, row.all_sizes = true;
  return row;
}

/// `luma`: the share of luma in the picture's bytes. With `compare`, a copy of the luma is also read and written.
Row sharpness(Format format, double luma, bool compare) {
  histogram::SharpnessParams params;
  params.compare = compare;
  Row row{compare ? "sharpness-compare" : "sharpness", format,
          operation([=](const Geometry& geometry,
                        Backend backend) { return histogram::make_sharpness(params, geometry, backend); },
                    [](histogram::Sharpness& plan, const Slot& slot, Queue queue) {
                      return plan.submit(slot.src, Region{}, queue);
                    })};
  row.moved = luma * (compare ? 3 : 1);
  return row;
}

Row equalize(Format format) {
  Row row{"equalize", format, filter([](const Geometry& geometry, Backend backend) {
            return histogram::make_equalize(LumaMatrix::bt601, geometry, backend);
          })};
  row.moved = 3;  // read to count, then read and written
  row.must = 2.0;
  return row;
}

}  // namespace

std::vector<Row> histogram_rows() {
  std::vector<Row> list;
  list.push_back(histogram("histogram", histogram::Channels::luma, 256, Format::GRAY8, 1, 1.5));
  list.push_back(histogram("histogram", histogram::Channels::luma, 256, Format::NV12, 2 / 3.0));
  list.push_back(histogram("histogram-components", histogram::Channels::components, 256, Format::NV12));
  for (Format format : {Format::RGBA, Format::RGB})
    list.push_back(histogram("histogram", histogram::Channels::luma, 256, format, 1, 1.6));
  list.push_back(histogram("histogram-components", histogram::Channels::components, 256, Format::RGBA));
  list.push_back(histogram("histogram-1024", histogram::Channels::luma, 1024, Format::P010_10LE, 2 / 3.0));
  list.push_back(histogram("histogram-65536", histogram::Channels::luma, 65536, Format::GRAY16_LE, 1, 3.0));
  for (Format format : {Format::GRAY8, Format::RGBA, Format::NV12}) list.push_back(equalize(format));
  for (bool compare : {false, true}) {
    list.push_back(sharpness(Format::GRAY8, 1, compare));
    list.push_back(sharpness(Format::NV12, 2 / 3.0, compare));
  }
  list.push_back(sharpness(Format::RGBA, 1, false));
  list.push_back(sharpness(Format::P010_10LE, 2 / 3.0, false));
  return list;
}

}  // namespace cudavision::bench
