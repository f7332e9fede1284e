"""The house stands: every #include of src/ obeys the order of the rooms, and third-party headers stay in their rooms."""
import os
import re
import sys
from pathlib import Path

SOURCE = Path(os.environ.get("GOODPUT_SOURCE", Path(__file__).resolve().parent.parent))
ORDER = ["base", "net", "metrics", "workload", "scheduler", "model", "plan", "engine", "simulate", "serve", "load", "store",
         "map", "explain", "report", "cli"]
# Pairs that the order alone would allow and the design forbids.
FORBIDDEN = {
    ("metrics", "net"): "metrics never knows HTTP",
    ("workload", "net"): "workload never knows who executes its schedule",
    ("scheduler", "net"): "scheduler never knows sockets",
    ("scheduler", "workload"): "scheduler sees base and metrics only",
    ("model", "scheduler"): "model never knows scheduling",
    ("model", "net"): "model never knows sockets",
    ("engine", "net"): "engine never knows HTTP",
    ("simulate", "net"): "simulate never knows sockets",
    ("load", "serve"): "load never sees serve: they meet over a socket",
    ("load", "engine"): "load never knows who is behind the URL",
    ("load", "scheduler"): "load never knows who is behind the URL",
    ("store", "serve"): "store knows records, not servers",
    ("plan", "model"): "plan knows costs, not models",
}
# Third-party headers and the files that may see them (prefixes under src/).
THIRD_PARTY = {
    r"boost/(asio|beast)": ["net/"],
    r"boost/math": ["metrics/", "workload/"],
    r"boost/json": ["serve/", "load/", "store/", "report/", "cli/"],
    r"(llama|ggml|gguf)\.h|ggml-.*\.h": ["model/", "engine/llama_"],
    r"SQLiteCpp|sqlite3": ["store/"],
    r"CLI/": ["cli/"],
    r"spdlog": ["base/log.cc"],
    r"toml\+\+": ["workload/", "cli/config"],
    r"simdjson": ["workload/", "serve/", "load/", "store/", "map/", "report/", "cli/"],
}
# In a room's header a third-party type would cross into every room below. A header named *_private.h may have one, and no
# other room may include it.
HEADER_FREE = [r"boost/", r"simdjson", r"SQLiteCpp|sqlite3", r"(llama|ggml|gguf)\.h", r"spdlog", r"toml\+\+"]


def faults():
    for path in sorted(SOURCE.glob("src/*/*.*")):
        if path.suffix not in (".h", ".cc"):
            continue
        room, name = path.parent.name, f"{path.parent.name}/{path.name}"
        if room not in ORDER:
            yield f"{name}: '{room}' is not a room; the rooms are {', '.join(ORDER)}"
            continue
        test = path.name.endswith("_test.cc")
        for number, line in enumerate(path.read_text().splitlines(), 1):
            match = re.match(r'\s*#\s*include\s+(?:"([^"]+)"|<([^>]+)>)', line)
            if not match:
                continue
            where = f"src/{name}:{number}"
            if match[1]:
                other = match[1].split("/")[0]
                if other not in ORDER:
                    yield f"{where}: include rooms' files as \"room/file.h\", found {match[1]}"
                elif ORDER.index(other) > ORDER.index(room) and not test:
                    yield f"{where}: {room} includes {other}, which stands below it: a room includes only rooms above it"
                elif (room, other) in FORBIDDEN and not test:
                    yield f"{where}: {FORBIDDEN[(room, other)]}"
                elif other != room and match[1].endswith("_private.h"):
                    yield f"{where}: {match[1]} is private to its room"
            else:
                for pattern, allowed in THIRD_PARTY.items():
                    if re.match(pattern, match[2]) and not any(name.startswith(a) for a in allowed):
                        yield f"{where}: <{match[2]}> belongs to {', '.join(allowed)} alone"
                if path.suffix == ".h" and not path.stem.endswith("_private"):
                    for pattern in HEADER_FREE:
                        if re.match(pattern, match[2]):
                            yield f"{where}: a third-party type must not cross a room's header: <{match[2]}>"


found = list(faults())
print("\n".join(found) if found else "rooms: every include obeys the order")
sys.exit(1 if found else 0)
