#!/usr/bin/env python3
"""Records raw HTTP answers of a llama-server, byte for byte, into tests/data/answers/.

    tests/record_answers.py LLAMA_SERVER GOODPUT [OUT]

Starts the server on a loopback port with a tiny synthetic model (`GOODPUT model synth`), asks each protocol it speaks,
streamed and not, and provokes errors. The weights are random: what the answers say is noise, how they are framed is
not. Tests read the files (src/load/recorded_test.cc); rerun this with a newer server to see what changed.
"""
import json
import os
import socket
import subprocess
import sys
import tempfile
import time

PORT = 18434
TEXT = "Name three colours."
# Enough of a template for the server to see that the model thinks. (A call of a tool cannot be provoked: the server's
# grammar lets the model talk first, and random weights never stop talking.)
TEMPLATE = """{% for m in messages %}<|{{ m.role }}|>
{% if m.reasoning_content %}<think>
{{ m.reasoning_content }}
</think>

{% endif %}{{ m.content or "" }}<|end|>
{% endfor %}
{%- if add_generation_prompt %}<|assistant|>
<think>
{% endif %}"""


def ask(path, body, method="POST"):
    """One request on a connection of its own; everything that comes back until the server closes it."""
    payload = body if isinstance(body, bytes) else json.dumps(body).encode()
    head = (f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{PORT}\r\nConnection: close\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(payload)}\r\n\r\n")
    with socket.create_connection(("127.0.0.1", PORT), timeout=60) as s:
        s.sendall(head.encode() + payload)
        answer = b""
        while piece := s.recv(65536):
            answer += piece
    return answer


def serve(server, directory, *more):
    command = [server, "-m", "tiny.gguf", "--alias", "tiny", "--host", "127.0.0.1", "--port", str(PORT), "-c", "256",
               "-np", "1", "-t", "1", "--no-webui", *more]
    process = subprocess.Popen(command, cwd=directory, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(300):
        try:
            if b" 200 " in ask("/health", b"", "GET")[:20]:
                return process
        except OSError:
            pass
        if process.poll() is not None:
            sys.exit(f"{server} ended with {process.returncode}")
        time.sleep(0.2)
    process.kill()
    sys.exit(f"{server} does not become ready")


def bodies(words, n):
    """One body per protocol."""
    user = [{"role": "user", "content": words}]
    same = {"temperature": 0, "seed": 1}
    return {
        "chat": ("/v1/chat/completions", {"messages": user, "max_tokens": n, "ignore_eos": True, **same}),
        "completions": ("/v1/completions", {"prompt": words, "max_tokens": n, "ignore_eos": True, **same}),
        "responses": ("/v1/responses", {"model": "m", "input": words, "max_output_tokens": n, "ignore_eos": True,
                                        **same}),
        "anthropic": ("/v1/messages", {"model": "m", "messages": user, "max_tokens": n, "ignore_eos": True, **same}),
        "llama": ("/completion", {"prompt": words, "n_predict": n, "ignore_eos": True, **same}),
    }


def keep_in(out, name, answer):
    with open(os.path.join(out, name + ".http"), "wb") as f:
        f.write(answer)
    print(f"{name:28} {len(answer):6} {answer[:40].decode(errors='replace').splitlines()[0]}")


def record(out):
    def keep(name, path, body, method="POST"):
        keep_in(out, name, ask(path, body, method))

    def both(name, path, body, **streamed):
        keep(name + "_stream", path, {**body, "stream": True, **streamed})
        keep(name + "_whole", path, {**body, "stream": False})

    for name, (path, body) in bodies(TEXT, 5).items():
        extra = {"stream_options": {"include_usage": True}} if name in ("chat", "completions") else {}
        both(name, path, body, **extra)
    longer = bodies(TEXT + " Count them again." * 200, 5)
    for name in ("chat", "anthropic", "llama"):
        path, body = longer[name]
        keep(name + "_overflow", path, {**body, "stream": True})
    keep("chat_error", "/v1/chat/completions", b'{"stream": tru')
    keep("anthropic_error", "/v1/messages", b'{"stream": tru')
    path, body = bodies(TEXT, 3)["chat"]
    keep("chat_progress", path, {**body, "stream": True, "return_progress": True, "timings_per_token": True})
    keep("models", "/v1/models", b"", "GET")
    keep("props", "/props", b"", "GET")
    keep("no_route", "/v1/nothing", {})


def record_thinking(out):
    for name in ("chat", "responses", "anthropic"):
        path, body = bodies(TEXT, 4)[name]
        for stream, kind in ((True, "stream"), (False, "whole")):
            keep_in(out, f"{name}_thinking_{kind}", ask(path, {**body, "stream": stream}))


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    server, goodput = sys.argv[1:3]
    out = sys.argv[3] if len(sys.argv) > 3 else os.path.join(os.path.dirname(__file__), "data", "answers")
    os.makedirs(out, exist_ok=True)
    with tempfile.TemporaryDirectory() as directory:
        model = os.path.join(directory, "tiny.gguf")
        subprocess.run([goodput, "model", "synth", "--size", "tiny", "-o", model], check=True)
        template = os.path.join(directory, "thinks.jinja")
        with open(template, "w") as f:
            f.write(TEMPLATE)
        for action, more in ((record, ["--jinja"]),
                             (record_thinking, ["--jinja", "--chat-template-file", template])):
            process = serve(os.path.abspath(server), directory, *more)
            try:
                action(out)
            finally:
                process.terminate()
                process.wait()


if __name__ == "__main__":
    main()
