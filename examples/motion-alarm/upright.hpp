// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <gst/gst.h>

/// Gives a sink pad the frames as players show them: puts a videoflip before it when a tag (image-orientation) says
/// that players rotate them, so that a zone is the same place everywhere. ../upright.py does so for programs in Python.
void keep_upright(GstPad* pad);
