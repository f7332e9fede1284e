#!/bin/sh
# ./run measure NAME: prints what it does and, as its last line, one JSON object
# {"name","value","unit","bar","ok","better",…}. Each figure of the README comes from here.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
bin="$root/build/release"

list() {
  cat <<'TEXT'
./run measure NAME, where NAME is one of
  scheduler-step      one scheduling decision at 256 running sequences (microseconds; bar 10)
  simulate-speed      sequence-steps per second of the screen on one core (bar 2,000,000)
  trace-memory        growth of the peak while two million rows are read (KiB; bar 1024)
  decode-throughput   tokens/s through HTTP over llama-batched-bench of the same source (ratio; bar 0.92; builds the peer)
  streams             CPU per token event at 10,000 streams on one core (us; bar 8)
  stamp-error         kernel stamps against the server's send times at 10,000 streams (us at p99; bar 50)
  client-cost         CPU per token event of a minimal aiohttp client over ours (ratio; bar 5; needs python3-aiohttp)
  pacing              dispatch delay at 2,000 requests/s (us at p99; bar 200)
  coverage            worst coverage of the 95 % intervals and of --until over 1,000 simulated experiments (share; bar 0.93)
  prediction          a default map: largest prediction error over its bar (bar 1; five minutes)
TEXT
}

case "${1:-}" in
  scheduler-step) exec "$bin/bench/bench_scheduler_step" ;;
  simulate-speed) exec "$bin/bench/bench_simulate_speed" ;;
  trace-memory) shift; exec "$bin/bench/bench_trace_memory" "$@" ;;
  coverage) exec "$bin/bench/bench_coverage" ;;
  decode-throughput) "$root/run" peers && exec python3 "$root/bench/decode_throughput.py" "$bin/src/goodput" "$root/.deps/peers/bin/llama-batched-bench" ;;
  streams|stamp-error) exec "$bin/bench/bench_streams" "$1" ;;
  client-cost)
    python=python3
    python3 -c "import aiohttp" 2>/dev/null || python=/usr/bin/python3  # Debian packages belong to the system's own
    exec "$python" "$root/bench/client_cost.py" "$bin/bench/bench_streams" ;;
  pacing) exec "$bin/bench/bench_pacing" ;;
  prediction) shift; exec python3 "$root/bench/prediction.py" "$bin/src/goodput" "$@" ;;
  ""|help|list) list ;;
  *) echo "run measure: unknown figure '$1'" >&2; list >&2; exit 2 ;;
esac
