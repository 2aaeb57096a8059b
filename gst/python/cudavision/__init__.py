# SPDX-License-Identifier: LGPL-2.1-or-later
"""cudavision: a GStreamer plugin of video filters on CUDA, and what Python programs need to work with its frames
(cudavision.frames)."""
