// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <gst/gst.h>

/// Gives a sink pad the frames as players show them: inserts a videoflip if a tag (image-orientation) says that players
/// rotate them, so that a zone is at the same place everywhere. ../upright.py does the same for Python programs.
void keep_upright(GstPad* pad);
