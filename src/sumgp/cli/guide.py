"""Words about the commands: one line on each, and examples to copy. Shown without loading the commands themselves."""

from __future__ import annotations

SUMMARIES = {
    "fit": "Fit a table under a law; writes model.sumgp, predictions.csv and report.html.",
    "predict": "Predict mean, sd, lower and upper of each output at the rows of a table.",
    "complete": "Fill the gaps of a table from a fit, the cells measured in the same row, and a law.",
    "check": "Say how a law is understood, before anything is fitted.",
    "report": "Write report.html of a folder again.",
    "demo": "Fit a noisy oscillator with and without its law of energy.",
    "app": "Open a page in the browser to fit a table under a law, step by step.",
    "reproduce": "Run the paper's experiments; started again, it continues where it was.",
    "bench": "Measure CPU times and write them to a folder.",
}

EXAMPLES = {
    "fit": (
        'sumgp fit soil.csv -c "sand + silt + clay = 100" --inputs depth --out results',
        'sumgp fit run.csv -c "k/2*z**2 + m/2*v**2 = E" --inputs t --outputs z,v --constant k=1 --constant m=1 '
        "--constant E=unknown --out results",
        'sumgp fit power.xlsx -c "wind + solar + gas = total" --inputs hour --outputs wind,solar,gas '
        "--constant total=total --out results",
    ),
    "predict": (
        "sumgp predict results/model.sumgp new.csv -o predictions.csv",
        "sumgp predict results/model.sumgp new.csv -o predictions.csv --level 0.5",
    ),
    "complete": (
        'sumgp complete soil.csv --law "sand + silt + clay = 100" --inputs depth -o filled.csv',
        'sumgp complete tower.csv --law "Rn = H + LE + G +- unknown" --inputs day --outputs Rn,H,LE,G -o filled.csv',
    ),
    "check": (
        'sumgp check "a + b = 1" --outputs a,b',
        'sumgp check "norm(p, q) = L" --outputs p_x,p_y,q_x,q_y --constant L=unknown',
        'sumgp check "sand + silt + clay = 100" --outputs sand,silt,clay --data soil.csv',
    ),
    "report": ("sumgp report results", "sumgp report reproduction --figures"),
    "demo": ("sumgp demo", "sumgp demo --out somewhere"),
    "app": ("sumgp app", "sumgp app --port 8123 --no-browser"),
    "reproduce": (
        "sumgp reproduce harmonic_oscillator --quick",
        "sumgp reproduce all --datasets 50 --jobs 2 --out reproduction",
    ),
    "bench": ("sumgp bench --quick",),
}

FIRST_STEPS = ("sumgp demo", EXAMPLES["fit"][0], EXAMPLES["check"][0], "sumgp fit --help")

# What to do after Ctrl-C, where it is not simply to run the command again.
AFTER_STOP = {
    "reproduce": "run the same command again: it continues where it was",
    "fit": "run the same command again; --plug-in, fewer rows or a smaller --grid make it quicker",
}


def examples_text(examples: tuple[str, ...]) -> str:
    """The block below a help page; empty lines keep the examples on lines of their own."""
    return "\n\n".join(["Examples:", *(f"  {example}" for example in examples)]) if examples else ""


def after_stop(words: list[str]) -> str:
    """What to do next when a call with these words was stopped."""
    command = next((word for word in words if not word.startswith("-")), "")
    return AFTER_STOP.get(command, "run the same command again to start over")
