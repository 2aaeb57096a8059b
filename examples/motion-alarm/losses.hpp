// SPDX-License-Identifier: LGPL-2.1-or-later
// Finds the unreadable frames of a file. ../losses.py has the same rules and explains them.
#pragma once

#include <gst/gst.h>

#include <deque>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

/// Compares the samples that enter a decoder with the frames that leave it. All times are pad times.
class Stream {
 public:
  Stream(bool ordered, bool skips) : ordered_(ordered) {
    if (skips) skipped();
  }

  struct Span {
    GstClockTime begin, end;  ///< stream times
    guint64 frames;
    bool about;  ///< the number is an estimate
  };

  void on_segment(const GstSegment& segment);
  void on_sample(GstPad* pad, GstBuffer* buffer);
  /// Whether a frame is good. Other frames must be dropped.
  bool on_frame(GstClockTime time);
  /// The decoder reports damage: everything is bad up to the next key frame.
  void damage();
  /// The demuxer reports that it skipped something.
  void skipped();
  std::vector<Span> finish(bool indexed, bool ended);

  guint64 good() const { return good_; }
  bool used = true;  ///< whether its frames are analysed

 private:
  void on_first(GstPad* pad);
  void note(GstClockTime passed);
  void judge(GstClockTime before, GstClockTime time, guint64 lost);
  void add(GstClockTime begin, GstClockTime end, guint64 frames, bool about);
  GstClockTime step();
  GstClockTime stream_time(GstClockTime time) const;

  static constexpr GstClockTime none = GST_CLOCK_TIME_NONE;
  bool ordered_, matched_ = true, hides_ = false, parsed_ = false, timeless_ = false, has_caps_ = false;
  gsize least_size_ = 1;
  guint64 samples_ = 0, good_ = 0, dropped_ = 0, head_ = 0;
  std::vector<GstClockTime> pending_;
  GstClockTime first_ = none, opened_ = none, last_ = none, good_from_ = none, latest_ = none, before_ = none;
  GstClockTime jump_ = 0, least_ = 0, usual_ = 0;
  std::deque<GstClockTime> steps_;
  bool bad_ = false, has_segment_ = false;
  int watch_ = 0;
  GstSegment segment_{};
  std::vector<Span> spans_;
};

/// Watches the decoders in an element such as a uridecodebin, starting when this object is constructed.
class Losses {
 public:
  /// single: software decoders have one thread each, so that it is known which one complains.
  Losses(GstElement* pipeline, GstElement* decoders, bool single);
  ~Losses();
  Losses(const Losses&) = delete;
  Losses& operator=(const Losses&) = delete;

  /// A readable sentence, once the pipeline has stopped. Empty if nothing was lost. whole: the file was played to its
  /// end. until: the stream time after which no frames are taken, so that demuxers skip them.
  std::string sentence(bool whole, std::optional<GstClockTime> until = {});

 private:
  struct Parser {
    Losses* losses;
    std::vector<GstBuffer*> early;  ///< before its decoder is known
    Stream* stream = nullptr;
  };
  struct Decoder {
    Losses* losses;
    Stream stream;
  };

  static void hear(GstDebugCategory* category, GstDebugLevel level, const gchar* file, const gchar* function, gint line,
                   GObject* object, GstDebugMessage* message, gpointer);
  void on_added(GstElement* element);
  void watch_parser(GstElement* element, GstPad* sink);
  void watch_decoder(GstPad* sink, GstPad* src);
  Parser* parser_of(GstPad* sink);
  void on_first(Decoder& decoder, GstPad* sink);

  GstElement *const pipeline_, *const decoders_;
  const bool single_;
  gulong handler_;
  std::mutex mutex_;
  bool indexed_ = false, ordered_ = true, skips_ = false;
  std::list<Decoder> streams_;
  std::map<GstElement*, Parser> parsers_;
  std::set<std::thread::id> threads_;
};
