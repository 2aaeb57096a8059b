// SPDX-License-Identifier: LGPL-2.1-or-later
// Facts about each filter for the tests that run on all filters.
#pragma once

#include <string>
#include <vector>

namespace cudavision::test {

/// One filter element. Every filter needs a row; otherwise a test in shared_test.cpp fails.
struct Profile {
  std::string element;
  std::string needs;  ///< settings without which it does not work; empty: none
  /// Settings of the same properties, separated by one space. One or two of them differ, and all combinations give
  /// different pictures for GRAY8, NV12 and RGBA.
  std::string first, second;
  /// A property of type double for a GstControlSource; it accepts all values between `from` and `to`. Empty: none.
  std::string controlled;
  double from = 0, to = 0;     ///< the values of `controlled` at the start and the end
  std::string passing{};       ///< settings for passthrough, where frames stay untouched; empty: no such mode
  bool remembers = false;      ///< the result also depends on the first frame; tests send a black one first
  bool whole_frame = false;    ///< supports only region=frame
  bool region_counts = false;  ///< the result for a sample depends on the rest of its region
};

inline const std::vector<Profile>& profiles() {
  static const std::vector<Profile> table{
      {"cudaconvolve", "preset=sharpen", "preset=box bias=40", "preset=sobel-x bias=0", "bias", 0, 50},
      {"cudadiff", "reference=first attach-roi=false light-change-ratio=0", "mode=absolute gain=0.5",
       "mode=signed gain=1", "gain", 0.5, 3, "output=passthrough attach-roi=true", true, true},
      {"cudagaussian", "", "kernel-size=3 sigma=0.5", "kernel-size=15 sigma=3", "sigma", 0.5, 3},
      {"cudahistogram", "equalize=true", "equalize=true overlay=false bins=256", "equalize=false overlay=true bins=256",
       "", 0, 0, "equalize=false add-meta=true", false, false, true},
      {"cudaintegral", "output=threshold", "output=box-mean radius=2", "output=threshold radius=5", "sensitivity", 0,
       0.5, "output=passthrough squared=true"}};
  return table;
}

inline const Profile& profile(const std::string& element) {
  static const Profile none{};
  for (const Profile& row : profiles())
    if (row.element == element) return row;
  return none;
}

struct BadSetting {
  std::string element;
  std::string settings;
  std::string property, value;  ///< the message must contain both; `value` as the user typed it
};

/// Settings that an element must refuse, besides values out of range. The first row is for a property that `second`
/// sets.
inline std::vector<BadSetting> bad_settings(const std::string& element) {
  static const std::vector<BadSetting> table{
      {"cudaconvolve", "bias=1e300", "bias", "1e+300"},
      {"cudaconvolve", "weights=<1,2,3,4,5,6,7,8>", "weights", "8"},
      {"cudaconvolve", "weights=<1,2,nan,4>", "weight 3 of weights", "nan"},
      {"cudaconvolve", "weights=<1,inf,3,4>", "weight 2 of weights", "inf"},
      {"cudaconvolve", "weights=<1,2,five,six>", "weight 3 of weights is \"five\": every", "\"five\""},
      {"cudaconvolve", "weights=<1,2,3,4,5,6> kernel-width=4", "kernel-width", "4"},
      {"cudaconvolve", "divisor=1e-300", "divisor is 1e-300", "1e-300"},
      {"cudadiff", "gain=-1", "gain", "-1"},
      {"cudadiff", "min-area=-7", "min-area is -7", "-7"},
      {"cudadiff", "min-area=3 max-area=2", "max-area is 2: it must be at least min-area, which is 3", "2"},
      {"cudadiff", "zones=1,2", "zones is \"1,2\"", "it must be polygons with names"},
      {"cudadiff", "zones=\"door: 0,0 70,9 9,9\"", "zones has door (0,0 70,9 9,9), which leaves the frame of",
       "at 70,9"},
      {"cudadiff", "lines=\"a: 1,1\"", "lines has a (1,1)", "which is not a line"},
      {"cudadiff", "lines=\"gate: 10,20 30,49\"", "lines", "which leaves the frame of"},
      {"cudadiff", "mask-regions=a,b", "mask-regions", "\"a,b\""},
      {"cudadiff", "mask-regions=\"0,0 70,0 9,9\"", "mask-regions", "which leaves the frame of"},
      {"cudadiff", "region=roi", "region", "mask-regions"},
      {"cudadiff", "region=outside-roi", "region", "outside-roi"},
      {"cudagaussian", "kernel-size=4", "kernel-size is 4: it must be odd", "4"},
      {"cudagaussian", "kernel-size=-3", "kernel-size is -3 or 4294967293: it must be 0 to 255", "-3"},
      {"cudagaussian", "kernel-width=3000000000", "kernel-width is -1294967296 or 3000000000: it must be 0 to 255",
       "3000000000"},
      {"cudagaussian", "kernel-width=2", "kernel-width", "2"},
      {"cudagaussian", "kernel-height=2", "kernel-height", "2"},
      {"cudagaussian", "sigma=-0.12345678901", "sigma is -0.12345678901", "-0.12345678901"},
      {"cudagaussian", "regions=1,2,3", "regions", "\"1,2,3\""},
      {"cudagaussian", "region=roi regions=\"0,0 9,9 9,0 0,9\"", "regions", "0,0 9,9 9,0 0,9"},
      {"cudagaussian", "region=roi regions=\"0,0 70,10 10,20\"", "regions", "which leaves the frame of"},
      {"cudahistogram", "bins=1", "bins", "1"},
      {"cudahistogram", "overlay-position=16,16,256", "overlay-position", "16,16,256"},
      {"cudahistogram", "overlay-position=16,16,256,100,", "overlay-position", "16,16,256,100,"},
      {"cudahistogram", "overlay-position=16;16;256;100", "overlay-position", "16;16;256;100"},
      {"cudahistogram", "overlay-position=left,16,256,100", "overlay-position", "left"},
      {"cudahistogram", "overlay-position=1.5,16,256,100", "overlay-position", "1.5"},
      {"cudahistogram", "overlay-position=16,16,99999999999,100", "overlay-position", "99999999999"},
      {"cudahistogram", "overlay-position=16,16,0,100", "overlay-position", "width of overlay-position is 0"},
      {"cudahistogram", "overlay-position=16,16,256,-100", "overlay-position", "height of overlay-position is -100"},
      {"cudahistogram", "overlay-position=-65537,16,256,100", "overlay-position", "x of overlay-position is -65537"},
      {"cudaintegral", "radius=-1", "radius", "-1"},
      {"cudaintegral", "output=passthrough region=roi", "region", "roi"},
      {"cudaintegral", "output=passthrough region=outside-roi", "region", "outside-roi"},
  };
  std::vector<BadSetting> found;
  for (const BadSetting& row : table)
    if (row.element == element) found.push_back(row);
  return found;
}

}  // namespace cudavision::test
