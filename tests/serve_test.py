"""goodput serve from outside: every endpoint, every refusal, and what must hold when clients vanish, queues fill, KV
runs out or the server is told to stop. Standard library only; GOODPUT names the binary.

Two servers: --simulate, whose tokens anyone can recompute from the request's id, and the real engine on the tiny model.
"""

import contextlib
import http.client
import json
import os
import random
import select
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest

GOODPUT = os.environ.get("GOODPUT", "goodput")
LIMIT = 600  # seconds before a wait counts as a hang; no test depends on how much shorter it was


class Server:
    """One process; killed by its own id at the end of the test."""

    def __init__(self, *flags, json_line=True):
        self.stderr = tempfile.TemporaryFile("w+")
        command = [GOODPUT, "serve", "--port", "0", "--json", *map(str, flags)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self.stderr, text=True)
        ready, _, _ = select.select([self.process.stdout], [], [], LIMIT)
        line = self.process.stdout.readline() if ready else ""
        if not line:
            raise AssertionError(f"the server did not start: {self.said()}")
        self.info = json.loads(line)
        self.port = self.info["port"]

    def __enter__(self):
        return self

    def __exit__(self, failed=None, *_):
        """Ends it as its owner would: without clients it drains at once, and a sanitizer says what it found and what leaked."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            if not failed and self.process.poll() is None:
                self.stop()
        code = self.process.poll()
        if code is None:
            self.process.kill()
            self.process.wait()
        said = self.said()
        self.process.stdout.close()
        self.stderr.close()
        if failed:
            print(f"the server (exit {code}) said: {said}", flush=True)
        else:
            assert code in (0, 128 + signal.SIGTERM), f"the server ended with {code}: {said}"  # the latter: told twice

    def said(self):
        self.stderr.seek(0)
        return self.stderr.read()

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=LIMIT)

    def call(self, method, path, body=None, headers=None):
        """(status, headers, parsed JSON or text)"""
        with contextlib.closing(self.connect()) as connection:
            data = json.dumps(body) if isinstance(body, (dict, list)) else body
            connection.request(method, path, data, headers or {})
            answer = connection.getresponse()
            text = answer.read().decode("utf-8")  # strict: whatever the tokens, the text is valid
            if "json" in answer.headers.get("Content-Type", ""):
                return answer.status, answer.headers, json.loads(text)
            return answer.status, answer.headers, text

    def complete(self, chat=False, **fields):
        path = "/v1/chat/completions" if chat else "/v1/completions"
        return self.call("POST", path, fields)

    def stream(self, chat=False, **fields):
        """The events of a stream, parsed; the last is '[DONE]'."""
        with contextlib.closing(self.connect()) as connection:
            path = "/v1/chat/completions" if chat else "/v1/completions"
            connection.request("POST", path, json.dumps(dict(fields, stream=True)))
            answer = connection.getresponse()
            body = answer.read().decode("utf-8")
            assert answer.status == 200, body
            assert answer.headers["Content-Type"].startswith("text/event-stream")
            return events_of(body)

    def metric(self, name, **labels):
        _, _, page = self.call("GET", "/metrics")
        for line in page.splitlines():
            if line.startswith(name + "{") and all(f'{k}="{v}"' in line for k, v in labels.items()):
                return float(line.rsplit(" ", 1)[1])
        raise AssertionError(f"no {name} {labels} in\n{page}")

    def wait_metric(self, name, value, **labels):
        until = time.monotonic() + LIMIT
        while (seen := self.metric(name, **labels)) != value:
            assert time.monotonic() < until, f"{name} stays {seen}, expected {value}"
            time.sleep(0.005)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(LIMIT)


def events_of(body):
    events = []
    for block in body.split("\n\n"):
        if block:
            assert block.startswith("data: ") and "\n" not in block, block
            events.append(block[6:] if block == "data: [DONE]" else json.loads(block[6:]))
    return events


def choices(events):
    return [e["choices"][0] for e in events if e != "[DONE]" and e.get("choices")]


def text_of(events, chat=False):
    return "".join(c["delta"].get("content", "") if chat else c["text"] for c in choices(events))


def mix64(z):
    mask = (1 << 64) - 1
    z = (z + 0x9E3779B97F4A7C15) & mask
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
    return z ^ (z >> 31)


def simulated_token(request, position, low, high):
    return low + (((mix64(request ^ mix64(position)) >> 32) * (high - low)) >> 32)


def simulated(*flags):
    return Server("--simulate", *flags)


FAST = ("--cost", "base_ns=200000,prefill_ns=1000,decode_ns=1000")
SLOW = ("--cost", "base_ns=20000000,prefill_ns=1000,decode_ns=1000")  # 20 ms a step


class Both:
    """What holds for any executor."""

    def test_stream_and_whole_answer_agree(self):
        for chat in (False, True):
            ask = dict(max_tokens=24, temperature=0, ignore_eos=True, return_token_ids=True)
            ask.update(dict(messages=[{"role": "user", "content": "Say it."}]) if chat else dict(prompt="Once upon"))
            events = self.server.stream(chat, stream_options={"include_usage": True}, **ask)
            status, _, whole = self.server.complete(chat, **ask)
            self.assertEqual(status, 200)
            self.assertEqual(events[-1], "[DONE]")
            usage = events[-2]
            self.assertEqual(usage["choices"], [])
            self.assertEqual(usage["usage"]["completion_tokens"], 24)
            self.assertEqual(usage["usage"]["total_tokens"], usage["usage"]["prompt_tokens"] + 24)
            self.assertEqual(whole["usage"]["prompt_tokens"], usage["usage"]["prompt_tokens"])
            parts = choices(events)
            self.assertEqual(len(parts), 24, "one event per token")
            self.assertEqual([p["finish_reason"] for p in parts], [None] * 23 + ["length"])
            self.assertEqual(whole["choices"][0]["finish_reason"], "length")
            if chat:
                self.assertEqual(parts[0]["delta"]["role"], "assistant")
                self.assertEqual(whole["choices"][0]["message"]["role"], "assistant")
            if self.repeats:  # the simulator's tokens depend on the request
                message = whole["choices"][0]
                self.assertEqual(text_of(events, chat), message["message"]["content"] if chat else message["text"])
                self.assertEqual([t for p in parts for t in p["token_ids"]], message["token_ids"])

    def test_server_times_are_in_order(self):
        times = self.server.stream(prompt="hello", max_tokens=5, ignore_eos=True,
                                   stream_options={"include_usage": True})[-2]["goodput"]
        order = [times[k] for k in ("arrived_ns", "queued_ns", "scheduled_ns", "first_token_ns", "last_token_ns")]
        self.assertEqual(order, sorted(order))
        self.assertLess(abs(order[-1] - time.clock_gettime_ns(time.CLOCK_MONOTONIC)), 600e9)
        self.assertEqual(times["preempted_in_prefill"], 0)

    def test_running_usage_counts_tokens_per_event(self):
        events = self.server.stream(prompt="count", max_tokens=20, ignore_eos=True,
                                    stream_options={"include_usage": True, "continuous_usage_stats": True})
        self.assertEqual([e["usage"]["completion_tokens"] for e in events[:-2]], list(range(1, 21)))

    def test_prompt_as_token_ids(self):
        status, _, answer = self.server.complete(prompt=[5, 6, 7, 8], max_tokens=3, ignore_eos=True)
        self.assertEqual(status, 200)
        self.assertEqual(answer["usage"]["prompt_tokens"], 4)
        self.refused(400, "prompt", prompt=[10**9], max_tokens=3)

    def test_second_prompt_hits_the_cache(self):
        prompt = list(range(300, 428))
        self.server.complete(prompt=prompt, max_tokens=2, ignore_eos=True)
        _, _, answer = self.server.complete(prompt=prompt, max_tokens=2, ignore_eos=True)
        cached = answer["usage"]["prompt_tokens_details"]["cached_tokens"]
        self.assertTrue(96 <= cached < 128, cached)
        self.assertGreater(self.server.metric("vllm:prefix_cache_hits_total"), 0)

    def test_models_health_metrics(self):
        status, _, models = self.server.call("GET", "/v1/models")
        self.assertEqual((status, models["data"][0]["id"]), (200, "tiny"))
        self.assertEqual(models["data"][0]["goodput"]["settings"]["max_num_seqs"], "16")
        self.assertEqual(self.server.call("GET", "/health")[0], 200)
        status, headers, page = self.server.call("GET", "/metrics")
        self.assertEqual(status, 200)
        self.assertTrue(headers["Content-Type"].startswith("text/plain; version=0.0.4"))
        typed = {line.split()[2] for line in page.splitlines() if line.startswith("# TYPE")}
        for line in page.splitlines():
            name = line.split("{")[0]
            base = name.removesuffix("_bucket").removesuffix("_sum").removesuffix("_count")
            self.assertTrue(line.startswith("#") or name in typed or base in typed, line)

    def refused(self, status, param, chat=False, **fields):
        got, headers, answer = self.server.complete(chat, **fields)
        self.assertEqual(got, status, answer)
        error = answer["error"]
        self.assertEqual(set(error), {"message", "type", "param", "code"})
        self.assertEqual(error["param"], param, error)
        return headers, error

    def test_refusals(self):
        self.refused(400, "prompt")
        self.refused(400, "max_tokens", prompt="x", max_tokens="many")
        self.refused(400, "n", prompt="x", n=2)
        self.refused(400, "echo", prompt="x", echo=True)
        self.refused(404, "model", prompt="x", model="gpt-5")
        _, error = self.refused(400, "max_tokens", prompt="x", max_tokens=100_000)
        self.assertEqual(error["code"], "context_length_exceeded")
        _, error = self.refused(400, "prompt", prompt="word " * 20_000)
        self.assertEqual(error["code"], "context_length_exceeded")
        _, error = self.refused(400, "messages", chat=True, messages=[{"role": "user", "content": "word " * 20_000}])
        self.assertEqual(error["code"], "context_length_exceeded")
        for body in ("", "{", "[1]", '{"prompt": "x"', b'{"prompt": "\xff\xfe"}', '{"a":' + "[" * 5000 + "]" * 5000 + "}"):
            status, _, answer = self.server.call("POST", "/v1/completions", body)
            self.assertEqual(status, 400, body)
            self.assertEqual(answer["error"]["type"], "invalid_request_error")

    def test_paths_and_methods(self):
        self.assertEqual(self.server.call("GET", "/v1/nothing")[0], 404)
        status, headers, answer = self.server.call("GET", "/v1/completions")
        self.assertEqual((status, headers["Allow"]), (405, "POST"))
        self.assertEqual(self.server.call("POST", "/metrics", "{}")[0], 405)
        self.assertEqual(self.server.call("HEAD", "/health")[0], 200)
        self.assertEqual(self.server.call("GET", "/health?verbose=1")[0], 200)

    def test_huge_body(self):
        status, _, answer = self.server.call("POST", "/v1/completions", b"x" * (17 << 20))
        self.assertEqual(status, 413)
        self.assertIn("larger than", answer["error"]["message"])

    def test_garbage_does_not_hurt(self):
        noise = random.Random(3)
        for _ in range(100):
            with socket.create_connection(("127.0.0.1", self.server.port)) as raw:
                with contextlib.suppress(OSError):
                    raw.sendall(noise.randbytes(noise.randrange(1, 2000)))
        self.assertEqual(self.server.call("GET", "/health")[0], 200)

    def test_stop_strings_are_never_shown(self):
        # What an answer says without a stop string tells where one would cut it.
        ask = dict(prompt="stop here", max_tokens=64, temperature=0, ignore_eos=True)
        _, _, free = self.server.complete(**ask)
        for stop in self.stop_strings(free["choices"][0]["text"]):
            events = self.server.stream(stop=stop, stream_options={"include_usage": True}, **ask)
            text, last = text_of(events), choices(events)[-1]
            for s in [stop] if isinstance(stop, str) else stop:
                self.assertNotIn(s, text)
            if last["finish_reason"] == "length":
                self.assertEqual(events[-2]["usage"]["completion_tokens"], 64)
            else:
                self.assertEqual(last["finish_reason"], "stop")
            self.assertEqual(len(choices(events)), events[-2]["usage"]["completion_tokens"])
            if self.repeats:
                self.assertEqual(last["finish_reason"], "stop")
                whole = free["choices"][0]["text"]
                stops = [stop] if isinstance(stop, str) else stop
                end, first = min((whole.find(s) + len(s), whole.find(s)) for s in stops)  # the one that ends first
                self.assertEqual(text, whole[:first])
        self.server.wait_metric("vllm:num_requests_running", 0)

    def test_a_vanished_client_frees_its_sequence(self):
        before = self.server.metric("vllm:request_success_total", finished_reason="abort")
        connection = self.server.connect()
        connection.request("POST", "/v1/completions",
                           json.dumps(dict(prompt="long", max_tokens=3000, ignore_eos=True, stream=True)))
        answer = connection.getresponse()
        self.assertTrue(answer.readline().startswith(b"data: "))
        connection.sock.shutdown(socket.SHUT_RDWR)
        connection.close()
        answer.close()
        self.server.wait_metric("vllm:num_requests_running", 0)
        self.server.wait_metric("vllm:request_success_total", before + 1, finished_reason="abort")

    def test_parallel_clients(self):
        failures = []

        def client(number):
            try:
                events = self.server.stream(prompt=f"client {number}", max_tokens=10 + number % 7, ignore_eos=True,
                                            return_token_ids=True, stream_options={"include_usage": True})
                self.check_tokens(events)
                assert events[-2]["usage"]["completion_tokens"] == 10 + number % 7
            except Exception as e:  # a thread's exception would be lost
                failures.append(f"{number}: {e!r}")

        threads = [threading.Thread(target=client, args=(i,)) for i in range(64)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(failures, [])
        self.server.wait_metric("vllm:num_requests_running", 0)

    def check_tokens(self, events):
        pass


class Simulated(Both, unittest.TestCase):
    repeats = False

    @classmethod
    def setUpClass(cls):
        cls.server = simulated(*FAST)
        cls.addClassCleanup(cls.server.__exit__)

    def stop_strings(self, _):
        return ["e", ["t", "an"], "\u2581never\u2581"]

    def check_tokens(self, events):
        low, high = self.server.info["simulated_tokens"]
        number = int(events[0]["id"].removeprefix("cmpl-"))
        prompt = events[-2]["usage"]["prompt_tokens"]
        tokens = [t for c in choices(events) for t in c["token_ids"]]
        expected = [simulated_token(number, prompt + i, low, high) for i in range(len(tokens))]
        assert tokens == expected, (tokens, expected)


class Real(Both, unittest.TestCase):
    repeats = True

    @classmethod
    def setUpClass(cls):
        cls.server = Server("--kv-tokens", 8192)
        cls.addClassCleanup(cls.server.__exit__)

    def stop_strings(self, text):
        found = [text[i:i + n] for i, n in ((3, 1), (10, 4), (20, 9)) if len(text) > i + n]
        return found + [[found[-1], found[0]]]


class Life(unittest.TestCase):
    """What needs a server of its own."""

    def test_a_full_queue_says_when_to_come_back(self):
        with simulated(*SLOW, "--max-num-seqs", 1, "--max-num-queued-reqs", 2) as server:
            ask = json.dumps(dict(prompt="x", max_tokens=1000, ignore_eos=True, stream=True))
            held = []
            for i in range(3):
                connection = server.connect()
                connection.request("POST", "/v1/completions", ask)
                held.append((connection, connection.getresponse()))
                self.assertEqual(held[-1][1].status, 200)
                server.wait_metric("vllm:num_requests_running", 1)
                server.wait_metric("vllm:num_requests_waiting", i)
            for stream in (False, True):
                status, headers, answer = server.complete(prompt="x", stream=stream)
                self.assertEqual(status, 503, answer)
                self.assertGreaterEqual(int(headers["Retry-After"]), 1)
                self.assertEqual(answer["error"]["code"], "queue_full")
            # Clients that wait in the queue may leave it as well.
            for connection, answer in held:
                connection.sock and connection.sock.shutdown(socket.SHUT_RDWR)
                answer.close()
                connection.close()
            server.wait_metric("vllm:num_requests_waiting", 0)
            server.wait_metric("vllm:num_requests_running", 0)

    def test_sigterm_drains(self):
        with tempfile.TemporaryDirectory() as folder:
            log = os.path.join(folder, "steps.bin")
            with simulated(*SLOW, "--step-log", log) as server:
                connection, idle = server.connect(), server.connect()
                idle.request("GET", "/health")
                idle.getresponse().read()
                connection.request("POST", "/v1/completions",
                                   json.dumps(dict(prompt="x", max_tokens=100, ignore_eos=True, stream=True,
                                                   stream_options={"include_usage": True})))
                answer = connection.getresponse()
                first = answer.readline()
                self.assertTrue(first.startswith(b"data: "))
                server.process.send_signal(signal.SIGTERM)
                until = time.monotonic() + LIMIT
                while server.call("GET", "/health")[0] != 503:
                    self.assertLess(time.monotonic(), until)
                status, headers, refusal = server.complete(prompt="y")
                self.assertEqual((status, refusal["error"]["code"]), (503, "shutting_down"))
                self.assertIn("Retry-After", headers)
                events = events_of((first + answer.read()).decode())
                self.assertEqual(events[-1], "[DONE]")
                self.assertEqual(events[-2]["usage"]["completion_tokens"], 100)
                connection.close()
                self.assertEqual(server.process.wait(LIMIT), 0)
                idle.close()
            self.assertGreater(os.path.getsize(log), 1000)

    def test_drain_limit_ends_what_is_left(self):
        with simulated(*SLOW, "--drain-limit", "100ms") as server:
            connection = server.connect()
            connection.request("POST", "/v1/completions",
                               json.dumps(dict(prompt="x", max_tokens=4000, ignore_eos=True, stream=True)))
            answer = connection.getresponse()
            first = answer.readline()
            self.assertEqual(server.stop(), 0)
            self.assertEqual(events_of((first + answer.read()).decode())[-1]["error"]["code"], "shutting_down")
            connection.close()

    def test_a_second_signal_ends_at_once(self):
        with simulated(*SLOW) as server:
            connection = server.connect()
            connection.request("POST", "/v1/completions",
                               json.dumps(dict(prompt="x", max_tokens=4000, ignore_eos=True, stream=True)))
            answer = connection.getresponse()
            answer.readline()
            server.process.send_signal(signal.SIGTERM)
            while server.call("GET", "/health")[0] != 503:
                pass
            server.process.send_signal(signal.SIGTERM)
            self.assertNotEqual(server.process.wait(LIMIT), 0)
            connection.close()

    def test_preemption_under_tiny_kv_completes_all(self):
        # 16 requests of 32 + 64 tokens need 96 blocks; there are 24.
        with simulated(*FAST, "--kv-tokens", 384, "--max-model-len", 256, "--enable-prefix-caching", "false") as server:
            results = []

            def client(number):
                events = server.stream(prompt=[300 + number] * 32, max_tokens=64, ignore_eos=True, return_token_ids=True,
                                       stream_options={"include_usage": True})
                low, high = server.info["simulated_tokens"]
                request = int(events[0]["id"].removeprefix("cmpl-"))
                tokens = [t for c in choices(events) for t in c["token_ids"]]
                results.append((tokens == [simulated_token(request, 32 + i, low, high) for i in range(64)],
                                events[-2]["goodput"]["preempted_in_decode"]))

            threads = [threading.Thread(target=client, args=(i,)) for i in range(16)]
            for t in threads:
                t.start()
            for t in threads:
                t.join()
            self.assertEqual([ok for ok, _ in results], [True] * 16)
            self.assertGreater(sum(n for _, n in results), 0)
            self.assertGreater(server.metric("vllm:num_preemptions_total"), 0)
            status, _, answer = server.complete(prompt=[300] * 250, max_tokens=7)
            self.assertEqual((status, answer["error"]["code"]), (400, "context_length_exceeded"))
            self.assertEqual(server.metric("vllm:kv_cache_usage_perc"), 0)

    def test_modelled_time_passes_in_real_time(self):
        with simulated(*SLOW) as server:
            before = time.monotonic()
            events = server.stream(prompt="x", max_tokens=20, ignore_eos=True, stream_options={"include_usage": True})
            took = time.monotonic() - before
            times = events[-2]["goodput"]
            step = (times["last_token_ns"] - times["first_token_ns"]) / 19
            self.assertGreaterEqual(took, 0.4)
            self.assertTrue(20_000_000 <= step < 20_100_000, step)  # the model's own time is exact

    def test_usage_errors(self):
        def run(*flags):
            done = subprocess.run([GOODPUT, "serve", *map(str, flags)], capture_output=True, text=True, timeout=LIMIT)
            self.assertEqual(done.stdout, "")
            return done.returncode, done.stderr

        with socket.socket() as taken, tempfile.NamedTemporaryFile(suffix=".gguf") as bad:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            code, said = run("--simulate", "--port", port)
            self.assertEqual(code, 2, said)
            self.assertIn(str(port), said)
            self.assertIn("--port", said)
            bad.write(b"not a model")
            bad.flush()
            code, said = run("--port", 0, "--model", bad.name)
            self.assertNotEqual(code, 0)
            self.assertIn(bad.name, said)
        for flags, name in (
            (("--model", "/no/such.gguf"), "/no/such.gguf"),
            (("--max-num-seqs", 0, "--simulate"), "max_num_seqs"),
            (("--max-num-seqs", 64, "--max-num-batched-tokens", 32, "--simulate"), "max_num_batched_tokens"),
            (("--speed", 2), "--simulate"),
            (("--simulate", "--cost", "base=3"), "base_ns"),
            (("--simulate", "--cost", "base_ns"), "--cost"),
            (("--simulate", "--cost-file", "/no/such.json"), "/no/such.json"),
            (("--simulate", "--drain-limit", "soon"), "soon"),
            (("--simulate", "--host", "no.such.host.invalid"), "no.such.host.invalid"),
        ):
            code, said = run("--port", 0, *flags)
            self.assertNotEqual(code, 0, flags)
            self.assertIn(name, said)


if __name__ == "__main__":
    unittest.main(verbosity=2)
