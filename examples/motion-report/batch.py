# SPDX-License-Identifier: LGPL-2.1-or-later
"""Handles several inputs: which files share a report, and which ones get separate reports."""
import os
import pathlib
import sys
from dataclasses import dataclass, field

import clip_files
import common
import time_line
import uris

import page


@dataclass
class Job:
    """A report on one file, or on a recording of several files. `name` is the name of its folder; `title` is the name
    that people see."""
    path: str
    name: str
    title: str
    files: list = field(default_factory=list)  # the time_line.Segments of a recording


def text_of(name):
    """The name of a file as readable text."""
    return os.fsencode(name).decode(errors="replace")


def sets_of(paths):
    """Files that may belong together (the files of each folder, and the named files), as triples of a folder or None,
    its clips, and a sentence about its other files. Raises a Failure."""
    sets, named = [], []
    for path in paths:
        file = uris.path_of(path)
        if file is None:
            raise common.Failure(f"several inputs must be files or folders, and {uris.shown(path)} is neither")
        if os.path.isdir(file):
            found, others = clip_files.clips_in(file)
            sets.append((file, found, clip_files.left_out(others)))
        elif not named:
            named.append(file)
            sets.append((None, named, ""))
        else:
            named.append(file)
    return sets


def jobs_of(folder, files, join):
    """The reports for a set of files."""
    if len(files) < 2 or join == "none":
        return [Job(path, os.path.basename(path), text_of(os.path.basename(path))) for path in files]
    jobs, found = [], time_line.recordings([time_line.segment_of(path) for path in files], join)
    for run in found:
        first, last = run[0].name, run[-1].name
        if len(run) == 1:
            jobs.append(Job(run[0].path, os.path.basename(run[0].path), first))
        elif folder and len(found) == 1:
            name = os.path.basename(os.path.abspath(folder))
            jobs.append(Job(folder, name, text_of(name), run))
        else:
            jobs.append(Job(run[0].path, os.path.splitext(os.path.basename(run[0].path))[0], f"{first} to {last}", run))
    return jobs


def with_names(jobs):
    """Gives the jobs distinct names."""
    used = set()
    for job in jobs:
        name, number = job.name, 1
        while job.name in used or job.name in ("", ".", ".."):
            number += 1
            job.name = f"{name}-{number}"
        used.add(job.name)
    return jobs


def jobs_for(paths, join):
    """The reports for several inputs, and a sentence about ignored files."""
    sets, jobs = sets_of(paths), []
    for folder, files, others in sets:
        if others:
            print(f"{folder}: {others}", file=sys.stderr)
        jobs += jobs_of(folder, files, join)
    return with_names(jobs), "; ".join(others for _, _, others in sets if others)


def each(jobs, others, title, out, report):
    """Calls report(job, folder), which returns Findings, for each job, and writes index.html. Returns whether any job
    has no report, and whether any report is incomplete."""
    entries = []
    for job in jobs:
        shown = f"{job.path}: {len(job.files)} files" if job.files else job.path
        print(f"{shown} -> {out / job.name}")
        try:
            findings = report(job, out / job.name)
            entries.append(page.entry_of(job.name, findings, job.title))
        except common.Failure as error:
            sentence = str(error) if job.name in str(error) else f"{job.path}: {error}"
            print(f"{pathlib.Path(sys.argv[0]).name}: {sentence}", file=sys.stderr)
            entries.append(page.Entry(job.name, failure=sentence))
            continue
        if findings.stopped:
            break
    page.write_index(entries, title, out, len(jobs), others)
    return any(entry.failure for entry in entries), any(entry.incomplete for entry in entries)
