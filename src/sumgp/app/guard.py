"""Who may ask: only this machine, under its own name, with the token that the program printed."""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse, RedirectResponse, Response

from sumgp.app.store import Limits

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

TOKEN_HEADER = "x-sumgp-token"
HEADERS = {
    # Figures set styles on their elements; scripts come from this server's own files alone.
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; connect-src 'self'; font-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    # With "no-referrer" browsers send the forms of our own pages as coming from nowhere (Origin: null).
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


class Guard:
    """Refuses requests from elsewhere before the application sees them, and bounds what it reads.

    Host: a page of another site that reaches this address by a name of its own (DNS rebinding) is refused. Token: in a
    cookie that other sites cannot send, and for requests that change something again in a header or form field, because
    pages of other programs on this machine count as the same site. The form field is compared by the application.
    """

    def __init__(self, application: Application, port: int, token: str, limits: Limits) -> None:
        self.application = application
        self.hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}
        self.origins = {f"http://{host}" for host in self.hosts}
        self.cookie = f"sumgp_{port}"
        self.token = token
        self.limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a refusal, set the cookie, or pass the request on."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.application(scope, receive, send)
            return
        headers = Headers(scope=scope)
        answer = self._refusal(scope, headers)
        if answer is not None:
            answer.headers.update(HEADERS)
            await answer(scope, receive, send)
            return
        most = self.limits.upload_bytes if _has_file(headers) else self.limits.form_bytes
        await self.application(scope, _bounded(receive, most), _with_headers(send))

    def _refusal(self, scope: Scope, headers: Headers) -> Response | None:
        if headers.get("host", "") not in self.hosts:
            return PlainTextResponse("This address is not served here.", 421)
        if headers.get("origin", "") and headers["origin"] not in self.origins:
            return PlainTextResponse("Requests from other sites are refused.", 403)
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        if scope["method"] == "GET" and scope["path"] == "/" and same(given, self.token):
            answer = RedirectResponse("/", 303)
            answer.set_cookie(self.cookie, self.token, httponly=True, samesite="strict", path="/")
            return answer
        if not same(self._cookie_of(headers), self.token):
            return PlainTextResponse(
                "Open the address that 'sumgp app' printed: it holds a token that is missing here.", 403
            )
        length = headers.get("content-length", "0")
        most = self.limits.upload_bytes if _has_file(headers) else self.limits.form_bytes
        if not length.isdigit() or int(length) > most:
            return PlainTextResponse(_too_large(most), 413)
        return None

    def _cookie_of(self, headers: Headers) -> str:
        try:
            found = SimpleCookie(headers.get("cookie", "")).get(self.cookie)
        except CookieError:
            return ""
        return found.value if found else ""


def same(one: str, other: str) -> bool:
    """Equal, found in a time that does not tell how much of it is."""
    return hmac.compare_digest(one.encode(), other.encode())


def _has_file(headers: Headers) -> bool:
    return headers.get("content-type", "").startswith("multipart/form-data")


def _too_large(most: int) -> str:
    return f"This is too large: at most {most / 1e6:g} MB are taken. Keep only the rows you need."


def _bounded(receive: Receive, most: int) -> Receive:
    """The body in parts as before, until it becomes longer than allowed."""
    seen = 0

    async def part() -> MutableMapping[str, Any]:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > most:
            raise HTTPException(413, _too_large(most))
        return message

    return part


def _with_headers(send: Send) -> Send:
    async def sent(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            names = {name for name, _ in message["headers"]}
            extra = [(k.encode(), v.encode()) for k, v in HEADERS.items() if k.encode() not in names]
            message = {**message, "headers": [*message["headers"], *extra]}
        await send(message)

    return sent
