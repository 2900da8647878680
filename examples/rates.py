"""Laws with rates of change: a velocity, a differential equation with unknown constants, a flow without sources."""

# --8<-- [start:oscillator]
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.integrate import solve_ivp

import sumgp

data = pd.read_csv(Path(__file__).with_name("oscillator.csv"))  # t, z, v; 8 of 40 values are missing
t = np.linspace(0, 10, 200)
truth = np.sqrt(1.6) * np.column_stack([np.sin(t), np.cos(t)])
energy, velocity = "z**2/2 + v**2/2 = 0.8", "d(z, t) = v"
for name, laws in [("energy", [energy]), ("velocity", [velocity]), ("both", [energy, velocity])]:
    oscillator = sumgp.ConstrainedGP(laws, outputs=["z", "v"], inputs=["t"]).fit(data[["t"]], data[["z", "v"]])
    print(f"{name:<9} error {np.sqrt(np.mean((oscillator.predict(t) - truth) ** 2)):.3f}")
# --8<-- [end:oscillator]

# --8<-- [start:spikes]


def rates(t, y):
    """FitzHugh and Nagumo's nerve cell with a = b = 0.2, c = 3."""
    V, R = y
    return [3 * (V - V**3 / 3 + R), -(V - 0.2 + 0.2 * R) / 3]


times = np.linspace(0, 10, 201)
spikes = solve_ivp(rates, (0, 10), [-1, 1], t_eval=times, rtol=1e-8).y.T
random = np.random.default_rng(3)
measured = spikes[::10] + 0.2 * random.standard_normal((21, 2))
nerve = sumgp.ConstrainedGP(
    ["d(V, t) = c*(V - V**3/3 + R)", "d(R, t) = -(V - a + b*R)/c"],
    outputs=["V", "R"],
    inputs=["t"],
    constants={"a": "unknown", "b": "unknown", "c": "unknown"},
).fit(times[::10], measured)
posterior = nerve.posterior(times)
print(posterior.constants().round(2).to_string())
print("errors", np.sqrt(np.mean((posterior.mean - spikes) ** 2, axis=0)).round(2))
# --8<-- [end:spikes]

# --8<-- [start:flow]


def current(x, y):
    """Two eddies: a flow without sources."""
    return np.column_stack([np.sin(x) * np.cos(y) + 0.3, -np.cos(x) * np.sin(y)])


places = random.uniform(0, 5, size=(30, 2))
drift = current(*places.T) + 0.1 * random.standard_normal((30, 2))
grid = np.stack(np.meshgrid(np.linspace(0.2, 4.8, 15), np.linspace(0.2, 4.8, 15)), axis=-1).reshape(-1, 2)
flows = {}
for name, law in [("no law", None), ("no sources", "d(u, x) + d(v, y) = 0")]:
    flows[name] = sumgp.ConstrainedGP(law, outputs=["u", "v"], inputs=["x", "y"]).fit(places, drift)
    field = flows[name].posterior(grid)
    divergence = field.derivative("u", "x").mean + field.derivative("v", "y").mean
    error = np.sqrt(np.mean((field.mean - current(*grid.T)) ** 2))
    print(f"{name:<10} error {error:.2f}, largest divergence {np.abs(divergence).max():.1f}")
# --8<-- [end:flow]
