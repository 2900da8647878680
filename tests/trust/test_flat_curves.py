"""A law is met best by a curve that hardly varies; the rows must be able to say no."""

from __future__ import annotations

import numpy as np

import sumgp
from sumgp_studies.experiments.catalogue import all_problems


def test_few_noisy_rows_do_not_end_in_a_flat_curve() -> None:
    # The evidence of the law outweighed that of the rows: a constant, with status "converged".
    problem = all_problems()["harmonic_oscillator"]
    cell = next(c for c in problem.cells if c.noise == 0.3 and c.missing > 0)
    data = problem.dataset(cell, 7)
    gp = sumgp.ConstrainedGP(data.constraint, outputs=list(data.outputs)).fit(data.X_train, data.Y_train)
    posterior = gp.posterior(data.X_test)
    truth = data.F_test
    assert np.all(posterior.mean.std(axis=0) > 0.5 * truth.std(axis=0))
    assert np.sqrt(np.mean((posterior.mean - truth) ** 2)) < 0.8 * truth.std()
    assert "more probable" in gp.fit_report_["law_weights_reason"]


def test_rows_that_agree_with_the_law_change_nothing() -> None:
    data = sumgp.datasets.oscillator().frame
    gp = sumgp.ConstrainedGP("z**2/2 + v**2/2 = 0.8", outputs=["z", "v"]).fit(data[["t"]], data[["z", "v"]])
    assert gp.fit_report_["law_weights_reason"] == "left-out rows agree with the law"
