"""Posteriors as tables: pandas with plain or two-level columns, xarray with named dimensions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sumgp.errors import DataError

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from sumgp.prediction.posterior import Posterior


def input_values(posterior: Posterior) -> dict[str, Any]:
    """Inputs, and columns that the law needs, by name; dates as dates."""
    names = [*posterior.data.input_names, *posterior.data.extra_columns]
    values = {name: posterior.x[:, i] for i, name in enumerate(names)}
    return {name: posterior.calendar[name].times(v) if name in posterior.calendar else v for name, v in values.items()}


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
    columns = input_values(posterior)
    mean, std = posterior.mean, posterior.std
    for t, name in enumerate(posterior.output_names):
        columns |= {
            name: mean[:, t],
            f"{name}_sd": std[:, t],
            f"{name}_lower": lower[:, t],
            f"{name}_upper": upper[:, t],
        }
    columns |= dict(zip(law_names(posterior), posterior.residual().T, strict=True))
    return pd.DataFrame(columns)


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
