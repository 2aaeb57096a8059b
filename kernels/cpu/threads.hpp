// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

namespace cudavision::cpu {

/// Makes OpenCV use the number of threads in OPENCV_FOR_THREADS_NUM, if that is a number from 1 on. OpenCV itself reads
/// that variable only in builds with OpenCV's own threads. A build with TBB, such as Debian's, ignores it.
void use_threads_of_environment();

}  // namespace cudavision::cpu
