#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""results.py TESTLOG.json: prints the results of `meson test` for tests/run.sh, one line for each test, with fields
separated by tabs: result (PASS, FAIL, SKIP), name, seconds, test cases passed, failed, skipped, remark (the reason of a
skip; the first failed cases).

The last line of a program gives the number of cases: "N passed, N failed, N skipped", or gst-check's "100%: Checks: N,
Failures: N, Errors: N". A program that prints neither counts as one case. A program that fails without a failed case
counts as one failed case more. Exit status: 0; 1 with one sentence if the log is missing, broken or empty.
"""
import json
import re
import sys

CLOSING = re.compile(r'^(\d+) passed, (\d+) failed, (\d+) skipped$', re.MULTILINE)
GTEST_SKIP = re.compile(r': Skipped\n(.+)$', re.MULTILINE)
# How gst-check ("FILE:LINE:F:case:test:0: text"), GoogleTest and Python's unittest name a case that failed, and
# gst-check's text.
FAILED_CASE = re.compile(r'^\S+:\d+:[FE]:(.+)$|^\[  FAILED  \] ([^\s,]+\.[^\s,]+)|^(?:FAIL|ERROR): (.+)$', re.MULTILINE)
GST_CHECK = re.compile(r'^\d+%: Checks: (\d+), Failures: (\d+), Errors: (\d+)$', re.MULTILINE)


def cases(result, output):
    """The numbers of passed, failed and skipped cases of one test."""
    counts = [0, 0, 0]
    closing, checks = CLOSING.findall(output), GST_CHECK.findall(output)
    if closing:
        counts = [int(n) for n in closing[-1]]
    else:  # one line for each suite
        for total, failures, errors in checks:
            bad = int(failures) + int(errors)
            counts[0] += int(total) - bad
            counts[1] += bad
    if result == 'FAIL' and not counts[1]:
        counts[1] = 1
    if not any(counts):
        counts[0 if result == 'PASS' else 2] = 1
    return counts


def reason(output):
    """The reason why a test or some of its cases were skipped: GoogleTest's message, or the last line with text."""
    said = (GTEST_SKIP.findall(output)
            or [line for line in output.splitlines() if line.strip() and not CLOSING.match(line)])
    return said[-1].strip() if said else 'says no reason'


def failed_cases(output):
    """The names of the first three cases that failed, each once, with gst-check's text behind the name; an empty text
    if none has a name."""
    found = dict.fromkeys("".join(groups).strip() for groups in FAILED_CASE.findall(output))
    names = [name if len(name) < 300 else name[:300] + '...' for name in list(found)[:3]]
    return ''.join('; ' + name for name in names) + (f' and {len(found) - 3} more' if len(found) > 3 else '')


def row(line):
    """The line of the table for a line of the log. Raises ValueError, KeyError, TypeError or AttributeError if that is
    no result."""
    test = json.loads(line)
    result = {'OK': 'PASS', 'EXPECTEDFAIL': 'PASS', 'SKIP': 'SKIP'}.get(test['result'], 'FAIL')
    output = test.get('stdout', '') + '\n' + test.get('stderr', '')
    counts = cases(result, output)
    remark = ''
    if result == 'FAIL':
        remark = f'{test["result"].lower()}, exit status {test["returncode"]}' + failed_cases(output).replace('\t', ' ')
    elif counts[2]:
        remark = reason(output).replace('\t', ' ')
    return '\t'.join(map(str, [result, test['name'].split(' / ')[-1], f'{test["duration"]:.1f}', *counts, remark]))


def main(path):
    """Prints the table. Returns a sentence if the log is broken, after the rows of the lines before; else None."""
    try:
        number = 0
        with open(path, encoding='utf-8', errors='replace') as log:
            for number, line in enumerate(log, 1):
                print(row(line))
        return None if number else f'{path} has no results: no test ran'
    except OSError as error:
        return f'the log of the tests cannot be read: {error}'
    except (ValueError, KeyError, TypeError, AttributeError):
        return f'{path}, line {number} is no result of one test: the log is broken, so what follows is not counted'


if __name__ == '__main__':
    sys.exit(main(sys.argv[1]))
