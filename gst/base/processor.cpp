// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gst/base/processor.hpp"

namespace cudavision {
namespace {

class FilterProcessor : public Processor {
 public:
  explicit FilterProcessor(std::unique_ptr<Filter> filter) : filter_(std::move(filter)) {}

  bool reads_results() const override { return false; }

  Status submit(const FrameJob& job) override { return filter_->submit(job.src, *job.dst, job.region, job.queue); }

 private:
  const std::unique_ptr<Filter> filter_;
};

}  // namespace

std::unique_ptr<Processor> filter_processor(std::unique_ptr<Filter> filter) {
  return std::make_unique<FilterProcessor>(std::move(filter));
}

GstStructure* new_message(const char* name, const FrameTimes& times) {
  return gst_structure_new(name, "timestamp", G_TYPE_UINT64, times.timestamp, "stream-time", G_TYPE_UINT64,
                           times.stream_time, "running-time", G_TYPE_UINT64, times.running_time, "duration",
                           G_TYPE_UINT64, times.duration, nullptr);
}

void post_message(GstElement* element, GstStructure* structure) {
  gst_element_post_message(element, gst_message_new_element(GST_OBJECT(element), structure));
}

}  // namespace cudavision
