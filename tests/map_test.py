"""goodput map from outside, on the simulated executor in real time: the whole study, killed and resumed, stopped early, launched."""
import json
import os
import random
import signal
import sqlite3
import subprocess
import time

from harness import GOODPUT, LIMIT, SCRATCH, goodput, run

SMALL = ["--simulate", "--budget", "45s", "--max-num-seqs", "4,16", "--max-num-batched-tokens", "256", "--kv-tokens", "16384", "--seed", "7"]
POINT_KEYS = {"executor", "settings", "offered_rate", "achieved_rate", "requests", "regime", "verdict", "attainment", "goodput_rps",
              "token_goodput", "ttft_ms", "tpot_ms", "itl_ms", "icl_ms", "e2e_ms", "by_class", "throughput", "observed", "outcomes"}
STUDY_KEYS = {"schema", "study_file", "report", "workload", "targets", "points", "capacity", "frontier", "chosen", "largest_batch",
              "offline_throughput", "background", "prediction_error"}


def study_of(*arguments):
    """The study of a map. On a busy machine its points may be INVALID and nothing chosen (exit 4): that is an answer too."""
    done = goodput(*arguments, "--json")
    assert done.returncode in (0, 4), f"{arguments}: exit {done.returncode}\n{done.stderr}"
    study = json.loads(done.stdout)
    if "--stop-after" not in arguments:
        assert (done.returncode == 0) == (study["chosen"] is not None), done.returncode
        assert study["chosen"] or study["notes"], "no choice, and no word why"
    return study


def hashes(out):
    """Every finished point's key and records hash, straight from the file."""
    path = f"{out}/study.db"
    if not os.path.exists(path):
        return {}
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=10)
    try:
        return dict(connection.execute("SELECT key, records_hash FROM points"))
    except sqlite3.OperationalError:
        return {}  # killed before the tables were there
    finally:
        connection.close()


def a_whole_study_answers():
    out = f"{SCRATCH}/whole"
    study = study_of("map", *SMALL, "--out", out)
    assert study["schema"] == "goodput.study/1"
    assert STUDY_KEYS <= study.keys(), STUDY_KEYS - study.keys()
    assert len(study["workload"]["hash"]) == 64
    for point in study["points"]:
        assert POINT_KEYS <= point.keys(), POINT_KEYS - point.keys()
    assert {c["settings"]["max_num_seqs"] for c in study["capacity"]} == {4, 16}
    assert study["frontier"], study["notes"]
    if chosen := study["chosen"]:
        assert chosen["goodput"]["low"] <= chosen["goodput"]["value"] <= chosen["goodput"]["high"]
        assert chosen["settings"]["max_num_seqs"] == 16 or f"--max-num-seqs {chosen['settings']['max_num_seqs']}" in chosen["flags"]
    assert os.path.getsize(study["report"]) > 50_000
    page = open(study["report"]).read()
    assert 'src="http' not in page and 'href="http' not in page, "the report must not ask the network for anything"
    shown = goodput("study", "show", f"{out}/study.db")
    assert shown.returncode == 0 and "measure" in shown.stdout, shown.stderr
    assert goodput("study", "verify", f"{out}/study.db").returncode == 0
    again = study_of("map", "--resume", "--out", out)  # nothing left to do: the same answer, at once
    assert again["points"] == study["points"] and again["chosen"] == study["chosen"] and again["capacity"] == study["capacity"]


def killed_at_any_instant_it_goes_on():
    out = f"{SCRATCH}/killed"
    rng = random.Random(20)
    known = {}
    for attempt in range(20):
        arguments = ["map", *SMALL, "--out", out, "--json"] if not os.path.exists(f"{out}/study.db") else ["map", "--resume", "--out", out,
                                                                                                        "--json"]
        process = subprocess.Popen([GOODPUT, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=SCRATCH)
        try:
            process.wait(timeout=rng.uniform(0.02, 6))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
        error = process.communicate()[1].decode()
        assert process.returncode in (0, -signal.SIGKILL), f"attempt {attempt}: exit {process.returncode}\n{error}"
        now = hashes(out)
        for key, value in known.items():
            assert now.get(key) == value, f"attempt {attempt}: point changed or lost: {key}"
        known = now
    study_of("map", "--resume", "--out", out)
    final = hashes(out)
    assert final and all(final[k] == v for k, v in known.items())
    assert goodput("study", "verify", f"{out}/study.db").returncode == 0
    leftovers = subprocess.run(["pgrep", "-f", out], capture_output=True, text=True).stdout.split()
    assert not leftovers, f"processes survived: {leftovers}"


def ctrl_c_keeps_what_there_is():
    out = f"{SCRATCH}/interrupted"
    process = subprocess.Popen([GOODPUT, "map", *SMALL, "--out", out], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=SCRATCH)
    deadline = time.monotonic() + LIMIT
    while not hashes(out) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    error = process.communicate(timeout=LIMIT)[1].decode()
    assert process.returncode == 130, error
    assert f"--resume --out {out}" in error, error
    assert hashes(out)


def it_stops_where_told():
    out = f"{SCRATCH}/stopped"
    probe = study_of("map", *SMALL, "--out", out, "--stop-after", "probe")
    assert probe["capacity"] == [] and probe["chosen"] is None and probe["points"]
    screen = study_of("map", "--resume", "--out", out, "--stop-after", "screen")
    assert screen["capacity"] and screen["chosen"] is None
    assert all(c["measured"] is None for c in screen["capacity"])


def another_study_is_not_overwritten():
    out = f"{SCRATCH}/stopped"
    done = goodput("map", *SMALL, "--out", out)
    assert done.returncode == 2 and "--resume" in done.stderr, done.stderr
    missing = goodput("map", "--resume", "--out", f"{SCRATCH}/nothing")
    assert missing.returncode == 2 and "no study to resume" in missing.stderr, missing.stderr
    other = goodput("map", "--resume", "--out", out, "--floor", "0.5", "--stop-after", "probe")
    assert other.returncode == 2 and "--floor=0.5" in other.stderr, other.stderr
    same = goodput("map", "--resume", *SMALL, "--out", out, "--stop-after", "probe")
    assert same.returncode == 0, same.stderr


def a_launched_server_is_mapped():
    out = f"{SCRATCH}/launched"
    launch = f"{GOODPUT} serve --simulate --port {{port}} --max-num-seqs {{max_num_seqs}}"
    study = study_of("map", "--launch", launch, "--budget", "60s", "--max-num-seqs", "2,8", "--max-num-batched-tokens", "256",
                     "--scheduling-policy", "fcfs", "--no-static", "--out", out)
    measured = [p for p in study["points"] if p["executor"] == "remote"]
    assert measured and study["capacity"], study
    assert all(c["predicted"] is None for c in study["capacity"])


def a_launched_command_that_dies_says_why():
    done = goodput("map", "--launch", "echo no model here; exit 3 # {port}", "--budget", "60s", "--out", f"{SCRATCH}/dead")
    assert done.returncode == 1, done
    assert "exited with 3" in done.stderr and "no model here" in done.stderr, done.stderr


run(a_whole_study_answers, killed_at_any_instant_it_goes_on, ctrl_c_keeps_what_there_is, it_stops_where_told,
    another_study_is_not_overwritten, a_launched_server_is_mapped, a_launched_command_that_dies_says_why)
