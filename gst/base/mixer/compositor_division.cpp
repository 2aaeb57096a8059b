// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gst/base/mixer/video_mixer_private.hpp"

#if HAVE_ORC
#include <orc/orc.h>

#include <algorithm>
#include <cstdint>
#endif

namespace cudavision::video_mixer {

#if HAVE_ORC

namespace {

/// Runs ORC's opcode div255w, which compositor uses, on 128. It rounds to the nearest integer before ORC 0.4.39 (1),
/// and down since then (0).
std::int16_t divide_128_by_255() {
  constexpr int count = 64;  // enough for the vectorised part of the compiled loop
  alignas(64) std::int16_t dividends[count], quotients[count];
  std::fill_n(dividends, count, std::int16_t(128));
  std::fill_n(quotients, count, std::int16_t(1));
  OrcProgram* program = orc_program_new_ds(sizeof *quotients, sizeof *dividends);
  orc_program_append_ds_str(program, "div255w", "d1", "s1");
  orc_program_compile(program);
  OrcExecutor* executor = orc_executor_new(program);
  orc_executor_set_n(executor, count);
  orc_executor_set_array_str(executor, "d1", quotients);
  orc_executor_set_array_str(executor, "s1", dividends);
  orc_executor_run(executor);
  orc_executor_free(executor);
  orc_program_free(program);
  return quotients[0];
}

}  // namespace

blend::Division compositor_division() {
  static const blend::Division division = divide_128_by_255() == 0 ? blend::Division::down : blend::Division::nearest;
  return division;
}

#else

blend::Division compositor_division() { return blend::Division::nearest; }

#endif

}  // namespace cudavision::video_mixer
