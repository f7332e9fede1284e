"""goodput compare, score and explain-definitions on files, as a person or a CI job would call them."""
import json
import os
import subprocess
import tempfile
import unittest

GOODPUT = os.environ["GOODPUT"]


def run(*arguments):
    done = subprocess.run([GOODPUT, *arguments], capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout, done.stderr


def vllm(ttft, failed=0, rate=4.0):
    """A small result in vLLM's format."""
    return {
        "endpoint_type": "vllm", "request_rate": rate, "num_prompts": 100, "completed": 100 - failed,
        "request_throughput": rate, "request_goodput": rate * 0.9, "output_throughput": 40.0,
        "total_token_throughput": 80.0, "mean_ttft_ms": ttft, "median_ttft_ms": ttft, "p99_ttft_ms": 2 * ttft,
        "mean_tpot_ms": 20.0, "median_tpot_ms": 20.0, "p99_tpot_ms": 30.0,
    }


class Files(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def write(self, name, content):
        path = os.path.join(self.folder.name, name)
        with open(path, "w", encoding="utf-8") as f:
            f.write(content if isinstance(content, str) else json.dumps(content))
        return path


class Compare(Files):
    def test_two_files_and_gates(self):
        a, b = self.write("a.json", vllm(100)), self.write("b.json", vllm(104, failed=1))
        code, out, _ = run("compare", a, b)
        self.assertEqual(code, 0)
        self.assertIn("+4.0 %", out)
        self.assertIn("no interval", out)
        self.assertEqual(run("compare", a, b, "--gate", "p99_ttft<=+5%")[0], 0)
        code, out, _ = run("compare", a, b, "--gate", "p99_ttft<=+5%", "failed<=0")
        self.assertEqual(code, 4)
        self.assertIn("VIOLATED", out)
        code, out, _ = run("compare", a, b, "--gate", "attainment>=0.9")  # vLLM has no such figure
        self.assertEqual(code, 4)
        self.assertIn("CANNOT BE JUDGED", out)

    def test_replicates_give_intervals(self):
        a = [self.write(f"a{i}.json", vllm(v)) for i, v in enumerate((100, 101, 99))]
        b = [self.write(f"b{i}.json", vllm(v)) for i, v in enumerate((150, 151, 149))]
        code, out, _ = run("compare", "--a", *a, "--b", ",".join(b), "--json")
        self.assertEqual(code, 0)
        report = json.loads(out)
        figure = next(f for f in report["figures"] if f["figure"] == "p50_ttft")
        self.assertTrue(figure["differs"])
        self.assertGreater(figure["ratio_interval"][0], 0.3)

    def test_definitions_are_not_mixed(self):
        a = self.write("a.json", vllm(100))
        b = self.write("b.json", {"request_latency": {"unit": "ms", "avg": 900.0},
                                  "time_to_first_token": {"unit": "ms", "avg": 90.0, "p50": 88.0}})
        code, out, _ = run("compare", a, b)
        self.assertEqual(code, 0)
        self.assertIn("the definitions differ", out)

    def test_wrong_use(self):
        a = self.write("a.json", vllm(100))
        for arguments in ((), (a,), (a, a, a), (a, "/nonexistent.json"), (a, self.write("x", "hello")),
                          (a, self.write("y.json", '{"mean_ttft_ms": 1, "itls": [[')),
                          (a, a, "--gate", "p99_ttft"), (a, a, "--goodput", "ttff:1"), (a, a, "--preset", "none")):
            code, out, err = run("compare", *arguments)
            self.assertEqual(code, 2, arguments)
            self.assertEqual(out, "")
            self.assertTrue(err.startswith("goodput"), err)


class StoredRuns(Files):
    def test_what_holds_no_requests_is_refused(self):
        a = self.write("a.json", vllm(100))
        for verb in (["score", a, "--goodput", "ttft:300"], ["explain-definitions", a]):
            code, _, err = run(*verb)
            self.assertEqual(code, 2)
            self.assertIn("--save-records", err)

    def test_help_shows_examples(self):
        for verb in ("score", "compare", "explain-definitions"):
            code, out, _ = run("help", verb)
            self.assertEqual(code, 0)
            self.assertTrue(out.startswith("Examples:"))


if __name__ == "__main__":
    unittest.main()
