"""Real data: electricity of Portugal by source sums to 100 %; ten years of water power are hidden from the fit."""

import matplotlib.pyplot as plt
import numpy as np
from look import WITH, band, dots, save
from sklearn.gaussian_process.kernels import Matern

from sumgp import datasets

data = datasets.electricity("Portugal")  # Our World in Data, CC BY 4.0
hidden = data.Y.copy()
hidden.loc[12:21, "hydro"] = np.nan
settings = {"noise": 0.1, "kernel": Matern(nu=0.5), "uncertainty": "plug-in"}  # shares are exact to a tenth, and rough
gp = data.model(**settings).fit(data.X, hidden)
posterior = gp.posterior(data.X)

hydro = data.outputs.index("hydro")
missed = (posterior.mean - data.Y.to_numpy())[12:22, hydro]
print(
    f"error of the hidden values: {np.sqrt(np.mean(missed**2)):.2f}"
)  # as small without the law, which the complete years show
figure, axes = plt.subplots(figsize=(4.2, 2.8))
years = data.frame["year"]
band(axes, years, posterior, hydro, WITH, "sum is 100")
dots(axes, years, hidden["hydro"])
dots(axes, years[12:22], data.Y["hydro"][12:22], fillstyle="none", label="hidden")
axes.set(xlabel="year", ylabel="water power in %")
axes.legend(fontsize=8)
save(figure, "electricity")
