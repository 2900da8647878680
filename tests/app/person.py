"""Somebody who uses the page, and what they fill in."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from pathlib import Path

from starlette.testclient import TestClient

from sumgp.app.server import application
from sumgp.app.store import Fit, Limits, Table, Workspace

PORT, TOKEN = 8123, "a-token-of-the-tests"
OSCILLATOR = Path(__file__).resolve().parents[2] / "examples" / "oscillator.csv"
PATIENCE = 300.0  # seconds until a fit counts as stuck, also on a busy machine

LAW = {
    "role-0": "input",
    "role-1": "output",
    "role-2": "output",
    "law": "k/2*z**2 + m/2*v**2 = E",
    "constant-name": ["k", "m", "E"],
    "constant-kind": ["number", "number", "number"],
    "constant-number": ["1", "1", "0.8"],
    "constant-column": ["", "", ""],
    "quick": "yes",
}


@dataclass(frozen=True)
class Person:
    """Somebody with the token in a cookie; ``ask`` and ``send`` are what a browser would do."""

    client: TestClient
    workspace: Workspace

    def ask(self, path: str, **more):
        return self.client.get(path, **more)

    def send(self, path: str, data=None, **more):
        return self.client.post(path, data={"token": TOKEN, **(data or {})}, **more)

    def upload(self, content: bytes, name: str = "data.csv"):
        return self.send("/tables", files={"file": (name, content)})

    def table(self, content: bytes | None = None, name: str = "oscillator.csv") -> Table:
        answer = self.upload(OSCILLATOR.read_bytes() if content is None else content, name)
        assert answer.status_code == 303, trouble(answer.text)
        return self.workspace.tables[answer.headers["location"].split("/")[-1]]

    def start(self, table: Table, form: dict) -> Fit:
        answer = self.send(f"/tables/{table.key}/fits", form)
        assert answer.status_code == 303, trouble(answer.text)
        return self.workspace.fits[answer.headers["location"].split("/")[-1]]

    def finish(self, fit: Fit) -> str:
        """The page of a fit once it is no longer running."""
        until = time.monotonic() + PATIENCE
        while self.ask(f"/fits/{fit.key}/progress").json()["kind"] == "running":
            assert time.monotonic() < until
            time.sleep(0.1)
        return self.ask(f"/fits/{fit.key}").text


def visitor(workspace: Workspace) -> TestClient:
    """Somebody without the token."""
    return TestClient(application(workspace, PORT, TOKEN), f"http://127.0.0.1:{PORT}", follow_redirects=False)


def person_with(limits: Limits) -> Person:
    workspace = Workspace(limits)
    client = visitor(workspace)
    assert client.get(f"/?token={TOKEN}").status_code == 303
    return Person(client, workspace)


def trouble(page: str) -> str:
    """What a page complains of."""
    return " ".join(re.findall(r'<p class="trouble"[^>]*>(.*?)</p>', page, flags=re.S))
