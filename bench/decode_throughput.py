"""Decode throughput through HTTP against llama-batched-bench of the same source.

The base model on one pinned processor, 8 concurrent streams; the client on another processor. Both sides alternate in one run; the
value is the median over rounds of ours ÷ theirs, in generated tokens per second of the decode phase. Sampling: llama-batched-bench
samples nothing, so ours is scored on the engine's decode time from the step log, and the value with sampling is printed beside it.
"""
import concurrent.futures
import http.client
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time

ROUNDS, STREAMS, PROMPT, OUTPUT = 5, 8, 32, 128
goodput, batched_bench = sys.argv[1], sys.argv[2]
cpus = sorted(os.sched_getaffinity(0))
engine_cpu, client_cpu = cpus[0], cpus[-1]
os.sched_setaffinity(0, {client_cpu})
scratch = tempfile.mkdtemp(prefix="goodput-decode-")
model = scratch + "/base.gguf"
subprocess.run([goodput, "model", "synth", "--size", "base", "-o", model], check=True, stdout=subprocess.DEVNULL)


def stream(port, seed):
    """One request; the time of its first and last token and their number."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    prompt = [(seed * 7919 + i * 104729) % 20000 + 300 for i in range(PROMPT)]
    connection.request("POST", "/v1/completions", json.dumps({
        "prompt": prompt, "max_tokens": OUTPUT, "ignore_eos": True, "temperature": 0, "stream": True,
        "stream_options": {"include_usage": True}}), {"Content-Type": "application/json"})
    answer = connection.getresponse()
    assert answer.status == 200, answer.read()
    for line in answer:
        if line.startswith(b'data: {"') and b'"goodput"' in line:
            times = json.loads(line[6:])
    connection.close()
    server = times["goodput"]
    return server["first_token_ns"], server["last_token_ns"], times["usage"]["completion_tokens"]


def ours():
    log = scratch + "/steps.bin"
    server = subprocess.Popen([goodput, "serve", "--json", "--model", model, "--port", "0", "--cpus", str(engine_cpu), "--threads", "1",
                               "--max-num-seqs", str(STREAMS), "--max-num-batched-tokens", "512", "--max-model-len", "512",
                               "--kv-tokens", "4096", "--enable-prefix-caching", "false", "--step-log", log],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        port = json.loads(server.stdout.readline())["port"]
        with concurrent.futures.ThreadPoolExecutor(STREAMS) as pool:
            spans = list(pool.map(lambda i: stream(port, i), range(STREAMS)))
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait()
    # While all streams decode: from the last first token to the first last token.
    start, end = max(s[0] for s in spans), min(s[1] for s in spans)
    steps = json.loads(subprocess.run([goodput, "steps", log, "--json"], check=True, capture_output=True).stdout)
    inside = [s for s in steps if s["start_ns"] >= start and s["start_ns"] + s["duration_ns"] <= end and s["decodes"] == STREAMS]
    tokens = sum(s["decodes"] for s in inside)
    wall = inside[-1]["start_ns"] + inside[-1]["duration_ns"] - inside[0]["start_ns"]
    sampling = sum(s["sampling_ns"] for s in inside)
    return tokens / ((wall - sampling) * 1e-9), tokens / (wall * 1e-9)


def theirs():
    done = subprocess.run(["taskset", "-c", str(engine_cpu), batched_bench, "-m", model, "-c", "4096", "-b", "512", "-ub", "512", "-npp",
                           str(PROMPT), "-ntg", str(OUTPUT), "-npl", str(STREAMS), "-t", "1", "-tb", "1", "-kvu", "-fa", "on"],
                          capture_output=True, text=True)
    rows = re.findall(r"^\|\s*%d\s*\|\s*%d\s*\|\s*%d\s*\|.*$" % (PROMPT, OUTPUT, STREAMS), done.stdout, re.M)
    assert rows, done.stdout + done.stderr
    return float(rows[-1].split("|")[8])  # S_TG t/s


print(f"base model, {STREAMS} streams, prompt {PROMPT}, output {OUTPUT}; engine on processor {engine_cpu}, client on {client_cpu}")
pairs = []
for i in range(ROUNDS):
    (without, full), peer = ours(), theirs()
    pairs.append((without, full, peer))
    print(f"round {i + 1}: goodput {without:8.1f} tokens/s without sampling, {full:8.1f} with; llama-batched-bench {peer:8.1f}; "
          f"ratio {without / peer:.3f}", flush=True)
value = statistics.median(w / p for w, _, p in pairs)
with_sampling = statistics.median(f / p for _, f, p in pairs)
print(json.dumps({"name": "decode-throughput", "value": round(value, 4), "unit": "ratio", "bar": 0.92, "better": "higher", "ok": value >= 0.92,
                  "with_sampling": round(with_sampling, 4), "goodput_tokens_per_s": round(statistics.median(w for w, _, _ in pairs), 1),
                  "peer_tokens_per_s": round(statistics.median(p for _, _, p in pairs), 1), "rounds": ROUNDS}))
