"""A posterior as tables and as a figure: what was measured, what is predicted, and how well the law holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sumgp.errors import DataError

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from sumgp.prediction.completion import RowPosterior
    from sumgp.prediction.posterior import Posterior


def input_values(posterior: Posterior | RowPosterior) -> dict[str, Any]:
    """Inputs, and columns that the law needs, by name; dates as dates."""
    names = [*posterior.data.input_names, *posterior.data.extra_columns]
    values = {name: posterior.x[:, i] for i, name in enumerate(names)}
    return {name: posterior.calendar[name].times(v) if name in posterior.calendar else v for name, v in values.items()}


def output_columns(names: Sequence[str], parts: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Columns of each output in turn; ``parts`` (n, T) by the ending of their names."""
    return {name + ending: values[:, t] for t, name in enumerate(names) for ending, values in parts.items()}


def input_label(posterior: Posterior) -> str:
    """The first input's name, with the unit that its dates are counted in."""
    name = posterior.data.input_names[0]
    return f"{name} ({posterior.calendar[name]})" if name in posterior.calendar else name


def law_names(posterior: Posterior) -> list[str]:
    """Names of the columns with the laws' residuals."""
    count = posterior.residual().shape[1]
    return ["law_residual"] if count == 1 else [f"law_residual_{r + 1}" for r in range(count)]


def as_frame(posterior: Posterior, level: float) -> pd.DataFrame:
    """One row per point: inputs, then mean, sd, lower and upper of each output, then the law's residual."""
    import pandas as pd

    lower, upper = posterior.interval(level)
    parts = {"": posterior.mean, "_sd": posterior.std, "_lower": lower, "_upper": upper}
    law = dict(zip(law_names(posterior), posterior.residual().T, strict=True))
    return pd.DataFrame(input_values(posterior) | output_columns(posterior.output_names, parts) | law)


def as_multiindex_frame(posterior: Posterior, level: float) -> pd.DataFrame:
    """Inputs in the index; columns (output, mean | sd | lower | upper), and ("law", residual) where there is a law."""
    import pandas as pd

    lower, upper = posterior.interval(level)
    parts = {"mean": posterior.mean, "sd": posterior.std, "lower": lower, "upper": upper}
    columns = {(name, part): v[:, t] for t, name in enumerate(posterior.output_names) for part, v in parts.items()}
    columns |= {
        ("law", n.removeprefix("law_")): v for n, v in zip(law_names(posterior), posterior.residual().T, strict=True)
    }
    inputs = input_values(posterior)
    index = pd.MultiIndex.from_arrays(list(inputs.values()), names=list(inputs))
    single = pd.Index(index.get_level_values(0), name=next(iter(inputs))) if len(inputs) == 1 else index
    frame = pd.DataFrame(columns, index=single)
    frame.columns = frame.columns.set_names(["output", "value"])
    return frame


def as_xarray(posterior: Posterior, level: float) -> xr.Dataset:
    """mean, sd, lower, upper (point, output) and residual (point, law); the inputs are coordinates.

    With one input the dimension of the points has its name, else it is "point".
    """
    try:
        import xarray as xr
    except ImportError as error:
        raise DataError('to_xarray: needs the package xarray; install it with pip install "sumgp[xarray]"') from error
    inputs = input_values(posterior)
    dimension = next(iter(inputs)) if len(inputs) == 1 else "point"
    lower, upper = posterior.interval(level)
    parts = {"mean": posterior.mean, "sd": posterior.std, "lower": lower, "upper": upper}
    variables: dict[str, Any] = {name: ((dimension, "output"), values) for name, values in parts.items()}
    coordinates: dict[str, Any] = {name: (dimension, _naive(values)) for name, values in inputs.items()}
    coordinates["output"] = list(posterior.output_names)
    if posterior.law is not None:
        variables["residual"] = ((dimension, "law"), posterior.residual())
        coordinates["law"] = list(posterior.law.labels)
    return xr.Dataset(variables, coordinates, attrs={"level": level})


def _naive(values: Any) -> Any:
    """Dates without their zone, in UTC: xarray has none."""
    import pandas as pd

    zoned = isinstance(values, pd.DatetimeIndex) and values.tz is not None
    return values.tz_convert("UTC").tz_localize(None) if zoned else values


# Okabe and Ito's colours, which the colour-blind can tell apart.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")


def plot_posterior(
    posterior: Posterior,
    level: float = 0.95,
    ax: Any = None,
    residual: bool = False,
    labels: Mapping[str, str] | None = None,
) -> Figure:
    """The outputs over the first input, each in a panel of its own or on the axes given, and the law's residual if asked.

    ``ax``: one Axes, which takes all outputs, or one for each output (and one more for the residual).
    """
    if not isinstance(labels or {}, Mapping):
        raise DataError("labels", "a dictionary", repr(labels)[:60], 'e.g. labels={"z": "position in m"}')
    named = dict(labels or {})
    known = (*posterior.data.input_names, *posterior.output_names)
    wrong = [name for name in named if name not in known]
    if wrong:
        raise DataError("labels", f"names among {list(known)}", repr(wrong[0]), "correct the name")
    n_panels = len(posterior.output_names) + (residual and posterior.law is not None)
    axes = _new_axes(n_panels) if ax is None else _given_axes(ax, len(posterior.output_names), n_panels)
    for t in range(len(posterior.output_names)):
        _draw_output(posterior, t, axes[t], level, named, together=axes[0] is axes[-1] and n_panels > 1)
    if residual and posterior.law is not None:
        x, order = _inputs(posterior)
        axes[-1].plot(x, posterior.residual()[order], lw=1)
        axes[-1].set_ylabel("law residual")
        axes[-1].ticklabel_format(axis="y", style="sci", scilimits=(-2, 2))
    first = posterior.data.input_names[0]
    axes[-1].set_xlabel(named.get(first, first))
    figure: Any = axes[0].figure
    return figure


def _new_axes(count: int) -> list[Axes]:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.0, 1.2 + 1.9 * count), layout="constrained")
    FigureCanvasAgg(figure)
    return list(np.atleast_1d(figure.subplots(count, 1, sharex=True)))


def _given_axes(ax: Any, n_outputs: int, count: int) -> list[Axes]:
    """One Axes for every panel; a single one takes all outputs."""
    given = list(np.ravel(ax)) if isinstance(ax, Sequence | np.ndarray) else [ax]
    if len(given) == 1 and count == n_outputs:
        return given * n_outputs
    if len(given) != count:
        raise DataError("ax", f"one Axes or {count}", f"{len(given)}", "make as many with plt.subplots")
    return given


def _inputs(posterior: Posterior) -> tuple[Any, np.ndarray]:
    """First input in ascending order, as dates where it was dates, and that order."""
    order = np.argsort(posterior.x[:, 0], kind="stable")
    return input_values(posterior)[posterior.data.input_names[0]][order], order


def _draw_output(posterior: Posterior, t: int, axis: Axes, level: float, labels: Mapping[str, str], together: bool) -> None:
    """Band, mean, measured values and marks of rows that were not measured."""
    name, data, colour = posterior.output_names[t], posterior.data, COLOURS[t % len(COLOURS)]
    label = labels.get(name, name)
    x, order = _inputs(posterior)
    lower, upper = posterior.interval(level)
    dates = posterior.calendar.get(data.input_names[0])
    at = data.x[:, 0] if dates is None else dates.times(data.x[:, 0])
    seen = data.measured[:, t]
    words = ["" if together else f"{level:.0%} interval", label if together else "mean", "" if together else "measured"]
    shown = [word or "_" for word in words]  # matplotlib leaves names with an underscore out of the legend
    axis.fill_between(x, lower[order, t], upper[order, t], color=colour, alpha=0.2, lw=0, label=shown[0])
    axis.plot(x, posterior.mean[order, t], color=colour, label=shown[1])
    axis.plot(at[seen], data.y[seen, t], "o", color=colour if together else "black", ms=4, label=shown[2])
    if not seen.all() and not together:
        height = np.full((~seen).sum(), 0.02)
        place = axis.get_xaxis_transform()
        axis.plot(at[~seen], height, "|", color="grey", ms=9, transform=place, label="not measured")
    if posterior.ends is not None and not together:
        for end in posterior.ends.shown(t, np.concatenate([lower[:, t], upper[:, t], data.y[:, t]])):
            axis.plot(x, end[order], ":", color="grey", lw=1, label="bound")
    axis.set_ylabel("" if together else label)
    axis.legend(loc="upper right", fontsize="x-small", ncols=4, framealpha=0.8)
    axis.margins(y=0.25)
    if dates is not None:
        axis.tick_params(axis="x", labelrotation=30)
