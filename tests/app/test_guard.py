"""Only this machine, under its own name, with the token; nothing longer than allowed; no file but those meant."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from app.person import LAW, PORT, TOKEN, Person, visitor

PAGES = ["/", "/tables/x", "/tables/x/data", "/fits/x", "/fits/x/progress", "/fits/x/files/model.sumgp", "/static/app.css"]
CHANGES = ["/tables", "/examples", "/tables/x/law", "/tables/x/fits", "/fits/x/cancel", "/fits/x/values"]


@pytest.mark.parametrize("host", ["evil.example", f"evil.example:{PORT}", "127.0.0.1", f"127.0.0.1:{PORT + 1}", ""])
@pytest.mark.parametrize("path", ["/", f"/?token={TOKEN}", "/static/app.css"])
def test_another_host_is_refused(person: Person, host: str, path: str) -> None:
    answer = person.ask(path, headers={"host": host})
    assert answer.status_code == 421
    assert "set-cookie" not in answer.headers


def test_the_names_of_the_loopback_address_are_served(person: Person) -> None:
    assert person.ask("/").status_code == 200
    answer = visitor(person.workspace).get(f"/?token={TOKEN}", headers={"host": f"localhost:{PORT}"})
    assert answer.status_code == 303


@pytest.mark.parametrize("path", PAGES)
def test_nothing_is_shown_without_the_token(person: Person, path: str) -> None:
    for cookie in ("", f"sumgp_{PORT}=wrong", "sumgp_1=" + TOKEN, "\x00=;;"):
        answer = visitor(person.workspace).get(path, headers={"cookie": cookie})
        assert answer.status_code == 403
    assert visitor(person.workspace).get("/?token=wrong").status_code == 403


@pytest.mark.parametrize("path", CHANGES)
def test_nothing_is_changed_without_the_token_in_the_form(person: Person, path: str) -> None:
    for given in ({}, {"token": "wrong"}, {"token": ""}):
        assert person.client.post(path, data=given).status_code == 403
    assert not person.workspace.tables


@pytest.mark.parametrize("origin", ["http://evil.example", "null", f"http://127.0.0.1:{PORT + 1}", "https://localhost"])
def test_forms_of_other_sites_are_refused(person: Person, origin: str) -> None:
    answer = person.send("/examples", {"name": "oscillator"}, headers={"origin": origin})
    assert answer.status_code == 403
    assert not person.workspace.tables


def test_the_cookie_is_for_this_site_alone(person: Person) -> None:
    cookie = visitor(person.workspace).get(f"/?token={TOKEN}").headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie


@pytest.mark.parametrize("path", ["/", "/nothing", "/static/law.js"])
def test_answers_forbid_scripts_from_elsewhere(person: Person, path: str) -> None:
    headers = person.ask(path).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert "frame-ancestors 'none'" in policy
    assert headers["x-content-type-options"] == "nosniff"


def test_a_file_that_is_too_large_is_refused_by_its_stated_length(person: Person) -> None:
    answer = person.upload(b"t,z\n" + b"1,2\n" * 60_000)
    assert answer.status_code == 413
    assert "at most 0.2 MB" in answer.text
    assert not list(person.workspace.folder.iterdir())


def test_a_body_longer_than_allowed_is_refused_while_it_comes(person: Person) -> None:
    def parts() -> Iterator[bytes]:
        yield b"token=" + TOKEN.encode() + b"&law="
        for _ in range(100):
            yield b"a" * 1000

    form = {"content-type": "application/x-www-form-urlencoded", "transfer-encoding": "chunked"}
    assert person.client.post("/tables/x/law", content=parts(), headers=form).status_code == 413


@pytest.mark.parametrize("length", ["-1", "many", "1e9"])
def test_a_length_that_is_no_number_is_refused(person: Person, length: str) -> None:
    assert person.client.post("/tables", content=b"", headers={"content-length": length}).status_code == 413


@pytest.mark.parametrize(
    "path",
    [
        "/static/../guard.py",
        "/static/..%2fguard.py",
        "/static/%2e%2e/guard.py",
        "/static/app.css%00",
        "/fits/../../etc/passwd",
        "/fits/..%2f..%2fetc%2fpasswd/files/model.sumgp",
        "/tables/..%2f..",
        "/tables/%2fetc/data",
    ],
)
def test_paths_lead_nowhere_else(person: Person, path: str) -> None:
    assert person.ask(path).status_code == 404


def test_other_methods_are_refused(person: Person) -> None:
    assert person.ask("/tables/x/fits").status_code == 405
    assert person.client.put("/", headers={"x-sumgp-token": TOKEN}).status_code == 405
    assert person.send("/tables/none/fits", LAW).status_code == 404
