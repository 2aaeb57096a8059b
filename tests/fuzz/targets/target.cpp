// SPDX-License-Identifier: LGPL-2.1-or-later
// The entry points of libFuzzer.
#include "tests/fuzz/targets/target.hpp"

#include <cstdio>
#include <cstdlib>

#include "tests/streams/complaints.hpp"
#include "tests/streams/plugin.hpp"

using namespace cudavision::fuzz;
using namespace cudavision::streams;

// Sanitizer reports end the process, so that libFuzzer keeps the bytes. Tests allocate more memory than exists.
extern "C" {
__attribute__((visibility("default"))) const char* __asan_default_options() {
  return "allocator_may_return_null=1:detect_stack_use_after_return=1:abort_on_error=1:handle_abort=1";
}
__attribute__((visibility("default"))) const char* __ubsan_default_options() {
  return "halt_on_error=1:abort_on_error=1:print_stacktrace=1";
}
// Memory that libraries keep until the process ends.
__attribute__((visibility("default"))) const char* __lsan_default_suppressions() {
  return "leak:_dl_init\nleak:g_quark\n";
}
__attribute__((visibility("default"))) const char* __lsan_default_options() { return "print_suppressions=0"; }

__attribute__((visibility("default"))) int LLVMFuzzerInitialize(int*, char***) {
  load_plugin();
  watch_log();
  return 0;
}

__attribute__((visibility("default"))) int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  run_target(Random(Bytes(data, size)));
  const auto complaints = take_complaints();
  for (const std::string& complaint : complaints) std::fprintf(stderr, "%s\n", complaint.c_str());
  if (!complaints.empty()) std::abort();
  return 0;
}
}
