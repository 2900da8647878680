"""A composition that sums to 100 %: three minerals along a core, some of them not measured."""

# --8<-- [start:data]
import numpy as np

import sumgp

rng = np.random.default_rng(2)
depth = np.sort(rng.uniform(0, 10, 25))


def minerals(x):
    """True shares in per cent at depth x."""
    shares = np.exp(np.column_stack([np.sin(x / 2), 0.5 * np.cos(x / 3), 0.1 * x - 0.5]))
    return 100 * shares / shares.sum(axis=1, keepdims=True)


measured = minerals(depth) + rng.normal(0, 3, (25, 3))
measured[::4, 1] = np.nan  # every fourth clay reading failed
# --8<-- [end:data]

# --8<-- [start:fit]
names = ["quartz", "clay", "calcite"]
gp = sumgp.ConstrainedGP("quartz + clay + calcite = 100", outputs=names, inputs=["depth"])
gp.fit(depth, measured)
new = np.linspace(0, 10, 101)
posterior = gp.posterior(new)
# --8<-- [end:fit]

# --8<-- [start:results]
plain = sumgp.ConstrainedGP(None, outputs=names, inputs=["depth"]).fit(depth, measured)
for name, mean in [("no law", plain.predict(new)), ("sum is 100", posterior.mean)]:
    error = np.sqrt(np.mean((mean - minerals(new)) ** 2))
    total = mean.sum(axis=1)
    print(f"{name:<11} error {error:.2f}, sum {total.min():.1f} to {total.max():.1f}")
samples = posterior.sample(5, random_state=1)
print("every sample sums to 100:", bool(np.allclose(samples.sum(axis=2), 100)))
# --8<-- [end:results]
