"""Shares that sum to 100 and are never negative: a country's electricity by source, every third year."""

# --8<-- [start:data]
import numpy as np

import sumgp

data = sumgp.datasets.electricity("Portugal")  # no solar or wind power in the first years
years, shares = data.frame[data.inputs], data.frame[data.outputs]
kept = np.arange(len(years)) % 3 == 0
# --8<-- [end:data]

# --8<-- [start:fit]
free = sumgp.ConstrainedGP(data.law, outputs=data.outputs, inputs=data.inputs)
free.fit(years[kept], shares[kept])
bounded = sumgp.ConstrainedGP([data.law, "all >= 0"], outputs=data.outputs, inputs=data.inputs)
bounded.fit(years[kept], shares[kept])
# --8<-- [end:fit]

# --8<-- [start:results]
for name, gp in [("no bounds", free), ("all >= 0", bounded)]:
    posterior = gp.posterior(years)
    lower, upper = posterior.interval(0.95)
    below = f"below zero: means {np.any(posterior.mean < 0)}, intervals {np.any(lower < 0)}"
    print(f"{name:<10} {below}, samples {np.any(posterior.sample(20) < 0)}")
print("sum is 100:", bool(np.allclose(posterior.mean.sum(axis=1), 100, atol=1e-10)))
solar = posterior.interval(0.95)[0][:5, data.outputs.index("solar")]
print("lower ends of solar, first five years:", np.round(solar, 1))
# --8<-- [end:results]
