#!/bin/sh
# Slurm epilog (Epilog= in slurm.conf, runs as root on every node when its part of a job is over): waits
# until everything finished is safe, for DRAIN_SECONDS at most, and ends the sidecar that the prolog
# started. The local copy goes only if nothing of it was left unsafe.
set -u
# shellcheck source=/dev/null
[ -r /etc/ckptsyncd/slurm.env ] && . /etc/ckptsyncd/slurm.env
: "${DISK:=/local}" "${CKPTSYNCD:=/opt/ckptsyncd/bin/ckptsyncd}" "${DRAIN_SECONDS:=600}"
: "${RUN_DIR:=/run/ckptsyncd-slurm}" "${LOG_DIR:=/var/log/ckptsyncd}"
job=${SLURM_JOB_ID:?}
place=$RUN_DIR/$job
log=$LOG_DIR/$job.log
[ -r "$place.pid" ] || exit 0

"$CKPTSYNCD" drain --deadline "${DRAIN_SECONDS}s" --socket "$place/s" >>"$log" 2>&1
code=$?
pid=$(cat "$place.pid")
kill -TERM "$pid" 2>>"$log"
# It ends within its stop timeout (8 s), and must not meet the sidecar of a job that is requeued here.
seconds=0
while kill -0 "$pid" 2>/dev/null && [ "$seconds" -lt 15 ]; do
  sleep 1
  seconds=$((seconds + 1))
done
if [ "$code" = 0 ]; then
  rm -rf "${DISK:?}/$job"
else
  echo "ckptsyncd: job $job left unsafe bytes in $DISK/$job (exit code $code); see $log"
fi
rm -rf "$place" "$place.pid"
exit 0
