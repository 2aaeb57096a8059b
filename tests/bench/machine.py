# SPDX-License-Identifier: LGPL-2.1-or-later
"""Describes the machine that a benchmark runs on."""
import os
import platform
import re


def machine():
    """The processor, the number of processors that this process may use, and the load of the last minute."""
    try:
        with open('/proc/cpuinfo', encoding='utf-8') as file:
            text = file.read()
    except OSError:
        text = ''
    found = {key: re.search(rf'^{key}\s*: *(.+)$', text, re.MULTILINE) for key in ('model name', 'cpu family', 'model')}
    name = found['model name'][1].strip() if found['model name'] else platform.machine()
    if found['cpu family'] and found['model']:  # the names of virtual processors say little
        name += f' (family {found["cpu family"][1]}, model {found["model"][1]})'
    return f'{name}, {len(os.sched_getaffinity(0))} processors, load {os.getloadavg()[0]:.1f}'
