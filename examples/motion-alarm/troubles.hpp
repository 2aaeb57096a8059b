// SPDX-License-Identifier: LGPL-2.1-or-later
// Finds out why an input cannot be read. Elements that read from the network report little. Therefore the server's
// answer is taken from their details. If there is none, a separate connection finds the reason.
#pragma once

#include <gst/gst.h>

#include <string>

/// The sentence of an error or a warning, which may contain secrets.
std::string trouble_of(GstMessage* message);
