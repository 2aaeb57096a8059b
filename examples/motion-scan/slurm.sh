#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# An array of Slurm jobs, each of which analyses one part of the clips. It takes the arguments of motion-scan:
#   sbatch --array=0-7 examples/motion-scan/slurm.sh @list.txt --out=FOLDER --set preset=outdoor
# FOLDER must be on a file system that all nodes share. With GPUs: sbatch --gres=gpu:1 …. After a failure, run the same
# command again: finished clips are not repeated. MOTION_SCAN is the program (examples/motion-scan/motion-scan in the
# folder where sbatch was called), PYTHON the interpreter that has Ray (python3).
#SBATCH --job-name=motion-scan
#SBATCH --cpus-per-task=8
#SBATCH --mem-per-cpu=2G
#SBATCH --time=08:00:00
#SBATCH --requeue
#SBATCH --signal=B:TERM@60
set -euo pipefail
if [[ ! ${SLURM_ARRAY_TASK_ID:-} ]]; then
  echo 'slurm.sh: run it with sbatch --array=0-7' >&2
  exit 2
fi
workers=(--workers="${SLURM_CPUS_PER_TASK:-1}")
if [[ ${SLURM_GPUS_ON_NODE:-} ]]; then workers=(); fi # one for each GPU
# exec: Slurm's signals reach the program, which then stops cleanly.
exec "${PYTHON:-python3}" "${MOTION_SCAN:-${SLURM_SUBMIT_DIR:-.}/examples/motion-scan/motion-scan}" "$@" \
  "${workers[@]}" --shard="$SLURM_ARRAY_TASK_ID/$SLURM_ARRAY_TASK_COUNT"
