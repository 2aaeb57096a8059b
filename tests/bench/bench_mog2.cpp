// SPDX-License-Identifier: LGPL-2.1-or-later
// Compares the mixtures of Gaussians of the CPU backend with OpenCV's cv::BackgroundSubtractorMOG2, on the same frames,
// in one process and with the same number of threads.
//
//   bench_mog2 [--turns=N]
//
// The frames are a synthetic scene, played forwards and backwards: a textured picture with sensor noise, a swaying
// part, and moving blocks. Both models process each frame once, and take turns at going first. The first frames, in
// which the models start, do not count.
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <opencv2/imgproc.hpp>
#include <opencv2/video/background_segm.hpp>
#include <vector>

#include "kernels/diff/diff.hpp"

namespace {

using namespace cudavision;

constexpr int warm_up = 40;  ///< frames that are not counted

/// A repeatable scene of 24 frames in 8-bit BGR.
std::vector<cv::Mat> scene(const cv::Size& size) {
  cv::RNG random(7);
  cv::Mat still(size, CV_8UC3), coarse(size.height / 16 + 2, size.width / 16 + 2, CV_8UC3);
  random.fill(coarse, cv::RNG::UNIFORM, 20, 230);
  cv::resize(coarse, still, size, 0, 0, cv::INTER_CUBIC);
  std::vector<cv::Mat> frames;
  for (int i = 0; i < 24; ++i) {
    cv::Mat frame = still.clone(), noise(size, CV_16SC3);
    const cv::Rect trees(size.width / 8, size.height / 8, size.width / 4, size.height / 4);
    const int sway = int(std::lround(6 * std::sin(i * 2 * CV_PI / 24)));
    still(trees + cv::Point(sway, 0)).copyTo(frame(trees));
    for (int block = 0; block < 6; ++block) {
      const int side = size.height / 10, x = (block * 97 + i * size.width / 24) % (size.width - side);
      frame(cv::Rect(x, size.height * (block + 2) / 9, side, side)).setTo(cv::Scalar(40 * block, 255 - 40 * block, 30));
    }
    random.fill(noise, cv::RNG::NORMAL, 0, 2.5);
    cv::add(frame, noise, frame, cv::noArray(), CV_8U);
    frames.push_back(frame);
  }
  return frames;
}

struct Times {
  double least, median;  ///< ms per frame
};
Times times(std::vector<double> all) {
  std::sort(all.begin(), all.end());
  return {all.front(), all[all.size() / 2]};
}

/// Measures `turns` frames and prints a line. Returns false if a plan fails.
bool measure(const std::vector<cv::Mat>& frames, bool one_channel, bool shadows, int threads, int turns) {
  cv::setNumThreads(threads);
  const cv::Size size = frames[0].size();
  diff::Params params;
  params.reference = diff::Reference::mog2;
  params.output = diff::Output::none;
  params.open_radius = 0;
  params.light_change_ratio = 0;
  params.drop_shadows = shadows;
  const auto made =
      diff::make(params, {one_channel ? Format::GRAY8 : Format::BGR, size.width, size.height}, Backend::cpu);
  if (!made.ok()) return std::fprintf(stderr, "%s\n", made.error().message().c_str()), false;
  const auto theirs = cv::createBackgroundSubtractorMOG2(params.history, params.variance_threshold, shadows);

  std::vector<cv::Mat> inputs = frames;
  if (one_channel)
    for (cv::Mat& frame : inputs) cv::cvtColor(frames[std::size_t(&frame - inputs.data())], frame, cv::COLOR_BGR2GRAY);
  const int last = int(inputs.size()) - 1;
  std::vector<double> spent[2];
  cv::Mat mask;
  double foreground[2] = {};
  for (int i = 0; i < warm_up + turns; ++i) {
    cv::Mat& frame = inputs[std::size_t(std::abs(i % (2 * last) - last))];
    for (const bool ours : {i % 2 == 0, i % 2 != 0}) {
      const auto start = std::chrono::steady_clock::now();
      if (ours) {
        Image image{{one_channel ? Format::GRAY8 : Format::BGR, size.width, size.height}, {}};
        image.planes[0] = {frame.data, std::ptrdiff_t(frame.step)};
        if (const Status status = made.value()->submit(image, {}, {}); !status.ok())
          return std::fprintf(stderr, "%s\n", status.message().c_str()), false;
      } else {
        theirs->apply(frame, mask);
      }
      const double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
      if (i < warm_up) continue;
      spent[ours].push_back(ms);
      foreground[ours] += ours ? double(made.value()->result().changed) : cv::countNonZero(mask == 255);
    }
  }
  const Times we = times(spent[true]), they = times(spent[false]);
  std::printf(
      "%4dx%-4d %d channel%s shadows %-4s %d thread%s  ours %6.2f (least %6.2f)  theirs %6.2f (least %6.2f)  theirs ÷ "
      "ours "
      "%5.2f (least %5.2f)  foreground %.3f %% and %.3f %%\n",
      size.width, size.height, one_channel ? 1 : 3, one_channel ? " " : "s", shadows ? "drop" : "keep", threads,
      threads == 1 ? " " : "s", we.median, we.least, they.median, they.least, they.median / we.median,
      they.least / we.least, 100 * foreground[true] / double(size.area()) / turns,
      100 * foreground[false] / double(size.area()) / turns);
  std::fflush(stdout);
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  int turns = 60;
  if (argc > 2 || (argc == 2 && (std::sscanf(argv[1], "--turns=%d", &turns) != 1 || turns < 1)))
    return std::fprintf(stderr, "usage: %s [--turns=N]\n", argv[0]), 1;
  std::printf("# ms of a frame, median (least) of %d frames\n", turns);
  for (const cv::Size& size : {cv::Size(1280, 720), cv::Size(1920, 1080)}) {
    const std::vector<cv::Mat> frames = scene(size);
    for (const int threads : {1, 2})
      for (const bool one_channel : {true, false})
        for (const bool shadows : {false, true})
          if (!measure(frames, one_channel, shadows, threads, turns)) return 1;
  }
  return 0;
}
