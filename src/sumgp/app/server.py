"""The page's addresses: each a short function from a request to a page, a part of one, or a file."""

from __future__ import annotations

from functools import cache
from importlib import resources
from pathlib import PurePath
from typing import Any

from jinja2 import Environment
from markupsafe import Markup
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from sumgp.app.choice import KERNELS, Choice, TableInfo, example_table, examples
from sumgp.app.feedback import check_choice, choice_of, first_choice, law_feedback
from sumgp.app.fitting import BODY, COMPLETED
from sumgp.app.guard import TOKEN_HEADER, Guard, same
from sumgp.app.job import DONE, RUNNING
from sumgp.app.store import Fit, Table, Workspace
from sumgp.cli.arguments import noise
from sumgp.cli.fit import MODEL, PREDICTIONS, REPORT
from sumgp.errors import DataError
from sumgp.report import DRAWING, PLOTTING, templates

CODE, VALUES = "fit.py", "values.csv"
READERS = dict.fromkeys((".xlsx", ".xls", ".xlsm", ".ods"), "read_excel") | dict.fromkeys(
    (".parquet", ".pq"), "read_parquet"
)
DOWNLOADS = (
    (PREDICTIONS, "mean, standard deviation and 95 % interval of every output, and the law's residual"),
    (COMPLETED, "your table with its gaps filled, each with its interval and whether the law determines it"),
    (MODEL, "the fitted model, for sumgp predict and sumgp.load"),
    (REPORT, "this page's figures and words in one file"),
    (CODE, "the lines of Python below"),
)


def application(workspace: Workspace, port: int, token: str) -> Guard:
    """Everything that answers, behind the guard."""
    routes = [
        Route("/", start),
        Route("/tables", upload, methods=["POST"]),
        Route("/examples", example, methods=["POST"]),
        Route("/tables/{key}", table_page),
        Route("/tables/{key}/data", table_file),
        Route("/tables/{key}/law", law, methods=["POST"]),
        Route("/tables/{key}/fits", start_fit, methods=["POST"]),
        Route("/fits/{key}", fit_page),
        Route("/fits/{key}/progress", progress),
        Route("/fits/{key}/cancel", cancel, methods=["POST"]),
        Route("/fits/{key}/values", values, methods=["POST"]),
        Route("/fits/{key}/files/{name}", download),
        Route("/static/{name}", static),
    ]
    app = Starlette(routes=routes, exception_handlers={HTTPException: _refused, Exception: _broken})
    app.state.workspace, app.state.token = workspace, token
    return Guard(app, port, token, workspace.limits)


async def start(request: Request, trouble: str = "") -> Response:
    """Where a table is chosen."""
    fits = [fit for fit in _workspace(request).fits.values() if fit.job.state().kind in (DONE, RUNNING)]
    return _page(request, "start", 1, 400 if trouble else 200, trouble=trouble, examples=examples(), fits=fits[::-1])


async def upload(request: Request) -> Response:
    """A table from a file."""
    form = await _checked_form(request)
    file = form.get("file")
    if not isinstance(file, UploadFile) or not file.filename:
        return await start(request, "Choose a file first.")
    content = await file.read()
    try:
        table = await run_in_threadpool(_workspace(request).read, file.filename, content)
    except DataError as error:
        return await start(request, str(error))
    return RedirectResponse(f"/tables/{table.key}", 303)


async def example(request: Request) -> Response:
    """A table that comes with the package."""
    form = await _checked_form(request)
    name = str(form.get("name", ""))
    try:
        content, choice = example_table(name)
    except KeyError:
        return await start(request, "There is no such data set.")
    table = await run_in_threadpool(_workspace(request).read, f"{name}.csv", content, choice)
    return RedirectResponse(f"/tables/{table.key}", 303)


async def table_page(request: Request) -> Response:
    """Where columns, law and constants are chosen."""
    table = _table(request)
    choice = table.choice if table.choice.inputs or table.choice.outputs else first_choice(table.info)
    return _choice_page(request, table, choice)


async def table_file(request: Request) -> Response:
    """The table's file as it was given."""
    table = _table(request)
    given = next(path for path in table.folder.iterdir() if path.stem == "upload")
    return FileResponse(given, filename=table.shown, media_type="application/octet-stream")


async def law(request: Request) -> Response:
    """How the law is understood, and the fields for its constants."""
    form = await _checked_form(request)
    table = _table(request)
    found = await run_in_threadpool(law_feedback, choice_of(form, table.info), table.info.numbers)
    return JSONResponse(
        {
            "state": found.state,
            "feedback": rendered("feedback", feedback=found),
            "constants": rendered("constants", constants=found.constants, numbers=table.info.numbers),
            "names": "|".join(constant.name for constant in found.constants),
        }
    )


async def start_fit(request: Request) -> Response:
    """Begin to fit, or show the form again with what is wrong."""
    form = await _checked_form(request)
    table = _table(request)
    choice = choice_of(form, table.info)
    if "check" in form:
        return _choice_page(request, table, choice)
    try:
        await run_in_threadpool(check_choice, choice, table.info)
        fit = _workspace(request).fit(table, choice)
    except DataError as error:
        return _choice_page(request, table, choice, str(error))
    return RedirectResponse(f"/fits/{fit.key}", 303)


async def fit_page(request: Request) -> Response:
    """Progress, the result, or why there is none."""
    fit = _fit(request)
    state = fit.job.state()
    if state.kind == RUNNING:
        return _page(request, "running", 3, fit=fit, state=state)
    return _result(request, fit) if state.kind == DONE else _page(request, "stopped", 3, fit=fit, state=state)


async def progress(request: Request) -> Response:
    """Where a fit stands, for the script."""
    state = _fit(request).job.state()
    return JSONResponse({"kind": state.kind, "stages": state.stages, "seconds": state.seconds})


async def cancel(request: Request) -> Response:
    """Kill the process of a fit."""
    await _checked_form(request)
    fit = _fit(request)
    await run_in_threadpool(fit.job.cancel)
    return RedirectResponse(f"/fits/{fit.key}", 303)


async def values(request: Request) -> Response:
    """Predictions at points that were typed or given as a file."""
    form = await _checked_form(request)
    fit = _fit(request)
    if fit.job.state().kind != DONE:
        raise HTTPException(404, "This fit is not done.")
    text, file = str(form.get("points", "")), form.get("file")
    given = (file.filename or "", await file.read()) if isinstance(file, UploadFile) and file.filename else ("", b"")
    try:
        answer = await run_in_threadpool(_workspace(request).values, fit, text, *given)
    except DataError as error:
        return _result(request, fit, text, trouble=str(error))
    return _result(request, fit, text, answer)


async def download(request: Request) -> Response:
    """One of the files of a fit."""
    fit, name = _fit(request), request.path_params["name"]
    if name == CODE:
        lines = python_lines(fit.choice, fit.table.info, fit.table.shown)
        return Response(lines, media_type="text/x-python", headers={"content-disposition": f'attachment; filename="{CODE}"'})
    path = fit.folder / name
    if name not in (PREDICTIONS, COMPLETED, MODEL, REPORT, VALUES) or not path.is_file():
        raise HTTPException(404, "There is no such file.")
    return FileResponse(path, filename=name, media_type="application/octet-stream")


async def static(request: Request) -> Response:
    """Scripts and styles."""
    try:
        content, kind = static_file(request.path_params["name"])
    except KeyError as error:
        raise HTTPException(404, "There is no such file.") from error
    return Response(content, media_type=kind, headers={"cache-control": "private, max-age=600"})


def _choice_page(request: Request, table: Table, choice: Choice, trouble: str = "") -> Response:
    roles = dict.fromkeys(table.info.numbers, "")
    roles |= dict.fromkeys(choice.inputs, "input") | dict.fromkeys(choice.outputs, "output")
    found = law_feedback(choice, table.info.numbers)
    shown: dict[str, Any] = {"table": table, "choice": choice, "roles": roles, "feedback": found, "kernels": KERNELS}
    return _page(request, "table", 2, 400 if trouble else 200, trouble=trouble, **shown)


def _result(
    request: Request, fit: Fit, points: str = "", found: dict[str, Any] | None = None, trouble: str = ""
) -> Response:
    # The worker made this part from the same escaping templates as the report.
    body = Markup((fit.folder / BODY).read_text(encoding="utf-8"))
    rows = fit.job.answer()["points_like"]
    shown: dict[str, Any] = {
        "fit": fit,
        "state": fit.job.state(),
        "body": body,
        "names": (*fit.choice.inputs, *fit.choice.extra),
        "points": points or "\n".join(" ".join(f"{v:.6g}" for v in row) for row in rows),
        "values": found,
        "downloads": [entry for entry in DOWNLOADS if entry[0] == CODE or (fit.folder / entry[0]).is_file()],
        "code": python_lines(fit.choice, fit.table.info, fit.table.shown),
    }
    return _page(request, "result", 3, 400 if trouble else 200, trouble=trouble, **shown)


def _page(request: Request, template: str, step: int, status: int = 200, **contents: Any) -> Response:
    shared = {"step": step, "token": request.app.state.token, "limits": _workspace(request).limits}
    return HTMLResponse(rendered(template, **shared, **contents), status)


async def _checked_form(request: Request) -> FormData:
    """The form, if it has the token: pages of other programs on this machine could send one without."""
    form = await request.form(max_files=1, max_fields=2000)
    given = request.headers.get(TOKEN_HEADER) or str(form.get("token", ""))
    if not same(given, request.app.state.token):
        raise HTTPException(403, "The token is missing; open the page again.")
    return form


def _workspace(request: Request) -> Workspace:
    return request.app.state.workspace


def _table(request: Request) -> Table:
    try:
        return _workspace(request).tables[request.path_params["key"]]
    except KeyError as error:
        raise HTTPException(404, "There is no such table any more; open the file again.") from error


def _fit(request: Request) -> Fit:
    try:
        return _workspace(request).fits[request.path_params["key"]]
    except KeyError as error:
        raise HTTPException(404, "There is no such fit any more; fit again.") from error


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return _page(request, "error", 1, error.status_code, title="Not possible", message=error.detail)


async def _broken(request: Request, error: Exception) -> Response:
    text = "Something went wrong inside the program; its terminal has the details."
    return _page(request, "error", 1, 500, title="Internal error", message=text)


# Address -> file of the package, and its kind; nothing else is served.
STATIC = {
    "look.css": ("sumgp.report", "look.css", "text/css"),
    "fit.css": ("sumgp.report", "fit.css", "text/css"),
    "app.css": ("sumgp.app", "static/app.css", "text/css"),
    "icon.svg": ("sumgp.app", "static/icon.svg", "image/svg+xml"),
    "plotly.js": ("sumgp.report", PLOTTING, "text/javascript"),
    "figures.js": ("sumgp.report", DRAWING, "text/javascript"),
    "start.js": ("sumgp.app", "static/start.js", "text/javascript"),
    "law.js": ("sumgp.app", "static/law.js", "text/javascript"),
    "progress.js": ("sumgp.app", "static/progress.js", "text/javascript"),
    "values.js": ("sumgp.app", "static/values.js", "text/javascript"),
}


@cache
def _templates() -> Environment:
    made = templates("sumgp.app", "pages")
    made.filters["repr"] = lambda value: Markup(repr(value))
    return made


def rendered(template: str, **contents: Any) -> str:
    """The page or part of one."""
    return _templates().get_template(f"{template}.html.j2").render(**contents)


def python_lines(choice: Choice, info: TableInfo, shown: str) -> str:
    """A program that reads the same file, fits the same model and writes the same predictions and model."""
    reader = READERS.get(PurePath(shown).suffix.lower(), "read_csv")
    columns = [*choice.inputs, *choice.extra]
    contents = {"choice": choice, "info": info, "shown": shown, "columns": columns, "used": [*columns, *choice.outputs]}
    return _templates().get_template("fit.py.j2").render(reader=reader, noise=noise, **contents) + "\n"


@cache
def static_file(name: str) -> tuple[bytes, str]:
    """Content and kind of a file; KeyError for names that are not in the list."""
    package, path, kind = STATIC[name]
    return resources.files(package).joinpath(path).read_bytes(), kind
