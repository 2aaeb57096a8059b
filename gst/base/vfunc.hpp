// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <gst/gst.h>

#include <type_traits>

#include "gst/base/element_backend.hpp"
#include "kernels/core/guard.hpp"

namespace cudavision {
namespace detail {

/// Posts an error for an object: from the element itself or, for a pad, from the element that the pad belongs to.
inline void post_error_of(gpointer object, const Status& status) {
  const auto element =
      GST_IS_ELEMENT(object) ? new_reference(GST_OBJECT(object)) : owned(gst_object_get_parent(GST_OBJECT(object)));
  if (element) post_error(GST_ELEMENT(element.get()), status);
}

template <auto f, auto failed, typename Signature = decltype(f)>
struct Vfunc;

template <auto f, auto failed, typename Returned, typename Self, typename... Args>
struct Vfunc<f, failed, Returned (*)(Self*, Args...)> {
  static Returned call(Self* self, Args... args) noexcept {
    const auto report = [self](const Status& status) { post_error_of(self, status); };
    if constexpr (std::is_void_v<Returned>) {
      guarded_or(false, report, [&] { return f(self, args...), true; });
    } else if constexpr (std::is_invocable_v<decltype(failed)>) {
      Returned result{};
      if (!guarded_or(false, report, [&] { return result = f(self, args...), true; })) result = failed();
      return result;
    } else {
      return guarded_or(Returned(failed), report, [&] { return f(self, args...); });
    }
  }
};

}  // namespace detail

/// `f` as a virtual function of a GObject class. C code calls it, so exceptions must not escape: an exception becomes
/// an error message of the element, and the return value is `failed`, or failed() if that is a function.
template <auto f, auto failed = nullptr>
inline constexpr auto vfunc = &detail::Vfunc<f, failed>::call;

}  // namespace cudavision
