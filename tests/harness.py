"""What the end-to-end tests share: the binary, a scratch folder, and running it."""
import json
import os
import subprocess
import sys
import tempfile
import traceback

GOODPUT = os.environ.get("GOODPUT") or os.path.join(os.path.dirname(__file__), "../build/release/src/goodput")
LIMIT = 1200  # seconds before a wait counts as a hang; no test depends on how much shorter it was
SCRATCH = tempfile.mkdtemp(prefix="goodput-test-")
os.environ["XDG_CACHE_HOME"] = os.path.join(tempfile.gettempdir(), "goodput-test-cache")
os.environ.pop("XDG_CONFIG_HOME", None)
os.environ["HOME"] = SCRATCH


def goodput(*arguments, timeout=LIMIT, cwd=None, **environment):
    """Runs the binary; stdout and stderr as text."""
    return subprocess.run([GOODPUT, *map(str, arguments)], capture_output=True, text=True, timeout=timeout, cwd=cwd or SCRATCH,
                          env={**os.environ, **environment})


def goodput_json(*arguments, **options):
    done = goodput(*arguments, **options)
    assert done.returncode == 0, f"{arguments}: exit {done.returncode}\n{done.stderr}"
    return json.loads(done.stdout)


def run(*tests):
    """Runs the test functions, prints a line for each, exits with the number that failed."""
    wanted = sys.argv[1:]
    failed = 0
    for test in tests:
        if wanted and test.__name__ not in wanted:
            continue
        try:
            test()
            print(f"ok   {test.__name__}", flush=True)
        except Exception:
            failed += 1
            print(f"FAIL {test.__name__}", flush=True)
            traceback.print_exc()
    print(f"{'ok' if not failed else 'FAILED'}: {failed} failed")
    sys.exit(min(failed, 125))
