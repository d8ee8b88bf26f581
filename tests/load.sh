#!/usr/bin/env bash
# Loads services with wrk, far above the limits, and compares the admitted requests with the quotas.
#
#   tests/load.sh [--busy] [--seconds N] [TIMES]
#
# 1. memory: a process of the `compose` example. An API key has 1000 requests in an hour of the clock.
# 2. redis: two processes of the `redis` example with the same Redis. An API key has 10000 requests a day in both together.
#
# A run uses a new API key. The script prints the number of counted requests, and the number that the quota allows:
#   memory: counted 1000 allowed 1000 degraded 0
# The quotas are windows of the clock, so both numbers must be equal. If the store is too slow, the examples admit requests
# without counting. The answers then have `x-ratelimit-policy: degraded`, and the script counts them as degraded.
# --busy adds a process that keeps a core busy. TIMES repeats both runs.
set -euo pipefail
cd "$(dirname "$0")/.."
busy= seconds=6 times=1
while [ $# -gt 0 ]; do
  case $1 in
    --busy) busy=1 ;;
    --seconds) seconds=$2 && shift ;;
    *) times=$1 ;;
  esac
  shift
done
scripts/install redis-server wrk
cargo build --release --quiet -p tower-quota-examples --examples
programs=${CARGO_TARGET_DIR:-target}/release/examples

work=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; wait; rm -rf "$work"' EXIT

# Counts the answers of every kind over all threads of wrk.
cat > "$work/count.lua" <<'LUA'
local threads = {}
local kinds = { "counted", "degraded", "refused", "other" }
function setup(thread) table.insert(threads, thread) end
function init(args)
  wrk.headers["x-api-key"] = args[1]
  counted, degraded, refused, other = 0, 0, 0, 0
end
function response(status, headers)
  local policy
  for name, value in pairs(headers) do
    if name:lower() == "x-ratelimit-policy" then policy = value end
  end
  if status == 200 and policy == "degraded" then degraded = degraded + 1
  elseif status == 200 then counted = counted + 1
  elseif status == 429 then refused = refused + 1
  else other = other + 1 end
end
function done(summary)
  for _, kind in ipairs(kinds) do
    local sum = 0
    for _, thread in ipairs(threads) do sum = sum + thread:get(kind) end
    io.write(sum, " ")
  end
  io.write(summary.errors.timeout, "\n")
end
LUA

# serve LOG EXAMPLE   starts an example on a free port, and sets $address.
serve() {
  PORT=0 "$programs/$2" > "$work/$1" &
  for _ in $(seq 100); do
    address=$(sed -n 's|^listening on \(http://[^ ]*\).*|\1|p' "$work/$1")
    [ -n "$address" ] && return
    sleep 0.1
  done
  echo "$2 did not start" >&2
  exit 1
}

# run_wrk LOG ADDRESS KEY   runs wrk, and writes the sums to LOG.
run_wrk() {
  wrk --threads 1 --connections 64 --duration "${seconds}s" --script "$work/count.lua" "$2" -- "$3" \
    | tail -n 1 > "$work/$1"
}

# clear_of PERIOD   waits until no window of PERIOD seconds can end during the run.
clear_of() {
  local left=$(($1 - $(date +%s) % $1))
  [ "$left" -gt $((seconds + 5)) ] || sleep $((left + 1))
}

# report WHAT ALLOWED LOG...   prints the sums of a run, and fails if the number of counted requests is wrong.
report() {
  local what=$1 allowed=$2
  shift 2
  awk -v what="$what" -v allowed="$allowed" '
    { counted += $1; degraded += $2; refused += $3; other += $4; lost += $5 }
    END {
      printf "%s: counted %d allowed %d degraded %d\n", what, counted, allowed, degraded
      printf "%s: %d refused, %d of another status, %d timed out\n", what, refused, other, lost
      exit !(counted == allowed && refused > allowed && other == 0)
    }' "${@/#/$work/}"
}

if [ -n "$busy" ]; then
  while :; do :; done &
fi
serve memory.log compose && memory=$address

mkdir "$work/redis"
for port in $(seq 26379 26479); do
  (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || break
done
redis-server --port "$port" --bind 127.0.0.1 --save '' --appendonly no --dir "$work/redis" > /dev/null &
for _ in $(seq 100); do
  (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null && break
  sleep 0.1
done
export REDIS_URL="redis://127.0.0.1:$port"
serve one.log redis && one=$address
serve two.log redis && two=$address

for run in $(seq "$times"); do
  [ "$times" -eq 1 ] || echo "run $run of $times"
  key="load-$$-$run-$(date +%s)"
  clear_of 3600
  run_wrk memory.sums "$memory" "$key"
  report memory 1000 memory.sums
  clear_of 86400
  run_wrk one.sums "$one" "$key" &
  first=$!
  run_wrk two.sums "$two" "$key" &
  second=$!
  wait "$first" "$second"
  report redis 10000 one.sums two.sums
done
