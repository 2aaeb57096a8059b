// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string>

/// A sentence about a file that cannot be read at all (an MP4 without its index, for which GStreamer does not always
/// post an error); otherwise an empty text.
std::string fault_of(const std::string& path);

/// A sentence about an AVI that is smaller than its header says; otherwise an empty text.
std::string cut_of(const std::string& path);
