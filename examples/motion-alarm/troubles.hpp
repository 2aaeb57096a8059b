// SPDX-License-Identifier: LGPL-2.1-or-later
// Why an input cannot be read. Elements that read from the network say little. So the answer of the server is taken
// from their details. If there is none, our own connection finds the reason.
#pragma once

#include <gst/gst.h>

#include <string>

/// The sentence of an error or a warning, which may have secrets.
std::string trouble_of(GstMessage* message);
