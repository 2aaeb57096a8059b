#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs the steps of .github/workflows here, as root, each job in a fresh Debian:

  workflow.py              checks that it understands each step: every name, action and expression must be known here
  workflow.py FILE.JOB …   runs these jobs (ci.pages, release.publish), one for each entry of the job's
                           matrix; NAME=VALUE chooses entries

A job gets the last commit in /src, as a clone. Steps with `run` run there in bash; checkout is that clone. Artifacts
are folders below ARTIFACTS (a new one in /tmp), where later jobs find them. Steps that publish are printed and not run.
Exit status 77 (skipped) without python3-yaml, or as in tests/roots.sh.
"""
import itertools
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

try:
    import yaml
except ImportError:
    print("skipped: there is no python3-yaml")
    sys.exit(77)

ROOT = Path(__file__).resolve().parent.parent
ACTIONS = {"actions/checkout@v4", "actions/upload-artifact@v4", "actions/download-artifact@v4"}
PUBLISHES = re.compile(r"^gh ")
HERE = {"github.token": "", "runner.arch": "X64"}


def workflows():
    return {file.stem: yaml.safe_load(file.read_text()) for file in sorted((ROOT / ".github/workflows").glob("*.yml"))}


def entries(job):
    """The values of each run of a job's matrix."""
    matrix = job.get("strategy", {}).get("matrix", {})
    if "include" in matrix:
        return matrix["include"]
    return [dict(zip(matrix, values)) for values in itertools.product(*matrix.values())]


def filled(text, values):
    """The text with its ${{ expressions }} replaced. Raises KeyError for an unknown one."""
    known = {**HERE, **{f"matrix.{name}": str(value) for name, value in values.items()}}
    return re.sub(r"\$\{\{ *(.*?) *\}\}", lambda found: known[found[1]], text)


def applies(step, values):
    """Whether a step's `if` is true: failure(), or one comparison."""
    condition = step.get("if")
    if condition in (None, "failure()"):
        return condition is None
    name, wanted = re.fullmatch(r"(matrix\.\w+) == '(\w*)'", condition).groups()
    return str(values[name.removeprefix("matrix.")]) == wanted


def check(name, job):
    for values in entries(job):
        where = f"{name} {values}"
        image = filled(job["container"], values)
        assert re.fullmatch(r"debian:[a-z]+", image), f"{where}: the container {image} is no Debian"
        for step in job["steps"]:
            applies(step, values)
            assert ("run" in step) != ("uses" in step), f"{where}: {step} neither runs nor uses something"
            assert step.get("uses") in ACTIONS | {None}, f"{where}: {step['uses']} is not known here"
            for script in re.findall(r"(?<![\w/$.-])((?:\.ci|release|docs|gst/packaging|tests)/[\w/.-]+)",
                                     filled(step.get("run", ""), values)):
                assert os.access(ROOT / script, os.X_OK), f"{where}: {script} is no program"
            for each in [*step.get("with", {}).values(), *step.get("env", {}).values()]:
                filled(str(each), values)


def in_shell(script, *arguments):
    """Runs a bash script that has the functions of tests/roots.sh."""
    return subprocess.run(["bash", "-euo", "pipefail", "-c", '. "$0/tests/roots.sh"; ' + script, str(ROOT),
                           *arguments]).returncode


def run_job(name, job, values, artifacts):
    label = " ".join([name, *map(str, values.values())])
    suite = filled(job["container"], values).removeprefix("debian:")
    if values.get("runner", "").endswith("-arm"):
        print(f"{label}: skipped, because it is for arm64 (tests/arm64.sh)")
        return 0
    folder = tempfile.mkdtemp(prefix="workflow-", dir=os.environ.get("COMPAT_DIR"))
    root = f"{folder}/root"
    status = in_shell('needs_roots debootstrap git; make_root "$1" "$cache/$1-minimal"; cp -a "$cache/$1-minimal" "$2"',
                      suite, root)
    try:
        for step in job["steps"] if status == 0 else []:
            if status or not applies(step, values):
                continue
            print(f"{label}: {step.get('name') or step.get('run') or step['uses']}", flush=True)
            wanted = {key: filled(str(value), values) for key, value in step.get("with", {}).items()}
            if "run" in step:
                status = run_step(filled(step["run"], values), root)
            elif "checkout" in step["uses"]:
                status = subprocess.run(["git", "clone", "--quiet", f"file://{ROOT}", f"{root}/src"]).returncode
            elif "upload" in step["uses"]:
                shutil.copytree(f"{root}/src/{wanted['path']}", artifacts / wanted["name"], dirs_exist_ok=True)
            else:
                for each in sorted(artifacts.glob("packages-*")):
                    shutil.copytree(each, f"{root}/src/{wanted['path']}", dirs_exist_ok=True)
    finally:
        subprocess.run(["rm", "-rf", "--one-file-system", folder])
    print(f"{label}: {'passed' if status == 0 else f'failed with exit status {status}'}")
    return status


def run_step(command, root):
    if PUBLISHES.match(command):
        print("  not run here, because it publishes")
        return 0
    version = subprocess.run([ROOT / "release/version.sh"], capture_output=True, text=True, check=True).stdout.strip()
    return in_shell('mkdir -p "$1/src"; in_root "$1" "cd /src; $2" GITHUB_REF_NAME="v$3"', root, command, version)


def main(arguments):
    jobs = {f"{file}.{name}": job for file, workflow in workflows().items() for name, job in workflow["jobs"].items()}
    if not arguments:
        for name, job in jobs.items():
            check(name, job)
        print(f"the steps of {len(jobs)} jobs are understood: {' '.join(jobs)}")
        return 0
    chosen = dict(argument.split("=") for argument in arguments if "=" in argument)
    artifacts = Path(os.environ.get("ARTIFACTS") or tempfile.mkdtemp(prefix="artifacts-"))
    print(f"artifacts are in {artifacts}")
    worst = 0
    for name in (argument for argument in arguments if "=" not in argument):
        for values in entries(jobs[name]) or [{}]:
            if all(str(values.get(key)) == value for key, value in chosen.items()):
                worst = worst or run_job(name, jobs[name], values, artifacts)
    return worst


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
