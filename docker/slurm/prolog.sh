#!/bin/sh
# Slurm prolog (Prolog= in slurm.conf, runs as root on every node of a job): brings the newest checkpoint
# to this node's own disk and starts the sidecar as the job's user. Set DESTINATION and DISK in
# /etc/ckptsyncd/slurm.env. Where the restore fails (nothing verifies, the store does not answer) the
# prolog fails and the job does not begin: Slurm requeues it and drains the node until somebody looks.
set -u
# shellcheck source=/dev/null
[ -r /etc/ckptsyncd/slurm.env ] && . /etc/ckptsyncd/slurm.env
: "${DESTINATION:?such as s3://bucket/runs}" "${DISK:=/local}" "${CKPTSYNCD:=/opt/ckptsyncd/bin/ckptsyncd}"
: "${RUN_DIR:=/run/ckptsyncd-slurm}" "${LOG_DIR:=/var/log/ckptsyncd}"
job=${SLURM_JOB_ID:?}
# A job that is requeued keeps its id; a job of an array is named by both numbers.
run=${SLURM_ARRAY_JOB_ID:-$job}${SLURM_ARRAY_TASK_ID:+_$SLURM_ARRAY_TASK_ID}
node=${SLURM_NODEID:-0}
url=$DESTINATION/$run/node-$node
watched=$DISK/$job
place=$RUN_DIR/$job

mkdir -p "$LOG_DIR" "$RUN_DIR"
install -d -m 0700 -o "${SLURM_JOB_UID:?}" -g "${SLURM_JOB_GID:?}" "$watched" "$place" || exit 0
log=$LOG_DIR/$job.log
# The program as the job's user. No function: the process in the background must be the program itself.
set -- setpriv --reuid "$SLURM_JOB_UID" --regid "$SLURM_JOB_GID" --clear-groups --no-new-privs "$CKPTSYNCD"
"$@" restore "$url" "$watched" --if-empty --or-start-afresh >>"$log" 2>&1
code=$?
if [ "$code" != 0 ]; then
  echo "ckptsyncd: nothing was restored from $url (exit code $code); see $log and 'ckptsyncd verify'"
  exit 1
fi

# In a session of its own, for the prolog's processes may be ended with it; the epilog ends this one.
setsid "$@" run "$watched" "$url" --socket "$place/s" --state-dir "$place/state" \
  --log-format json >>"$log" 2>&1 </dev/null &
echo $! >"$place.pid"
exit 0
