#!/usr/bin/env bash
# The real job, end to end: services under a real HTTP load tool, far above their limits, over sockets.
#
#   tests/load.sh [SECONDS]
#
# 1. memory: one process of the `compose` example, 1000 requests in each hour of the clock per API key;
# 2. redis: two processes of the `redis` example behind one Redis, 10000 requests a day per API key, over both.
#
# Each run uses a fresh API key and prints how many requests were admitted and how many its quota allows:
#   memory: admitted <n> allowed <n>
# The quotas are windows of the clock, so the numbers must be equal, not close. Fails when they are not.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-6}
scripts/install redis-server wrk
cargo build --release --quiet -p tower-quota-examples --examples
programs=${CARGO_TARGET_DIR:-target}/release/examples

work=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; wait; rm -rf "$work"' EXIT

# Counts the answers of each status over all of wrk's threads.
cat > "$work/count.lua" <<'LUA'
local threads = {}
function setup(thread) table.insert(threads, thread) end
function init(args)
  wrk.headers["x-api-key"] = args[1]
  admitted, refused, other = 0, 0, 0
end
function response(status)
  if status == 200 then admitted = admitted + 1
  elseif status == 429 then refused = refused + 1
  else other = other + 1 end
end
function done(summary)
  local sum = { admitted = 0, refused = 0, other = 0 }
  for _, thread in ipairs(threads) do
    for what in pairs(sum) do sum[what] = sum[what] + thread:get(what) end
  end
  io.write(string.format("%d %d %d %d\n", sum.admitted, sum.refused, sum.other, summary.errors.timeout))
end
LUA

# serve LOG EXAMPLE: starts an example on a free port; its address ends up in $address.
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

# hammer LOG ADDRESS KEY: runs wrk and leaves its four sums in LOG.
hammer() {
  wrk --threads 1 --connections 64 --duration "${seconds}s" --script "$work/count.lua" "$2" -- "$3" \
    | tail -n 1 > "$work/$1"
}

# clear_of PERIOD: waits until no window of that many seconds ends during the run.
clear_of() {
  local left=$(($1 - $(date +%s) % $1))
  [ "$left" -gt $((seconds + 5)) ] || sleep $((left + 1))
}

# report WHAT ALLOWED LOG...
report() {
  local what=$1 allowed=$2
  shift 2
  awk -v what="$what" -v allowed="$allowed" '
    { admitted += $1; refused += $2; other += $3; lost += $4 }
    END {
      printf "%s: %d refused, %d of another status, %d timed out\n", what, refused, other, lost
      printf "%s: admitted %d allowed %d\n", what, admitted, allowed
      exit !(admitted == allowed && refused > allowed && other == 0)
    }' "${@/#/$work/}"
}

key="load-$$-$(date +%s)"

clear_of 3600
serve memory.log compose
hammer memory.sums "$address" "$key"
report memory 1000 memory.sums

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

clear_of 86400
serve one.log redis && one=$address
serve two.log redis && two=$address
hammer one.sums "$one" "$key" &
first=$!
hammer two.sums "$two" "$key" &
second=$!
wait "$first" "$second"
report redis 10000 one.sums two.sums
