// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

namespace cudavision::cpu {

/// Makes OpenCV use as many threads as OPENCV_FOR_THREADS_NUM says, if that is a number from 1 on. OpenCV reads that
/// variable itself only where it has threads of its own: a build with TBB, such as Debian's, ignores it.
void use_threads_of_environment();

}  // namespace cudavision::cpu
