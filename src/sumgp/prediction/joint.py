"""The joint covariance of all points under a mixture of posteriors."""

from __future__ import annotations

import numpy as np

from sumgp.strategies import Fitted, GivesJointGaussian, JointSum


def mixture_covariance(fitted: Fitted, inputs: np.ndarray, x: np.ndarray, centre: np.ndarray) -> np.ndarray:
    """(nT, nT) unit-free mean square deviations from ``centre`` (n, T), ordered point by point."""
    n, T = centre.shape
    joint, total = JointSum(n, T), np.zeros((n * T, n * T))
    offsets = []
    for weight, component in zip(fitted.weights, fitted.components, strict=True):
        if isinstance(component, GivesJointGaussian):
            part = component.joint_gaussian(inputs, x).outputs(T)
            joint.add(part, weight)
            mean = part.mean
        else:
            C = component.n_columns
            mean = component.marginals(inputs, x)[0][:, :T]
            dense = component.joint_covariance(inputs, x).reshape(n, C, n, C)[:, :T, :, :T]
            total += weight * dense.reshape(n * T, n * T)
        offsets.append(np.sqrt(weight) * (mean - centre).ravel())
    joint.add_squares(np.stack(offsets, axis=1))
    total += joint.matrix()
    return total
