"""Books that balance: income minus costs is profit, quarter by quarter, with entries missing and a total from a column."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from look import PARTS, band, dots, save

import sumgp

rng = np.random.default_rng(7)
table = pd.DataFrame({"quarter": np.arange(24.0)})
income = 50 + 1.5 * table["quarter"] + 6 * np.sin(table["quarter"] / 3)
wages = 20 + 0.5 * table["quarter"]
table["profit"] = income - wages - (12 + 3 * np.cos(table["quarter"] / 4))  # known exactly
table["income"] = income + rng.normal(0, 1.5, 24)
table["wages"] = wages + rng.normal(0, 1.0, 24)
table["rent"] = 12 + 3 * np.cos(table["quarter"] / 4) + rng.normal(0, 1.0, 24)
table.loc[8:15, "rent"] = np.nan

names = ["income", "wages", "rent"]
law = "income - wages - rent = profit"
gp = sumgp.ConstrainedGP(law, outputs=names, inputs=["quarter"], constants={"profit": "profit"}, uncertainty="plug-in")
gp.fit(table[["quarter", "profit"]], table[names])

posterior = gp.posterior(table[["quarter", "profit"]])
print(f"books balance within {abs(posterior.residual()).max():.0e}")
figure, axes = plt.subplots(figsize=(4.2, 2.8))
for column, name in enumerate(names):
    band(axes, table["quarter"], posterior, column, PARTS[column], name)
    dots(axes, table["quarter"], table[name], PARTS[column])
axes.set(xlabel="quarter", ylabel="thousands")
axes.legend(fontsize=8)
save(figure, "accounts")
