"""Energy of an oscillator: how much does the law improve the fit, and what if the energy itself is not known?"""

# --8<-- [start:data]
from pathlib import Path

import numpy as np
import pandas as pd

import sumgp

data = pd.read_csv(Path(__file__).with_name("oscillator.csv"))  # t, z, v; 8 of 40 values are missing
t = np.linspace(0, 10, 200)
truth = np.sqrt(1.6) * np.column_stack([np.sin(t), np.cos(t)])
# --8<-- [end:data]

# --8<-- [start:fits]
law = "k/2*z**2 + m/2*v**2 = E"
names = {"outputs": ["z", "v"], "inputs": ["t"]}
plain = sumgp.ConstrainedGP(None, **names).fit(data[["t"]], data[["z", "v"]])
known = sumgp.ConstrainedGP(law, constants={"k": 1, "m": 1, "E": 0.8}, **names).fit(data[["t"]], data[["z", "v"]])
guess = sumgp.ConstrainedGP(law, constants={"k": 1, "m": 1, "E": "unknown"}, **names).fit(data[["t"]], data[["z", "v"]])
# --8<-- [end:fits]

# --8<-- [start:results]
for name, gp in [("no law", plain), ("energy known", known), ("energy unknown", guess)]:
    mean = gp.predict(t)
    energy = 0.5 * (mean**2).sum(axis=1)
    error = np.sqrt(np.mean((mean - truth) ** 2))
    print(f"{name:<15} error {error:.3f}, energy {energy.min():.2f} to {energy.max():.2f}")
print(guess.posterior(t).constants().round(2).to_string())
# --8<-- [end:results]
