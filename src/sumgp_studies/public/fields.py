"""Vector fields over space without divergence or without curl: ocean currents and a magnetometer in a room."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from sumgp_studies.public.case import Case, Part

NO_DIVERGENCE = "d(u, x) + d(v, y) = 0"
NO_CURL = "d(u, y) - d(v, x) = 0"
FLOWS = {"vortex": NO_DIVERGENCE, "divweak": NO_CURL, "divmild": NO_CURL, "divstrong": NO_CURL}
MAGNET_LAWS = ("d(bz, y) - d(by, z) = 0", "d(bx, z) - d(bz, x) = 0", "d(by, x) - d(bx, y) = 0")
MAGNET_ROWS = 120  # of the 500 of the authors' protocol: competitors' time grows with the cube
MAGNET_TEST = 1000
MAGNET_DRAWS = 5
MIDDLE_LATITUDE = 25.75  # degrees, of the drifters' region


def helmholtz(folder: Path) -> Iterator[Case]:
    """Four synthetic currents, 8 to 10 drifters each; measured and scored with a noise of about .01."""
    for name, law in FLOWS.items():
        train, test = (pd.read_csv(folder / "helmholtz" / f"{name}_{kind}.csv") for kind in ("train", "test"))
        part = Part(name, test[["x", "y"]].to_numpy(float), test[["u", "v"]].to_numpy(float))
        x, y = train[["x", "y"]].to_numpy(float), train[["u", "v"]].to_numpy(float)
        sizes = np.full(2, np.sqrt(np.mean(part.y.var(axis=0))))
        yield Case("helmholtz", name, x, y, ("x", "y"), ("u", "v"), (), (part,), sizes=sizes, own_laws=(law,), latent=True)


def drifters(folder: Path) -> Iterator[Case]:
    """Twenty drifters in the Gulf of Mexico; that the flow has no divergence is true only roughly."""
    shrink = np.array([np.cos(np.deg2rad(MIDDLE_LATITUDE)), 1.0])  # both coordinates in degrees of latitude
    train, test = (pd.read_csv(folder / "drifters" / f"gulf_{kind}.csv") for kind in ("train", "test"))
    part = Part("cells", test[["lon", "lat"]].to_numpy(float) * shrink, test[["u", "v"]].to_numpy(float))
    x, y = train[["lon", "lat"]].to_numpy(float) * shrink, train[["u", "v"]].to_numpy(float)
    yield Case("drifters", "gulf", x, y, ("x", "y"), ("u", "v"), (), (part,), own_laws=(NO_DIVERGENCE,), latent=True)


def magnetometer(folder: Path) -> Iterator[Case]:
    """The field in a room without currents: no curl. Five draws of 120 rows, scored at 1,000 others."""
    values = pd.read_csv(folder / "magnetometer" / "magnetometer.csv").to_numpy(float)
    for seed in range(MAGNET_DRAWS):
        chosen = np.random.default_rng([seed, 28]).permutation(len(values))
        fit, test = values[chosen[:MAGNET_ROWS]], values[chosen[MAGNET_ROWS : MAGNET_ROWS + MAGNET_TEST]]
        part = Part("random", test[:, :3], test[:, 3:])
        yield Case(
            "magnetometer", str(seed), fit[:, :3], fit[:, 3:], ("x", "y", "z"), ("bx", "by", "bz"), (), (part,),
            sizes=np.ones(3), own_laws=MAGNET_LAWS, groups=(("bx", "by", "bz"),),
        )  # fmt: skip
