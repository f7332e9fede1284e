"""CPU per token event of the load generator against a minimal Python client (aiohttp, one coroutine per stream, json.loads per event).

Both on the same paced server, 1,000 streams, 20,000 tokens/s in bursts of 256, alternating; one processor for the server, one for the
client. The value is the median over rounds of theirs / ours. Stamp errors of both sides are printed: stamp - time before the send.
"""
import json
import os
import statistics
import struct
import subprocess
import sys
import tempfile

STREAMS, TOKENS, RATE, BURST, ROUNDS = 1000, 200, 20000, 256, 3
bench = sys.argv[1]
CLIENT = r"""
import asyncio, json, resource, struct, sys, time
import aiohttp

async def stream(session, url, index, stamps, gate):
    body = {"model": "paced", "prompt": "one two three four five six seven eight", "max_tokens": 2, "stream": True}
    async with session.post(url, json=body, headers={"X-Request-Id": f"aiohttp-{index}"}) as answer:
        gate.release()
        token = 0
        async for line in answer.content:
            if not line.startswith(b"data: "):
                continue
            now = time.monotonic_ns()
            if line.startswith(b"data: [DONE]"):
                break
            event = json.loads(line[6:])
            if event["choices"] and event["choices"][0]["text"]:
                stamps.append((index, token, now))
                token += 1

async def main(port, streams):
    stamps, gate = [], asyncio.Semaphore(0)
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=600), read_bufsize=1 << 16) as session:
        tasks = [asyncio.create_task(stream(session, f"http://127.0.0.1:{port}/v1/completions", i, stamps, gate)) for i in range(streams)]
        for _ in range(streams):
            await gate.acquire()
        before = time.process_time()
        await asyncio.gather(*tasks)
        print(time.process_time() - before, len(stamps))
    with open(sys.argv[3], "wb") as out:
        for s in stamps:
            out.write(struct.pack("<IIq", *s))

asyncio.run(main(int(sys.argv[1]), int(sys.argv[2])))
"""

try:
    import aiohttp  # noqa: F401
except ImportError:
    sys.exit("client-cost: the peer needs Debian's python3-aiohttp: apt-get install python3-aiohttp")


def percentiles(errors_us):
    errors_us.sort()
    return {p: round(errors_us[min(len(errors_us) - 1, int(p / 100 * len(errors_us)))], 1) for p in (50, 99)}


def theirs(scratch):
    log, stamps = scratch + "/log", scratch + "/stamps"
    server = subprocess.Popen([bench, "serve", str(STREAMS), str(TOKENS), str(RATE), str(BURST), log], stdout=subprocess.PIPE, text=True)
    port = server.stdout.readline().strip()
    first = min(os.sched_getaffinity(0))
    client = subprocess.run([sys.executable, "-c", CLIENT, port, str(STREAMS), stamps], capture_output=True, text=True,
                            preexec_fn=lambda: os.sched_setaffinity(0, {first}))
    server.wait()
    assert client.returncode == 0, client.stderr
    cpu, events = client.stdout.split()
    sent = {(r, t): at for r, t, at, _ in struct.iter_unpack("<IIqq", open(log, "rb").read())}
    errors = [(at - sent[r, t]) / 1e3 for r, t, at in struct.iter_unpack("<IIq", open(stamps, "rb").read())]
    return float(cpu) / int(events) * 1e6, int(events), percentiles(errors)


scratch = tempfile.mkdtemp(prefix="goodput-client-cost-")
ours_us, theirs_us = [], []
for i in range(ROUNDS):
    done = subprocess.run([bench, "row"], stdout=subprocess.PIPE, text=True)
    ours = json.loads(done.stdout.splitlines()[-1])
    assert ours["events"] == ours["expected"] == STREAMS * TOKENS, ours
    cost, events, error = theirs(scratch)
    assert events == STREAMS * TOKENS, events
    ours_us.append(ours["cpu_us_per_event"])
    theirs_us.append(cost)
    print(f"round {i + 1}: ours {ours_us[-1]:.2f} us/event, stamps off by p50 {ours['kernel_p50_us']} p99 {ours['kernel_p99_us']} us; "
          f"aiohttp {cost:.1f} us/event, stamps off by p50 {error[50]} p99 {error[99]} us", file=sys.stderr)
ratio = statistics.median(t / o for t, o in zip(theirs_us, ours_us))
print(json.dumps({"name": "client-cost", "value": round(ratio, 2), "unit": "aiohttp CPU per event / ours", "bar": 5, "better": "higher",
                  "ok": ratio >= 5, "ours_us": ours_us, "aiohttp_us": theirs_us, "ours_stamp_error_us": {"p50": ours["kernel_p50_us"],
                  "p99": ours["kernel_p99_us"]}, "aiohttp_stamp_error_us": {"p50": error[50], "p99": error[99]}}))
