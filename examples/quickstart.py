"""A noisy oscillator whose energy is known: the example of the README."""

import numpy as np

import sumgp

data = sumgp.datasets.oscillator().frame  # columns t, z, v; NaN was not measured
law = "k/2*z**2 + m/2*v**2 = E"
gp = sumgp.ConstrainedGP(law, outputs=["z", "v"], inputs=["t"], constants={"k": 1.0, "m": 1.0, "E": 0.8})
gp.fit(data[["t"]], data[["z", "v"]])
posterior = gp.posterior(np.linspace(0, 10, 5))
print(posterior.to_frame()[["t", "z", "z_lower", "z_upper", "v"]].round(2).to_string(index=False))
print("energy missed by less than 1e-12:", bool(abs(posterior.residual()).max() < 1e-12))
gp.save("oscillator.sumgp")
