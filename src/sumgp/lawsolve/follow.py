"""A further start for nonlinear laws: the law imposed at one point after the other, from known outputs outwards.

Gauss-Newton from the posterior mean takes the branch of the law that is nearest to it point by point. Where an output was
not measured, the mean runs back to its average, and the nearest branch may be one that no smooth curve reaches. Conditioning
on the law one point at a time carries value and slope along, also through turning points where two branches cross.
"""

from __future__ import annotations

import numpy as np

from sumgp.laws import UnitFreeLaw

LOCAL_STEPS = 2  # linearisations at each stop: the second is where the first one led
EQUAL_BRANCH = 1e-6  # relative difference of variances that round-off may make
STOPS = 30  # points at which the law is imposed on the way


def follow_law(law: UnitFreeLaw, x: np.ndarray, m: np.ndarray, P: np.ndarray, variances: np.ndarray) -> np.ndarray:
    """(n, C) mean of N(m, P) after conditioning on g = 0 at some of the points in turn, the least uncertain first.

    Each turn is an iterated Kalman update with the law's ``variances`` (n R,) as noise: the law is linearised where the
    point itself comes to lie, and all points move with it. Returns m where the law is not finite.
    """
    n, C = m.shape
    noise = variances.reshape(n, -1)
    stops = np.linspace(0, n - 1, min(n, STOPS)).round().astype(int)
    mean, K = m.copy(), P.reshape(n, C, n, C)[:, :, stops]
    # (stops,) total variance of each stop that is still waiting.
    spread = np.einsum("scsc->s", K[stops])
    for _ in stops:
        least = float(np.min(spread))
        s = int(np.argmax(spread <= least + EQUAL_BRANCH * abs(least)))
        i = stops[s]
        here, local, f = x[i : i + 1], K[i, :, s], mean[i]
        for _ in range(LOCAL_STEPS):
            g, J = law.residual(f[None], here)[0], law.jacobian(f[None], here)[0]
            left = J @ (f - mean[i]) - g
            JP = J @ local
            S = JP @ J.T
            S.flat[:: len(S) + 1] += noise[i]
            if not (np.isfinite(left).all() and np.isfinite(S).all()):
                return m
            w = _solved(S, left)
            f = mean[i] + JP.T @ w
        gain = K[:, :, s] @ J.T  # (n, C, R)
        mean = mean + gain @ w
        at_stops = gain[stops].reshape(-1, len(w))
        pulled = _solved(S, at_stops.T)
        K = K - (gain @ pulled).reshape(K.shape)
        spread = spread - np.einsum("kr,rk->k", at_stops, pulled).reshape(-1, C).sum(axis=1)
        spread[s] = np.inf
    return mean if np.all(np.isfinite(mean)) else m


def _solved(S: np.ndarray, right: np.ndarray) -> np.ndarray:
    return right / S[0, 0] if len(S) == 1 else np.linalg.solve(S, right)
