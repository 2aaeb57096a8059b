// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gst/base/settings.hpp"

#include <algorithm>

namespace cudavision {

bool changes_settings(guint count, GParamSpec** changed, GType type) {
  // Read-only properties are no settings.
  return std::any_of(changed, changed + count, [type](GParamSpec* spec) {
    return (spec->flags & G_PARAM_WRITABLE) && g_type_is_a(spec->owner_type, type);
  });
}

}  // namespace cudavision
