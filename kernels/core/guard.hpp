// SPDX-License-Identifier: LGPL-2.1-or-later
// Wrappers that catch all exceptions: for the public functions of the kernels, and for functions called from C.
#pragma once

#include <exception>
#include <new>
#include <string>
#include <type_traits>
#include <utility>

#include "kernels/core/status.hpp"

namespace cudavision {

/// Converts the exception that is being handled to an error. Call it in a catch block.
inline Status status_of_exception() noexcept {
  // Messages of up to 15 characters fit in a std::string without an allocation.
  try {
    try {
      throw;
    } catch (const std::bad_alloc&) {
      return Status::resource("out of memory");
    } catch (const std::exception& error) {
      return Status::resource(std::string("internal error: ") + error.what());
    } catch (...) {
      return Status::resource("internal error");
    }
  } catch (...) {
    return Status::resource("out of memory");
  }
}

/// Calls f, which returns nothing, a Status or a Result, and returns its result. An exception becomes an error with
/// Status::Code::resource.
template <typename F>
auto guarded(F&& f) noexcept {
  using Returned = std::invoke_result_t<F>;
  using Outcome = std::conditional_t<std::is_void_v<Returned>, Status, Returned>;
  try {
    if constexpr (std::is_void_v<Returned>) {
      f();
      return Outcome();
    } else {
      return Outcome(f());
    }
  } catch (...) {
    return Outcome(status_of_exception());
  }
}

/// Calls f and returns its result. If f throws, calls report(status) and returns `failed`. For virtual functions whose
/// C signature cannot return a Status.
template <typename T, typename Report, typename F>
T guarded_or(T failed, Report&& report, F&& f) noexcept {
  try {
    return f();
  } catch (...) {
    try {
      report(status_of_exception());
    } catch (...) {
      // report() also failed, probably for lack of memory. The function still returns `failed`.
    }
    return failed;
  }
}

}  // namespace cudavision
