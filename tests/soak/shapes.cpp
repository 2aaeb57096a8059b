// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tests/soak/shapes.hpp"

#include <cstdlib>

namespace cudavision::soak {

const Kind& kind(const std::string& name) {
  // A kind that no row of shapes() names is never run.
  static const std::vector<Kind> kinds{
      {"gaussian",
       "cudagaussian",
       {"kernel-size=3 sigma=0 border=reflect-101", "kernel-size=7 sigma=0 border=replicate",
        "kernel-size=15 sigma=2.5 border=reflect-101"}},
      {"convolve",
       "cudaconvolve",
       {"preset=sharpen absolute=false border=reflect-101", "preset=laplacian absolute=true border=replicate",
        "preset=emboss absolute=false border=copy"}},
      {"integral",
       "cudaintegral",
       {"output=box-mean radius=3 squared=false", "output=threshold radius=9 squared=false",
        "output=passthrough radius=7 squared=true"}},
      {"mosaic",
       "cudaintegral",
       {"output=pixelate radius=0 region=roi regions=\"0.1,0.1 0.9,0.2 0.5,0.9;0.5,0.5,0.4,0.5\"",
        "output=box-mean radius=0 region=outside-roi regions=0.25,0.25,0.5,0.5",
        "output=pixelate radius=6 region=frame regions="}},
      {"equalize", "cudahistogram", {"equalize=true bins=256", "equalize=false bins=256", "equalize=true bins=64"}},
      {"histogram",
       "cudahistogram",
       {"add-meta=false channels=luma interval=0 watch=true", "add-meta=true channels=all interval=0 watch=true",
        "add-meta=false channels=all interval=400000000 watch=false"}},
      {"diff",
       "cudadiff",
       {"output=difference mode=absolute gain=1 attach-roi=false",
        "output=difference mode=signed gain=2 attach-roi=false", "output=mask mode=absolute gain=1 attach-roi=true",
        "output=passthrough mode=absolute gain=1 attach-roi=false"}},
      {"motion",
       "cudadiff",
       {"output=passthrough attach-roi=false reference=previous threshold=15",
        "output=passthrough attach-roi=true reference=background threshold=40",
        "output=passthrough attach-roi=false reference=first threshold=15"}},
  };
  for (const Kind& known : kinds)
    if (known.name == name) return known;
  std::abort();
}

const std::vector<Shape>& shapes() {
  static const std::vector<Shape> table{
      {"chain", {"gaussian", "convolve", "integral"}, "{0} ! {1} ! {2} ! {o}", {{0, 1, 2}}},
      {"queues", {"gaussian", "convolve"}, "{0} ! queue max-size-buffers=3 ! {m} ! {1} ! queue ! {o}", {{0, 1}}, false},
      {"difference", {"diff", "convolve"}, "{0} ! {1} ! {o}", {{0, 1}}},
      {"analysers", {"motion", "histogram", "gaussian"}, "{0} ! {1} ! queue ! {2} ! {o}", {{0, 1, 2}}},
      // Sinks that do not preroll: while one sink is PAUSED and the other is not yet, its full queue may stop the tee
      // for both.
      {"tee",
       {"gaussian", "convolve", "integral"},
       "{0} ! tee name=t ! queue ! {1} ! {o} async=false t. ! queue ! {2} ! {o} async=false",
       {{0, 1}, {0, 2}}},
      {"memories", {"gaussian", "integral", "convolve"}, "{0} ! {m} ! {1} ! {m} ! {2} ! {m} ! {o}", {{0, 1, 2}}, false},
      {"equalize", {"equalize", "gaussian"}, "{0} ! {m} ! {1} ! queue ! {o}", {{0, 1}}, false},
      {"mosaic", {"mosaic", "gaussian"}, "{0} ! {m} ! {1} ! {o}", {{0, 1}}, false},
      {"look", {"histogram", "motion"}, "{0} ! {m} ! {1} ! {m} ! {o}", {{0, 1}}, false},
  };
  return table;
}

}  // namespace cudavision::soak
