"""Gaps in a table: Portugal's electricity by source, some years not reported in full."""

# --8<-- [start:data]
import numpy as np

import sumgp

data = sumgp.datasets.electricity("Portugal")
table = data.Y.copy()
years = range(5, 26, 4)
table.loc[years, ["gas", "hydro"]] = np.nan  # two shares missing
table.loc[26, "coal"] = np.nan  # one share missing: the others leave no choice
# --8<-- [end:data]

# --8<-- [start:fit]
gp = sumgp.ConstrainedGP(data.law, inputs=["year"], uncertainty="plug-in").fit(data.X, table)
filled = gp.complete(data.X, table)
gaps = table.isna().to_numpy()
print(f"{gaps.sum()} gaps filled, {int(filled.filter(like='_determined').to_numpy().sum())} of them determined by the law")
# --8<-- [end:fit]

# --8<-- [start:results]
two = np.isin(np.arange(len(table)), years)[:, None] & gaps
values = filled[list(table.columns)].to_numpy()
error = np.abs(values - data.Y.to_numpy())[two].mean()
without = np.abs(gp.predict(data.X) - data.Y.to_numpy())[two].mean()
print("the row's own cells bring gas and hydro nearer:", bool(error < without))
coal, source = filled["coal"][26], filled["coal_source"][26]
print(f"coal in {filled['year'][26]:.0f}: {coal:.2f} ({source}), reported {data.Y['coal'][26]:.2f}")
print("every row sums to 100:", bool(np.allclose(values.sum(axis=1), 100, atol=0.01)))
# --8<-- [end:results]
