#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Prints the results of tests for tests/run.sh.

  results.py TESTLOG.json                      the rows of the tests in a log of `meson test`
  results.py --row NAME STATUS SECONDS LOG     the row of a command, from its exit status and its output (a file)
  results.py --table ROWS                      the table of the rows in a file, the skipped tests with reasons, and
                                               the count

A row is a line with fields separated by tabs: result (PASS, FAIL, SKIP), name, seconds, test cases passed, failed,
skipped, remark (the reason of a skip; the first failed cases), and for each reason of skipped cases their number, a
blank and the reason.

The last line of a program gives the number of cases: "N passed, N failed, N skipped", gst-check's "100%: Checks: N,
Failures: N, Errors: N", or unittest's "Ran N tests" with "OK (skipped=N)". A program that prints none of these counts
as one case. A failed program without a failed case counts as one more failed case. The same applies to skipped
programs. unittest prints the reasons of skips only in verbose mode. Exit status: 0; 1 with one sentence if a log is
missing, broken or empty; 1 after the table if something failed.
"""
import collections
import json
import re
import sys

CLOSING = re.compile(r'^(\d+) passed, (\d+) failed, (\d+) skipped$', re.MULTILINE)
GST_CHECK = re.compile(r'^\d+%: Checks: (\d+), Failures: (\d+), Errors: (\d+)$', re.MULTILINE)
UNITTEST = re.compile(r'^Ran (\d+) tests? in .*\n\n(?:OK|FAILED|NO TESTS RAN)(?: \((.*)\))?$', re.MULTILINE)
# How GoogleTest and Python's unittest report why a case is skipped.
SKIPPED_CASE = re.compile(r': Skipped\n(.+)$|(?:^|\.\.\. )skipped ([\'"].*[\'"])$', re.MULTILINE)
# How gst-check ("FILE:LINE:F:case:test:0: text"), GoogleTest and Python's unittest name a failed case, and gst-check's
# text.
FAILED_CASE = re.compile(r'^\S+:\d+:[FE]:(.+)$|^\[  FAILED  \] ([^\s,]+\.[^\s,]+)|^(?:FAIL|ERROR): (.+)$', re.MULTILINE)
LINE = '{:6}{:28}{:>9}{:>9}{:>9}{:>9}  {}'


def cases(result, output):
    """The numbers of passed, failed and skipped cases of one test."""
    counts = [0, 0, 0]
    closing = CLOSING.findall(output)
    if closing:
        counts = [int(n) for n in closing[-1]]
    else:  # one line for each suite
        for total, failures, errors in GST_CHECK.findall(output):
            bad = int(failures) + int(errors)
            counts[0] += int(total) - bad
            counts[1] += bad
        for total, said in UNITTEST.findall(output):
            named = {name: int(n) for name, n in re.findall(r'(\w[\w ]*)=(\d+)', said)}
            bad = sum(named.get(name, 0) for name in ('failures', 'errors', 'unexpected successes'))
            counts[0] += max(0, int(total) - bad - named.get('skipped', 0))  # parts of a case also fail and skip
            counts[1] += bad
            counts[2] += named.get('skipped', 0)
    if result == 'FAIL' and not counts[1]:
        counts[1] = 1
    if result == 'SKIP' and not counts[2]:
        counts[2] = 1
    if not any(counts):
        counts[0] = 1
    return counts


def reasons(output, skipped):
    """Why cases were skipped, with the numbers of cases. If no case has a reason, it is the last line that begins with
    "skipped:", or else the last line with text."""
    found = collections.Counter(plain(google or unit[1:-1]) for google, unit in SKIPPED_CASE.findall(output))
    known = sum(found.values())
    if not found:
        said = (re.findall(r'^skipped: .+$', output, re.MULTILINE)
                or [line for line in output.splitlines() if line.strip() and not CLOSING.match(line)])
        if said and not said[-1].startswith(('OK (', 'FAILED (')):
            return {plain(said[-1]): skipped}
    if skipped > known:
        found['says no reason'] += skipped - known
    return found


def plain(reason):
    return reason.strip().removeprefix('skipped: ').replace('\t', ' ')


def failed_cases(output):
    """The names of the first three failed cases, each once, followed by gst-check's text; an empty text if none has a
    name."""
    found = dict.fromkeys("".join(groups).strip() for groups in FAILED_CASE.findall(output))
    names = [name if len(name) < 300 else name[:300] + '...' for name in list(found)[:3]]
    return ''.join('; ' + name for name in names) + (f' and {len(found) - 3} more' if len(found) > 3 else '')


def row(result, name, seconds, output, failure):
    """The row of a test. `failure`: the remark if it failed, before the names of failed cases."""
    counts = cases(result, output)
    why = reasons(output, counts[2]) if counts[2] else {}
    if result == 'FAIL':
        remark = failure + failed_cases(output).replace('\t', ' ')
    else:
        remark = max(why, key=why.get) if why else ''
    return '\t'.join([result, name, f'{float(seconds):.1f}', *map(str, counts), remark,
                      *(f'{count} {reason}' for reason, count in why.items())])


def row_of_log(line):
    """The row for a line of meson's log. Raises ValueError, KeyError, TypeError or AttributeError if the line is not a
    result."""
    test = json.loads(line)
    result = {'OK': 'PASS', 'EXPECTEDFAIL': 'PASS', 'SKIP': 'SKIP'}.get(test['result'], 'FAIL')
    return row(result, test['name'].split(' / ')[-1], test['duration'],
               test.get('stdout', '') + '\n' + test.get('stderr', ''),
               f'{test["result"].lower()}, exit status {test["returncode"]}')


def row_of_command(name, status, seconds, path):
    with open(path, encoding='utf-8', errors='replace') as log:
        return row({'0': 'PASS', '77': 'SKIP'}.get(status, 'FAIL'), name, seconds, log.read(), f'exit status {status}')


def skips(rows):
    """Lines with the reasons of skips: first programs that ran nothing, then cases of other programs, grouped by
    reason."""
    within = collections.defaultdict(lambda: [0, []])
    for result, name, *_, remark, why in rows:
        for count, reason in why:
            if result == 'SKIP':
                yield f'{count:6}  {name}: {reason}'
            else:
                within[reason][0] += count
                within[reason][1].append(name)
    for reason, (count, names) in sorted(within.items(), key=lambda item: -item[1][0]):
        more = f' and {len(names) - 3} more' if len(names) > 3 else ''
        yield f'{count:6}  {reason} (in {", ".join(names[:3])}{more})'


def table(path):
    """Prints the table, and why tests were skipped. Returns whether something failed."""
    rows, total = [], [0, 0, 0]
    print(LINE.format('', 'test', 'passed', 'failed', 'skipped', 'seconds', ''))
    with open(path, encoding='utf-8', errors='replace') as lines:
        for line in lines:
            result, name, seconds, passed, failed, skipped, remark, *why = line.rstrip('\n').split('\t')
            print(LINE.format(result, name, passed, failed, skipped, seconds, remark).rstrip())
            total = [sum(pair) for pair in zip(total, map(int, (passed, failed, skipped)))]
            pairs = [each.split(' ', 1) for each in why]
            rows.append((result, name, remark, [(int(count), reason) for count, reason in pairs]))
    lines = list(skips(rows))
    if lines:
        print('\nskipped, and why:', *lines, sep='\n')
    print('\n{} passed, {} failed, {} skipped'.format(*total))
    return total[1] > 0


def main(path):
    """Prints the rows of a log. If the log is broken, prints the rows before the error and returns a sentence;
    otherwise returns None."""
    try:
        number = 0
        with open(path, encoding='utf-8', errors='replace') as log:
            for number, line in enumerate(log, 1):
                print(row_of_log(line))
        return None if number else f'{path} has no results: no test ran'
    except OSError as error:
        return f'the log of the tests cannot be read: {error}'
    except (ValueError, KeyError, TypeError, AttributeError):
        return f'{path}, line {number} is no result of one test: the log is broken, so what follows is not counted'


if __name__ == '__main__':
    if sys.argv[1] == '--row':
        print(row_of_command(*sys.argv[2:]))
    elif sys.argv[1] == '--table':
        sys.exit(table(sys.argv[2]))
    else:
        sys.exit(main(sys.argv[1]))
