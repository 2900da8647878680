"""No network unless the user asks for data; a download that breaks off leaves nothing behind."""

from __future__ import annotations

import http.server
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from sumgp.errors import DataError
from sumgp_studies.experiments import pendulum_data

CONTENT = b"1,2,3,4,5,6\n" * 1000

EVERYTHING = """
import socket, sys

def refuse(*arguments, **choices):
    raise AssertionError("the network was used")

socket.socket.connect = socket.socket.connect_ex = socket.create_connection = socket.getaddrinfo = refuse
from sumgp.cli.app import run

table, out = sys.argv[1:]
words = ["--inputs", "t", "--outputs", "p,q", "--plug-in", "--grid", "5", "--kernel", "rbf"]
assert run(["fit", table, "-c", "p + q = 1", *words, "--out", out]) == 0
assert run(["predict", out + "/model.sumgp", table, "-o", out + "/new.csv"]) == 0
assert run(["check", "p + q = 1", "--outputs", "p,q"]) in (0, 2)
print("done")
"""


def test_fit_predict_and_check_without_a_network(tmp_path: Path) -> None:
    table = tmp_path / "data.csv"
    table.write_text("t,p,q\n" + "".join(f"{i},{i % 3},{1 - i % 3}\n" for i in range(8)))
    words = [sys.executable, "-c", EVERYTHING, str(table), str(tmp_path / "out")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("done\n")


def test_the_block_would_notice_a_connection() -> None:
    script = EVERYTHING.split("from sumgp")[0] + "socket.create_connection(('127.0.0.1', 9))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert "the network was used" in done.stderr


class Breaking(http.server.BaseHTTPRequestHandler):
    """Promises the whole file, sends half, and hangs up."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(CONTENT)))
        self.end_headers()
        self.wfile.write(CONTENT[: len(CONTENT) // 2])
        self.wfile.flush()
        self.connection.shutdown(socket.SHUT_RDWR)

    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture
def breaking() -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Breaking) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


def test_an_interrupted_download_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, breaking: str) -> None:
    import hashlib

    monkeypatch.setattr(pendulum_data, "checksums", lambda: {"0.csv": hashlib.sha256(CONTENT).hexdigest()})
    folder = tmp_path / "fetched"
    with pytest.raises(DataError, match=r"0\.csv could not be fetched .*; give --data-dir"):
        pendulum_data.download_recordings(folder, breaking)
    assert [p for p in folder.rglob("*") if p.is_file()] == []
