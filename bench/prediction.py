"""Runs a default map and holds its predictions against what it measured.

Over the VALID points of the measure and confirm phases: goodput within 15 %, the medians of TTFT and TPOT within 20 %. The
value is the largest error over its bar, at the speed that the machine had in each point: a shared machine computes the
same iterations up to 1.7 times slower in one minute than in another (column "slowdown"), which no model of the engine can
know. "value_as_predicted" is the same without that correction.
"""
import json
import subprocess
import sys
import tempfile

BARS = {"ttft_p50": 0.20, "tpot_p50": 0.20, "goodput": 0.15}

goodput, arguments = sys.argv[1], sys.argv[2:]
out = tempfile.mkdtemp(prefix="goodput-prediction-")
print(f"mapping into {out} (about five minutes)", file=sys.stderr)
done = subprocess.run([goodput, "map", "--json", "--out", out + "/study", *arguments], stdout=subprocess.PIPE)
if done.returncode != 0:
    sys.exit(f"prediction: the map exited with {done.returncode}")
error = json.loads(done.stdout)["prediction_error"]
heads = [f"{name} {kind}" for kind in ("raw", "at speed") for name in ("TTFT", "TPOT", "goodput")]
print(f"{'settings':<40} {'rate':>6} {'slowdown':>9}" + "".join(f"{h:>17}" for h in heads))
for row in error["rows"]:
    cells = "".join(f"{'–' if r[k] is None else format(r[k], '+.1%'):>17}" for r in (row, row["at_speed"]) for k in BARS)
    print(f"{row['label']:<40} {row['rate']:>6.2f} {row['slowdown'] or 0:>9.2f}{cells}")


def largest(errors):
    shares = [abs(errors[k]) / bar for k, bar in BARS.items() if errors[k] is not None]
    return max(shares) if len(shares) == len(BARS) else None


value = largest(error["at_speed"])
print(json.dumps({"name": "prediction", "value": value, "unit": "largest error / its bar", "bar": 1, "better": "lower",
                  "ok": value is not None and value <= 1, "value_as_predicted": largest(error),
                  "errors": error["at_speed"], "errors_as_predicted": {k: error[k] for k in BARS},
                  "points": len(error["rows"]), "study": out}))
