"""Forces in balance: a load of known weight moves along a beam on two scales."""

# --8<-- [start:data]
import numpy as np
import pandas as pd

import sumgp

weight, length = 50.0, 4.0
rng = np.random.default_rng(3)
frame = pd.DataFrame({"x": np.linspace(0.2, 3.8, 15)})  # position of the load
frame["left"] = weight * (1 - frame["x"] / length) + rng.normal(0, 1.5, 15)
frame["right"] = weight * frame["x"] / length + rng.normal(0, 1.5, 15)
frame.loc[9:, "left"] = np.nan  # the left scale broke
# --8<-- [end:data]

# --8<-- [start:fit]
laws = ["left + right = W", "right * L = W * x"]  # forces, and moments about the left end
gp = sumgp.ConstrainedGP(laws[0], outputs=["left", "right"], inputs=["x"], constants={"W": weight})
gp.fit(frame[["x"]], frame[["left", "right"]])
both = sumgp.ConstrainedGP(laws, outputs=["left", "right"], inputs=["x"], constants={"W": weight, "L": length})
both.fit(frame[["x"]], frame[["left", "right"]])
# --8<-- [end:fit]

# --8<-- [start:results]
where = np.array([[3.0], [3.6]])  # where the left scale gave nothing
for name, model in [("forces", gp), ("and moments", both)]:
    mean, std = model.predict(where, return_std=True)
    rows = "; ".join(f"{m:.1f} +- {s:.1f}" for m, s in zip(mean[:, 0], std[:, 0], strict=True))
    print(f"{name:<12} left scale at 3.0 and 3.6: {rows}")
print("truth        left scale at 3.0 and 3.6: 12.5; 5.0")
# --8<-- [end:results]
