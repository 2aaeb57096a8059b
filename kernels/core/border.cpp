// SPDX-License-Identifier: LGPL-2.1-or-later
#include "kernels/core/border.hpp"

namespace cudavision {

const std::array<BorderInfo, 7> borders{{
    {Border::constant, "constant", "iii|abcd|iii: border-value"},
    {Border::replicate, "replicate", "aaa|abcd|ddd: the edge pixel"},
    {Border::reflect, "reflect", "cba|abcd|dcb: mirrored about the edge"},
    {Border::wrap, "wrap", "bcd|abcd|abc: the opposite side"},
    {Border::reflect_101, "reflect-101", "dcb|abcd|cba: mirrored about the edge pixel"},
    {Border::fill, "fill", "pixels whose window leaves the frame become border-value"},
    {Border::copy, "copy", "pixels whose window leaves the frame keep their input"},
}};

}  // namespace cudavision
