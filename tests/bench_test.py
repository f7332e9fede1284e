"""goodput bench from outside, against `serve --simulate`: command lines of vLLM's bench, the result file, the tables,
Ctrl-C, and what wrong input is answered with."""
import glob
import json
import os
import re
import signal
import socket
import subprocess
import threading
import time

from harness import GOODPUT, SCRATCH, goodput, run

SERVER = subprocess.Popen([GOODPUT, "serve", "--simulate", "--port", "0", "--json"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          text=True)
PORT = json.loads(SERVER.stdout.readline())["port"]
URL = f"http://127.0.0.1:{PORT}"
SHORT = ["--random-input-len", "16", "--random-output-len", "4"]
# A shared machine may make any point INVALID (contended); that is a verdict, not a failure.
FINE = (0, 5)


def bench(*arguments, codes=FINE, **options):
    done = goodput("bench", *arguments, **options)
    assert done.returncode in codes, f"{arguments}: exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def vllm_script_by_name_alone():
    """What stands behind `vllm bench` in a script, unchanged."""
    arguments = f"""serve --backend openai-chat --base-url {URL} --endpoint /v1/chat/completions --model tiny
        --tokenizer org/model --tokenizer-mode auto --skip-tokenizer-init --trust-remote-code --dataset-name random
        --random-input 16 --random_output_len 4 --random-range-ratio 0.5 --num-prompts 12 --request-rate inf --burstiness 1.0
        --max-concurrency 4 --ignore-eos --temperature 0 --top-p 0.9 --seed 3 --num-warmups 2 --ready-check-timeout-sec 30
        --goodput ttft:60000 tpot:60000 e2el:60000 --percentile-metrics ttft,tpot,itl,e2el --metric-percentiles 50,99.9
        --disable-tqdm --header X-Run=7 --request-id-prefix bench-""".split()
    done = bench(*arguments)
    for label, form in (("Successful requests:", "12"), ("Failed requests:", "0"), ("Maximum request concurrency:", "4"),
                        ("Benchmark duration \\(s\\):", r"\d+\.\d\d"), ("Total generated tokens:", r"\d+"),
                        ("Request goodput \\(req/s\\):", r"\d+\.\d\d"), ("Peak concurrent requests:", r"\d+\.00"),
                        ("Mean TTFT \\(ms\\):", r"\d+\.\d\d"), ("P99.9 E2EL \\(ms\\):", r"\d+\.\d\d")):
        assert re.search(f"^{label} +{form}", done.stdout, re.M), f"{label}\n{done.stdout}"
    assert "============ Serving Benchmark Result ============" in done.stdout
    assert "100 % (" in done.stdout and ("VALID" in done.stdout)
    assert "org/model" not in done.stderr, "--disable-tqdm is quiet"


def default_names_and_metadata():
    folder = f"{SCRATCH}/results/new"
    bench("--base-url", URL, *SHORT, "--num-prompts", "6", "--request-rate", "50", "--save-result", "--result-dir", folder, "--metadata",
          "tp=2", "note=a=b", "--label", "mine")
    names = os.listdir(folder)
    assert len(names) == 1 and re.fullmatch(r"mine-50\.0qps-tiny-\d{8}-\d{6}\.json", names[0]), names
    text = open(f"{folder}/{names[0]}").read()
    assert '"request_rate": 50.0' in text, "as json.dump writes it"
    result = json.loads(text)
    assert result["tp"] == "2" and result["note"] == "a=b" and result["label"] == "mine"
    assert result["completed"] == 6 and result["num_prompts"] == 6 and result["total_output_tokens"] == 24
    assert result["request_goodput"] is None and result["max_concurrency"] is None
    assert "ttfts" not in result and "mean_e2el_ms" not in result
    assert result["goodput"]["verdict"] and result["goodput"]["distinct_prompts"] == 6


def append_twice_and_details():
    file = f"{SCRATCH}/results/all.json"
    for seed in (1, 2):
        bench("--base-url", URL, *SHORT, "--num-prompts", "5", "--max-concurrency", "2", "--save-result", "--save-detailed",
              "--append-result", "--result-dir", f"{SCRATCH}/results", "--result-filename", "all.json", "--seed", seed)
    lines = open(file).read().split("\n")
    assert len(lines) == 2, "one result a line, as vLLM appends"
    for line in lines:
        result = json.loads(line)
        for key in ("input_lens", "output_lens", "ttfts", "itls", "start_times", "queue_times", "latencies", "generated_texts", "errors"):
            assert len(result[key]) == 5, key
        assert all(0 < t < 60 for t in result["ttfts"]), "seconds"
        mean = 1000 * sum(result["ttfts"]) / 5
        assert abs(mean - result["mean_ttft_ms"]) < 1e-6 * mean, "the summary is in milliseconds"
        assert result["errors"] == [""] * 5
    bench("--base-url", URL, *SHORT, "--num-prompts", "5", "--max-concurrency", "2", "--save-result", "--result-dir", f"{SCRATCH}/results",
          "--result-filename", "all.json")
    assert json.loads(open(file).read())["completed"] == 5, "without --append-result the file is replaced"
    assert not glob.glob(f"{SCRATCH}/results/*tmp*")


def json_is_the_result_file():
    done = bench("--base-url", URL, *SHORT, "--num-prompts", "5", "--max-concurrency", "2", "--json", "--goodput", "ttft:60000")
    result = json.loads(done.stdout)
    assert result["request_rate"] == "inf" and result["backend"] == "openai" and result["goodput"]["interrupted"] is False
    assert result["request_goodput"] > 0


def tables():
    def shown(*more):
        return bench("--base-url", URL, *SHORT, "--num-prompts", "5", "--max-concurrency", "2", *more)

    assert "first_token latency(min, max, ave): 0." in shown("--table", "lmdeploy").stdout
    assert "Succeed requests" in shown("--table", "evalscope").stdout
    assert "平均首字延迟" in shown("--table", "evalscope", "--lang", "zh").stdout
    done = shown("--table", "dbgpt")
    header, row = done.stdout.strip().split("\n")
    assert len(header.split(",")) == len(row.split(",")) == 11 and row.startswith("tiny,")
    assert "VALID" in done.stderr, "what would spoil the CSV goes to stderr"
    plain = shown("--plain").stdout
    assert "Successful requests:\t5\n" in plain and "====" not in plain


def dry_run():
    done = bench("--base-url", "http://127.0.0.1:9", "--request-rate", "0.21", "--burstiness", "inf", "--num-prompts", "31", "--dry-run",
                 codes=(0,))
    for word in ("31,", "143 s", "descriptors", "memory"):
        assert word in done.stdout, done.stdout
    plan = json.loads(bench("--max-concurrency", "8", "--dry-run", "--json", codes=(0,)).stdout)
    assert plan["requests"] == 1000 and plan["descriptors"] == 72 and plan["prompt_tokens"] == 1024000
    script = f"ulimit -n 100; exec {GOODPUT} bench --max-concurrency 200 --dry-run"
    few = subprocess.run(["sh", "-c", script], capture_output=True, text=True)
    assert few.returncode == 1 and "too few" in few.stdout, few


def interrupted_reports_what_there_is():
    folder = f"{SCRATCH}/stopped"
    process = subprocess.Popen([GOODPUT, "bench", "--base-url", URL, *SHORT, "--request-rate", "50", "--num-prompts", "100000", "--save-result",
                                "--result-dir", folder, "--result-filename", "r.json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    watcher = threading.Timer(60, process.kill)
    watcher.start()
    for line in process.stderr:  # it runs once it has told its schedule; give it a moment to have some answers
        if "schedule" in line:
            break
    time.sleep(1.5)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate()
    watcher.cancel()
    assert process.returncode == 130, (process.returncode, out, err)
    assert "Serving Benchmark Result" in out and "Stopped early" in out, out
    result = json.load(open(f"{folder}/r.json"))
    assert result["goodput"]["interrupted"] is True and 0 < result["completed"] < 100000


def refused(arguments, code, *words, **options):
    done = goodput("bench", *arguments, **options)
    assert done.returncode == code, f"{arguments}: exit {done.returncode}, expected {code}\n{done.stdout}\n{done.stderr}"
    assert done.stdout == "", done.stdout
    for word in words:
        assert word in done.stderr, f"{arguments}: expected {word!r} in\n{done.stderr}"


def wrong_input():
    here = ["--base-url", URL, *SHORT, "--num-prompts", "2"]
    refused([*here, "--dataset-name", "imaginary"], 2, "--dataset-name", "imaginary", "random")
    refused([*here, "--header", "no-value"], 2, "--header", "NAME=VALUE")
    refused([*here, "--extra-body", '{"a": '], 2, "--extra-body", "JSON object")
    refused([*here, "--random", "4"], 2, "ambiguous", "--random-input-len")
    refused([*here, "--profile"], 2, "--profile")
    refused([*here, "--plot-timeline"], 2, "--plot-timeline")
    refused([*here, "--max-concurency", "4"], 2, "did you mean '--max-concurrency'")
    refused([*here, "--num-prompts", "-3"], 2, "--num-prompts")
    file = f"{SCRATCH}/a-file"
    open(file, "w").close()
    refused([*here, "--save-result", "--result-dir", f"{file}/results"], 1, "a-file")
    refused([*here, "--model", "absent", "--request-rate", "10"], 3, "absent")


def unreachable_is_3():
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        free = closed.getsockname()[1]
    refused(["--port", str(free), *SHORT], 3, str(free))
    refused(["--port", str(free), *SHORT, "--ready-check-timeout-sec", "1"], 3, str(free))
    refused(["--host", "no.such.host.invalid", *SHORT], 3, "no.such.host.invalid")


def floor_is_4():
    done = bench("--base-url", URL, *SHORT, "--num-prompts", "40", "--max-concurrency", "2", "--goodput", "ttft:0.000001", "--floor", "0.5",
                 codes=(4, 5))
    assert re.search(r"Floor of 50 %: +fail", done.stdout), done.stdout


class Empty(threading.Thread):
    """Answers each POST with 200 and a stream without any text; keeps the requests."""

    def __init__(self):
        super().__init__(daemon=True)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.requests = []

    def run(self):
        while True:
            client, _ = self.listener.accept()
            threading.Thread(target=self.answer, args=(client,), daemon=True).start()

    def answer(self, client):
        with client, client.makefile("rb") as reader:
            while True:
                head = b""
                while not head.endswith(b"\r\n\r\n"):
                    line = reader.readline()
                    if not line:
                        return
                    head += line
                length = re.search(rb"content-length: (\d+)", head, re.I)
                body = reader.read(int(length[1])) if length else b""
                if head.startswith(b"GET"):
                    text, kind = b'{"data":[{"id":"m"}]}', b"application/json"
                else:
                    self.requests.append((head.decode(), json.loads(body)))
                    text = b'data: {"choices":[{"index":0,"delta":{"role":"assistant","content":null},"finish_reason":"stop"}]}\n\n'
                    text, kind = text + b"data: [DONE]\n\n", b"text/event-stream"
                client.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: " + kind + b"\r\nContent-Length: " + str(len(text)).encode() + b"\r\n\r\n" + text)


def case21_all_answers_empty():
    """... and, since this server sees them, what requests look like on the wire."""
    server = Empty()
    server.start()
    arguments = ["--port", server.port, "--backend", "openai-chat", "--served-model-name", "served", "--model", "org/full", *SHORT,
                 "--num-prompts", "3", "--request-rate", "50", "--temperature", "0.5", "--extra-body", '{"x": {"y": 1}}',
                 "--request-id-prefix", "id-", "--header", "X-A=b"]
    done = bench(*arguments, codes=(1,), OPENAI_API_KEY="top-secret-key")
    assert re.search("^Failed requests: +3", done.stdout, re.M) and "not available" in done.stdout, done.stdout
    for bad in ("nan", "inf ", "-1"):
        assert bad not in done.stdout.lower().replace("infinite", ""), done.stdout
    result = json.loads(bench(*arguments, "--json", "--save-detailed", codes=(1,), OPENAI_API_KEY="top-secret-key").stdout)
    assert result["mean_ttft_ms"] is None and result["failed"] == 3 and result["ttfts"] == [None] * 3
    assert result["model_id"] == "org/full"
    assert "top-secret-key" not in done.stdout + done.stderr + json.dumps(result)
    head, body = server.requests[0]
    assert body["model"] == "served" and body["temperature"] == 0.5 and body["x"] == {"y": 1}, body
    assert "Authorization: Bearer top-secret-key" in head and "X-A: b" in head and "POST /v1/chat/completions" in head
    assert sorted(re.search("X-Request-Id: (.*)\r", h)[1] for h, _ in server.requests[:3]) == ["id-0", "id-1", "id-2"]


try:
    run(vllm_script_by_name_alone, default_names_and_metadata, append_twice_and_details, json_is_the_result_file, tables, dry_run,
        interrupted_reports_what_there_is, wrong_input, unreachable_is_3, floor_is_4, case21_all_answers_empty)
finally:
    SERVER.kill()
    SERVER.wait()
