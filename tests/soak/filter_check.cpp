// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tests/soak/filter_check.hpp"

#include <algorithm>

namespace cudavision::soak {
namespace {

std::string text(gint64 number) { return std::to_string(number); }

/// Calls f for all versions between `low` and `high`, for each stage independently.
template <typename F>
void each_between(const std::vector<int>& low, const std::vector<int>& high, F&& f) {
  std::vector<int> versions = high;
  for (;;) {
    f(versions);
    std::size_t i = 0;
    while (i < versions.size() && versions[i] == low[i]) {
      versions[i] = high[i];
      ++i;
    }
    if (i == versions.size()) return;
    --versions[i];
  }
}

bool at_least(const std::vector<int>& a, const std::vector<int>& b) {
  for (std::size_t i = 0; i < a.size(); ++i)
    if (a[i] < b[i]) return false;
  return true;
}

}  // namespace

Outlet::Outlet(Report& report, const Stream& stream, std::mutex& mutex, std::vector<History*> stages)
    : report_(report),
      stream_(stream),
      mutex_(mutex),
      stages_(std::move(stages)),
      possible_{Versions(stages_.size(), 0)} {}

void Outlet::flushed() {
  const std::lock_guard<std::mutex> lock(mutex_);
  while (!entries_.empty()) {
    const bool found = entries_.front().type == Entry::Type::flush;
    entries_.pop_front();
    if (found) return;
  }
  report_.fail("a flush came out that did not go in");
}

void Outlet::eos() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!entries_.empty() && entries_.front().type == Entry::Type::eos) return entries_.pop_front();
  report_.fail(entries_.empty() ? "EOS came out that did not go in"
                                : "EOS overtook frame " + text(gint64(entries_.front().n)));
}

void Outlet::take(GstBuffer* buffer, const GstVideoInfo& video, GstClockTime time) {
  report_.deliver();
  Entry entry{};
  Versions newest;
  std::vector<Versions> oldest;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const std::string came = "frame " + text(gint64(number_of(GST_BUFFER_PTS(buffer))));
    if (entries_.empty()) return report_.fail(came + " came out again, or never went in");
    entry = entries_.front();
    if (entry.type != Entry::Type::frame) return report_.fail(came + " came out instead of EOS or a flush");
    entries_.pop_front();
    if (GST_BUFFER_PTS(buffer) != entry.n * frame_time)
      return report_.fail(came + " came out instead of " + text(gint64(entry.n)));
    if (time != entry.time)
      report_.fail(came + " has running time " + text(gint64(time)) + " instead of " + text(gint64(entry.time)));
    oldest = possible_;
    for (std::size_t i = 0; i < stages_.size(); ++i) {
      newest.push_back(stages_[i]->newest());
      for (Versions& low : oldest) low[i] = stages_[i]->oldest(low[i], entry.serial);
    }
  }
  const GstVideoInfo& sent = stream_.video(stream_.caps_at(entry.n));
  if (GST_VIDEO_INFO_FORMAT(&video) != GST_VIDEO_INFO_FORMAT(&sent) || video.width != sent.width ||
      video.height != sent.height)
    return report_.fail("frame " + text(gint64(entry.n)) + " has the caps of another one");
  const auto samples = streams::samples_of(buffer, video);
  if (!samples) return report_.fail("frame " + text(gint64(entry.n)) + " does not hold the picture of its caps");
  if (report_.spoils()) return report_.fail("frame " + text(gint64(entry.n)) + " is wrong: the fault that was put in");
  compare(entry, *samples, newest, oldest);
}

void Outlet::compare(const Entry& entry, const std::string& samples, const Versions& newest,
                     const std::vector<Versions>& oldest) {
  std::vector<Versions> fitting;
  for (const Versions& low : oldest)
    each_between(low, newest, [&](const Versions& versions) {
      std::vector<int> settings;
      for (std::size_t i = 0; i < versions.size(); ++i) settings.push_back(stages_[i]->setting(versions[i]));
      if (expected(entry, settings).samples == samples) fitting.push_back(versions);
    });
  if (fitting.empty()) {
    possible_ = {newest};
    return report_.fail("frame " + text(gint64(entry.n)) + " is wrong: " + explain(entry, samples));
  }
  possible_.clear();
  for (const Versions& candidate : fitting)
    if (std::none_of(fitting.begin(), fitting.end(),
                     [&](const Versions& other) { return other != candidate && at_least(candidate, other); }) &&
        std::find(possible_.begin(), possible_.end(), candidate) == possible_.end())
      possible_.push_back(candidate);
}

const Outlet::Expected& Outlet::expected(const Entry& entry, const std::vector<int>& settings) {
  const int caps = stream_.caps_at(entry.n);
  const auto wrapped = [&](gint64 n) { return Buffer(wrap(stream_.at(guint64(n)))); };
  std::string key = text(caps) + "/" + text(stream_.picture_at(entry.n));
  if (entry.previous >= 0) key += "-" + text(stream_.picture_at(guint64(entry.previous)));
  std::string whole_key = key;
  for (const int setting : settings) whole_key += "|" + text(setting);
  if (const Expected* known = known_.find(whole_key)) return *known;
  if (settings.empty()) {  // the twin, whose elements do nothing
    Expected made;
    made.samples = streams::samples_of(wrapped(gint64(entry.n)).get(), stream_.video(caps)).value_or("");
    return *known_.add(key, std::move(made), GST_VIDEO_INFO_SIZE(&stream_.video(caps)));
  }
  const Expected* result = nullptr;
  for (std::size_t i = 0; i < stages_.size(); ++i) {
    key += "|" + text(settings[i]);
    if (const Expected* known = known_.find(key)) {
      result = known;
      continue;
    }
    auto& reference = references_[{int(i), settings[i]}];
    const Kind& kind = stages_[i]->kind();
    if (!reference)
      reference = std::make_unique<FilterReference>(kind.factory, kind.settings[std::size_t(settings[i])]);
    const Buffer first = i == 0 ? wrapped(gint64(entry.n)) : nullptr;
    const Buffer previous = i == 0 && entry.previous >= 0 ? wrapped(entry.previous) : nullptr;
    const Buffer frame =
        reference->apply(stream_.video(caps), previous.get(), i == 0 ? first.get() : result->frame.get());
    if (!frame)
      g_error("the reference %s with %s gives no picture", kind.factory.c_str(),
              kind.settings[std::size_t(settings[i])].c_str());
    Expected made{Buffer(gst_buffer_copy_deep(frame.get())), {}};
    if (i + 1 == stages_.size()) {
      made.samples = streams::samples_of(made.frame.get(), stream_.video(caps)).value_or("");
      made.frame.reset();
    }
    result = known_.add(key, std::move(made), GST_VIDEO_INFO_SIZE(&stream_.video(caps)));
  }
  return *result;
}

std::string Outlet::explain(const Entry& entry, const std::string& samples) {
  std::vector<int> low(stages_.size(), 0), high, settings;
  for (const History* stage : stages_) {
    high.push_back(int(stage->kind().settings.size()) - 1);
    settings.push_back(stage->setting(stage->newest()));
  }
  std::string found;
  each_between(low, high, [&](const std::vector<int>& tried) {
    if (!found.empty() || expected(entry, tried).samples != samples) return;
    found = "it is the picture of settings";
    for (const int setting : tried) found += " " + text(setting);
    found += ", and the newest are";
    for (const int setting : settings) found += " " + text(setting);
  });
  if (!found.empty()) return found;
  return "with the newest settings, " + difference(samples, expected(entry, settings).samples, 0);
}

}  // namespace cudavision::soak
