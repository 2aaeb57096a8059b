// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string>

namespace cudavision {

/// The URI of a page of the documentation, such as "docs/elements/cudadiff.md": a page below the meson option docs-url,
/// or the file installed with the plugin (found even if the installation was moved). Empty if there is no such file,
/// for example in a build folder.
std::string doc_uri(const std::string& page);

}  // namespace cudavision
