"""A rigid body with fixed lengths: three markers on a plate that turns, edges of known length."""

# --8<-- [start:data]
import numpy as np

import sumgp

corners = np.array([[0.0, 0.0], [1.0, 0.0], [0.3, 0.8]])
edges = {"ab": np.hypot(1.0, 0.0), "bc": np.hypot(0.7, 0.8), "ca": np.hypot(0.3, 0.8)}


def markers(t):
    """True coordinates (n, 6) of the markers a, b, c at times t."""
    turn = np.stack([np.cos(t), -np.sin(t), np.sin(t), np.cos(t)], axis=1).reshape(-1, 2, 2)
    return (turn @ corners.T).transpose(0, 2, 1).reshape(len(t), 6)


rng = np.random.default_rng(4)
t = np.linspace(0, 2, 15)
seen = markers(t) + rng.normal(0, 0.03, (15, 6))
seen[5:8, 4:] = np.nan  # marker c was hidden for a while
# --8<-- [end:data]

# --8<-- [start:fit]
outputs = ["a_x", "a_y", "b_x", "b_y", "c_x", "c_y"]
laws = ["norm(a, b) = ab", "norm(b, c) = bc", "norm(c, a) = ca"]
options = {"outputs": outputs, "inputs": ["t"], "groups": [outputs], "noise": "per-output"}
gp = sumgp.ConstrainedGP(laws, constants=edges, **options).fit(t, seen)
# --8<-- [end:fit]

# --8<-- [start:results]
plain = sumgp.ConstrainedGP(None, **options).fit(t, seen)
new = np.linspace(0, 2, 81)
for name, model in [("no law", plain), ("fixed lengths", gp)]:
    mean = model.predict(new)
    error = np.sqrt(np.mean((mean - markers(new)) ** 2))
    length = np.hypot(mean[:, 2] - mean[:, 0], mean[:, 3] - mean[:, 1])
    print(f"{name:<14} error {error:.3f}, edge ab wrong by up to {np.max(np.abs(length - 1.0)):.2f}")
# --8<-- [end:results]
