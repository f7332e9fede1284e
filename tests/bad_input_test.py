"""Wrong input: a clear sentence that names what, where and what to do, the designed exit code, and nothing half-written."""
import os
import socket
import subprocess
import threading

from harness import GOODPUT, SCRATCH, goodput, goodput_json, run


def refused(arguments, code, *words, **options):
    done = goodput(*arguments, **options)
    assert done.returncode == code, f"{arguments}: exit {done.returncode}, expected {code}\n{done.stderr}"
    assert done.stdout == "" or "--json" not in arguments, done.stdout
    for word in words:
        assert word in done.stderr, f"{arguments}: expected {word!r} in\n{done.stderr}"


def write(name, text):
    path = f"{SCRATCH}/{name}"
    with open(path, "wb") as file:
        file.write(text if isinstance(text, bytes) else text.encode())
    return path


def verbs_and_flags():
    refused(["mpa"], 2, "unknown verb 'mpa'", "did you mean 'map'")
    refused(["map", "--budgt", "5m"], 2, "--budgt", "did you mean '--budget'")
    refused(["map", "--budget", "soon"], 2, "soon", "30s")
    refused(["map", "--budget", "5s"], 2, "--budget", "at least")
    refused(["map", "--floor", "2"], 2, "floor")
    refused(["map", "--goodput", "ttfd:200"], 2, "ttfd", "ttft")
    refused(["map", "--engine-cpus", "977"], 2, "--engine-cpus", "977")
    refused(["map", "--max-num-seqs", "500", "--max-num-batched-tokens", "64"], 2)
    refused(["map", "--scheduling-policy", "fastest"], 2, "fastest", "fcfs")
    refused(["map", "--set", "block_sise=16"], 2, "block_sise", "block_size")
    refused(["map", "--launch", "server {prot}"], 2, "{prot}", "{port}")
    refused(["map", "--launch", "x {port}", "--base-url", "http://127.0.0.1:1"], 2, "exclude")
    refused(["bench", "--request-rate", "never"], 2, "--request-rate", "never")


def models():
    tiny = f"{SCRATCH}/tiny.gguf"
    assert goodput("model", "synth", "--size", "tiny", "-o", tiny).returncode == 0
    whole = open(tiny, "rb").read()
    cut = write("cut.gguf", whole[: len(whole) // 2])
    for verb in (["model", "info"], ["serve", "--port", "0", "--model"], ["map", "--model"]):
        refused([*verb, cut], 2, "cut.gguf", "truncated")
    for name, content in (("text.gguf", "hello"), ("empty.gguf", ""), ("zip.gguf", b"PK\x03\x04" + bytes(400))):
        done = goodput("model", "info", write(name, content))
        assert done.returncode in (1, 2) and name in done.stderr, done
    refused(["model", "info", f"{SCRATCH}/absent.gguf"], 2, "absent.gguf")
    refused(["map", "--model", "huge"], 2, "huge", "tiny")
    done = goodput("model", "synth", "--size", "tiny", "-o", "/proc/nowhere/x.gguf")
    assert done.returncode == 1 and "/proc/nowhere" in done.stderr, done


def study_files():
    for text, line, word in (("[workload]\nname = \n", ":2:", ""), ("[workload]\n[[workload.class]]\nname='a'\nshar=1\n", ":4:", "share"),
                             ("[workload]\n[[workload.class]]\nname='a'\nshare=-1\nprompt=32\noutput=8\n", ":4", "share"), ("", "", ""),
                             ("[workloda]\n", ":1:", "workload")):
        path = write("study.toml", text)
        refused(["map", "--workload", path], 2, f"study.toml{line}", word)
    refused(["map", "--workload", f"{SCRATCH}/absent.toml"], 2, "absent.toml")
    refused(["map", "--workload", SCRATCH], 2, "folder")
    here = f"{SCRATCH}/configured"
    os.makedirs(here, exist_ok=True)
    with open(f"{here}/goodput.toml", "w") as file:
        file.write("[map]\nbugdet = '5m'\n")
    refused(["map", "--dry-run"], 2, "goodput.toml:2", "bugdet", "budget", cwd=here)


def configuration_precedence():
    here = f"{SCRATCH}/precedence"
    os.makedirs(here, exist_ok=True)
    with open(f"{here}/goodput.toml", "w") as file:
        file.write("[map]\nbudget = '8m'\n")
    total = lambda *a, **e: goodput_json("map", "--dry-run", "--json", *a, cwd=here, **e)["seconds"]["total"]
    assert 400 < total() <= 480
    assert 500 < total(GOODPUT_MAP_BUDGET="10m") <= 600
    assert 200 < total("--budget", "4m", GOODPUT_MAP_BUDGET="10m") <= 240
    shown = lambda **e: {f["flag"]: f for f in goodput_json("config", "show", "map", "--json", cwd=here, **e)["flags"]}
    assert shown()["budget"] == {"flag": "budget", "value": "8m", "from": "goodput.toml:2"}, shown()["budget"]
    assert shown(GOODPUT_MAP_BUDGET="10m")["budget"]["from"] == "GOODPUT_MAP_BUDGET"
    assert shown()["seed"] == {"flag": "seed", "value": "1", "from": "default"}
    refused(["config", "show", "mpa"], 2, "no verb 'mpa'")
    refused(["config", "forget", "map"], 2, "show")


def ports_and_targets():
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    refused(["serve", "--simulate", "--port", port], 2, str(port))
    answers = threading.Thread(target=lambda: [listener.accept()[0].sendall(b"SSH-2.0-OpenSSH_9.2\r\n") for _ in range(8)], daemon=True)
    answers.start()
    refused(["bench", "--base-url", f"http://127.0.0.1:{port}", "--num-prompts", "2", "--request-rate", "10"], 3, "HTTP")
    listener.close()
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        free = closed.getsockname()[1]
    refused(["bench", "--base-url", f"http://127.0.0.1:{free}", "--num-prompts", "2", "--request-rate", "10"], 3, str(free))
    refused(["map", "--base-url", f"http://127.0.0.1:{free}", "--budget", "60s", "--out", f"{SCRATCH}/unreachable"], 3, str(free))
    refused(["bench", "--base-url", "ftp://127.0.0.1"], 2, "ftp")


def outputs():
    file = write("a-file", "x")
    refused(["map", "--simulate", "--budget", "45s", "--out", f"{file}/study"], 1, "a-file")
    full = f"{SCRATCH}/full"
    os.makedirs(full)
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", full], capture_output=True).returncode == 0
    if mounted:
        try:
            done = goodput("map", "--simulate", "--budget", "45s", "--out", f"{full}/study")
            assert done.returncode == 1, done
            assert "full" in done.stderr.lower() or "space" in done.stderr.lower(), done.stderr
            done = goodput("model", "synth", "--size", "tiny", "-o", f"{full}/m.gguf")
            assert done.returncode == 1 and not os.path.exists(f"{full}/m.gguf"), done
        finally:
            subprocess.run(["umount", full])


run(verbs_and_flags, models, study_files, configuration_precedence, ports_and_targets, outputs)
