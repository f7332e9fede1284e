"""Runs a default map and holds its predictions against what it measured.

Over the VALID points of the measure and confirm phases: goodput within 15 %, the medians of TTFT and TPOT within 20 %. The
value is the largest error over its bar.
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
print(f"{'settings':<44} {'rate':>8} {'TTFT p50':>9} {'TPOT p50':>9} {'goodput':>9}")
for row in error["rows"]:
    cells = "".join(f"{'–' if row[k] is None else format(row[k], '+.1%'):>10}" for k in BARS)
    print(f"{row['label']:<44} {row['rate']:>8.2f}{cells}")
shares = {k: abs(error[k]) / bar for k, bar in BARS.items() if error[k] is not None}
value = max(shares.values(), default=None)
print(json.dumps({"name": "prediction", "value": value, "unit": "largest error / its bar", "bar": 1, "better": "lower",
                  "ok": value is not None and len(shares) == 3 and value <= 1, "errors": {k: error[k] for k in BARS},
                  "points": len(error["rows"]), "study": out}))
