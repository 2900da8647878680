"""The page in a real browser: the newcomer's path, the keyboard, the law while it is typed, cancel, and how it looks."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser.chromium import check_page, chromium, complaints, downloaded, drawn, elsewhere, served, shown, wait
from selenium.webdriver import ActionChains, Chrome, Keys
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import Select

OSCILLATOR = Path(__file__).resolve().parents[2] / "examples" / "oscillator.csv"
LAW = "k/2*z^2 + m/2*v^2 = E"
LONGEST_PATH = 180.0  # seconds from the first page to the last download
MOST_TABS = 60


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with served() as found:
        yield found


@pytest.fixture(scope="module")
def downloads(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("downloads")


@pytest.fixture(scope="module")
def browser(downloads: Path) -> Iterator[Chrome]:
    with chromium(downloads) as found:
        yield found


def state(browser: Chrome, expected: str) -> str:
    """What is said of the law, once it has come to the expected state."""
    wait(browser, lambda b: b.find_element(By.ID, "feedback").get_attribute("data-state") == expected)
    return browser.find_element(By.ID, "feedback").text


def type_law(browser: Chrome, law: str) -> None:
    field = shown(browser, "#law")
    field.clear()
    field.send_keys(law)


def tab_to(browser: Chrome, selector: str) -> None:
    """Move with the tabulator until the element has the focus."""
    for _ in range(MOST_TABS):
        ActionChains(browser).send_keys(Keys.TAB).perform()
        if browser.execute_script("return document.activeElement.matches(arguments[0])", selector):
            return
    raise AssertionError(f"{selector} cannot be reached with the tabulator")


def test_the_newcomers_path(browser: Chrome, downloads: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """The demo, the page, upload, law with its constants, fit, values, downloads, in less than three minutes."""
    begun = time.monotonic()
    subprocess.run([sys.executable, "-m", "sumgp.cli.app", "demo", "--out", str(tmp_path / "demo")], check=True)
    assert (tmp_path / "demo" / "report.html").is_file()
    browser.get(request.getfixturevalue("address"))  # starts the program that serves the page
    shown(browser, "#file").send_keys(str(OSCILLATOR))
    shown(browser, "button.main").click()
    type_law(browser, LAW)
    assert "say what k and m and E are" in state(browser, "incomplete")
    for field, value in zip(browser.find_elements(By.NAME, "constant-number"), ("1", "1", "0.8"), strict=True):
        field.send_keys(value)
    assert "holds at every prediction point" in state(browser, "understood")
    shown(browser, "#fit").click()
    assert shown(browser, "#words .headline").text.startswith("The law helps")
    drawn(browser)
    shown(browser, "#ask button").click()
    wait(browser, lambda b: "3 points" in b.find_element(By.ID, "answers").text)
    for name in ("predictions.csv", "model.sumgp", "report.html", "completed.csv", "fit.py", "values.csv"):
        shown(browser, f'a[href$="/files/{name}"]').click()
        assert len(downloaded(downloads, name)) > 100
    assert time.monotonic() - begun < LONGEST_PATH
    assert complaints(browser) == []
    assert elsewhere(browser) == []
    assert downloaded(downloads, "predictions.csv").startswith(b"t,z,z_sd,z_lower,z_upper,v")


def test_the_result_looks_right_and_its_figures_can_be_used(browser: Chrome, downloads: Path) -> None:
    """Follows the newcomer's path: hover shows values, zoom is common to the panels, figures are saved."""
    drawn(browser)
    panels = browser.find_elements(By.CSS_SELECTOR, "#figure-outputs .panel")
    assert len(panels) == 2
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", panels[0])
    ActionChains(browser).move_to_element(panels[0].find_element(By.CSS_SELECTOR, ".nsewdrag")).perform()
    wait(browser, lambda b: "with the law" in panels[0].find_element(By.CSS_SELECTOR, ".hoverlayer").text)
    browser.execute_script("Plotly.relayout(arguments[0], {'xaxis.range[0]': 2, 'xaxis.range[1]': 3})", panels[0])
    wait(browser, lambda b: b.execute_script("return arguments[0].layout.xaxis.range", panels[1]) == [2, 3])
    tools = browser.find_elements(By.CSS_SELECTOR, "#figure-outputs .figure-tools button")
    for button in tools:
        button.click()
    assert downloaded(downloads, "outputs.csv").startswith(b"panel,series,x,y,value\nz,")
    assert downloaded(downloads, "outputs-2.png").startswith(b"\x89PNG")
    check_page(browser, "result")
    assert complaints(browser) == []


def test_the_report_draws_itself_from_a_file(browser: Chrome, downloads: Path) -> None:
    here = browser.current_url
    browser.get((downloads / "report.html").as_uri())
    drawn(browser)
    assert complaints(browser) == []
    check_page(browser, "report")
    browser.get(here)


def test_the_law_while_it_is_typed(browser: Chrome, address: str) -> None:
    browser.get(address)
    check_page(browser, "start")
    shown(browser, "button[value=oscillator]").click()
    state(browser, "understood")
    check_page(browser, "law")
    type_law(browser, "z + sqrrt(v) = 1")
    assert "did you mean 'sqrt'" in state(browser, "mistake")
    assert browser.find_element(By.CSS_SELECTOR, "pre.place").get_attribute("textContent") == "z + sqrrt(v) = 1\n    ^^^^^"
    check_page(browser, "mistake")
    shown(browser, "#feedback button[data-text]").click()
    state(browser, "understood")
    assert browser.find_element(By.ID, "law").get_attribute("value").startswith("z + sqrt")
    type_law(browser, "z + v = c")
    state(browser, "incomplete")
    Select(shown(browser, "select[name=constant-kind]")).select_by_value("unknown")
    assert "Estimated from the data, with an interval: c" in state(browser, "understood")
    assert not browser.find_element(By.NAME, "constant-number").is_displayed()


def test_bounds_rates_and_rough_laws_while_they_are_typed(browser: Chrome, address: str) -> None:
    browser.get(address)
    shown(browser, "button[value=oscillator]").click()
    state(browser, "understood")
    type_law(browser, "d(z, t) = v; z^2/2 + v^2/2 = E; -2 <= z <= 2")
    said = state(browser, "understood")
    assert "the rate at which z changes with t" in said
    assert "no prediction crosses this bound" in said
    browser.find_element(By.CSS_SELECTOR, "#the-law ~ details summary").click()
    check_page(browser, "law-more")
    type_law(browser, "z + v = 1 +- unknown")
    assert "an error that is estimated from complete rows" in state(browser, "understood")


def test_everything_by_keyboard_and_cancel(browser: Chrome, address: str) -> None:
    browser.get(address)
    tab_to(browser, "button[value=electricity]")
    ActionChains(browser).send_keys(Keys.ENTER).perform()
    state(browser, "understood")
    tab_to(browser, "#law")
    tab_to(browser, "#fit")
    ActionChains(browser).send_keys(Keys.ENTER).perform()
    wait(browser, lambda b: b.find_elements(By.CSS_SELECTOR, "#stages li"))
    tab_to(browser, "#running button")
    ActionChains(browser).send_keys(Keys.ENTER).perform()
    assert "Stopped as you asked" in shown(browser, ".trouble").text
    check_page(browser, "stopped")
    assert complaints(browser) == []


def test_a_column_name_cannot_become_a_script(browser: Chrome, address: str, tmp_path: Path) -> None:
    path = tmp_path / "names.csv"
    path.write_text("t,<img src=x onerror=window.hurt=1>,b\n0,1,2\n1,2,1\n2,1.5,1.5\n3,1,2\n")
    browser.get(address)
    shown(browser, "#file").send_keys(str(path))
    shown(browser, "button.main").click()
    type_law(browser, "`<img src=x onerror=window.hurt=1>` + b = 3")
    state(browser, "understood")
    shown(browser, "#settings").click()
    shown(browser, "input[name=quick]").click()
    shown(browser, "#fit").click()
    shown(browser, "#words .headline")
    drawn(browser)
    assert browser.execute_script("return window.hurt") is None
    assert complaints(browser) == []
