"""A tree of averages over all points: near a prediction point single points, further away means of more and more."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sumgp.solvers.vecchia.blocks import leaf_order
from sumgp.solvers.vecchia.covariance import ScaledCovariance
from sumgp.solvers.vecchia.evidence import AT_ONCE

LEAF = 32  # points of a leaf, a power of two: within leaves the tree is halved down to single points
HALVINGS = 5  # from a leaf of 32 points down to single ones
SAMPLED = 32  # points that stand for those of a large node
FALL = (
    2.0  # nodes are opened by radius / distance^FALL: at 1.75 means and sds are further from dense algebra, rough to smooth
)
NEAREST = 1e-12  # lengthscales; stands for a distance of zero
# Rows of one node may lie in places far apart: its centre is then far from rows that are near. Such a node is opened by its
# gap, the distance of the box around it, as a node of an eighth of the gap's width at that distance would be.
WIDE, GAP_SHARE = 1.0, 0.125  # lengthscales of radius above which that may happen; of the gap


class AverageTree(NamedTuple):
    """Nodes with their children; -1: a single point. Coordinates in lengthscales.

    ``spread`` is Var(mean of f over the node - f at its centre), for a signal of variance one.
    """

    left: np.ndarray  # (M,)
    right: np.ndarray  # (M,)
    centre: np.ndarray  # (M, D)
    radius: np.ndarray  # (M,) root mean square
    weight: np.ndarray  # (M,) sum of the rows' weights
    total: np.ndarray  # (M, ...) sum of what rows carry
    low: np.ndarray  # (M, D) corner of the box around the rows
    high: np.ndarray  # (M, D)
    spread: np.ndarray  # (M,)
    root: int


class _Level(NamedTuple):
    """Sums over nodes of one depth: weights (n,), centres (n, D), weighted squares (n,), what they carry (n, ...).

    ``low`` and ``high`` (n, D) are corners of the boxes around their rows.
    """

    weight: np.ndarray
    centre: np.ndarray
    squares: np.ndarray
    total: np.ndarray
    low: np.ndarray
    high: np.ndarray


def build_tree(x: np.ndarray, weight: np.ndarray, carried: np.ndarray, covariance: ScaledCovariance) -> AverageTree:
    """The tree of points x (N, D) with positive weights (N,); ``carried`` (N, ...) is added up over each node."""
    scaled = x / covariance.lengthscales(x.shape[1])
    places = _places(scaled)
    n_leaves, real = len(places) // LEAF, places >= 0
    low, high = (np.where(real[:, None], scaled[places], none) for none in (np.inf, -np.inf))
    weights = np.where(real, weight[places], 0.0)
    singles = _Level(weights, scaled[places], np.zeros(len(places)), carried[places], low, high)
    singles.total[~real] = 0.0
    levels = [singles]
    for _ in range(HALVINGS):
        levels.append(_merged(_taken(levels[-1], slice(0, None, 2)), _taken(levels[-1], slice(1, None, 2))))
    levels.reverse()
    spreads = [_leaf_spread(singles, LEAF >> depth, covariance) for depth in range(HALVINGS)] + [np.zeros(len(places))]
    # Node numbers: leaves first, then their halves, and so on; the nodes above the leaves come last.
    offsets = np.concatenate([[0], np.cumsum([len(level.weight) for level in levels])])
    left = np.concatenate([offsets[d + 1] + 2 * np.arange(n_leaves << d) for d in range(HALVINGS)])
    left = np.concatenate([left, np.full(len(places), -1)])
    right = np.where(left >= 0, left + 1, -1)
    upper = _upper_nodes(n_leaves, int(offsets[-1]))
    whole = _Level(*(np.concatenate(parts) for parts in zip(*levels, strict=True)))
    whole = _with_upper(whole, upper)
    ranges = np.concatenate([u.ranges for u in upper]) if upper else np.zeros((0, 2), dtype=np.int64)
    spread = np.concatenate([*spreads, _upper_spread(scaled, places, ranges, whole.centre[offsets[-1] :], covariance)])
    return AverageTree(
        np.concatenate([left, *(u.left for u in upper)]),
        np.concatenate([right, *(u.right for u in upper)]),
        whole.centre,
        np.sqrt(whole.squares / np.where(whole.weight > 0, whole.weight, 1.0)),
        whole.weight,
        whole.total,
        whole.low,
        whole.high,
        np.maximum(spread, 0.0),
        int(offsets[-1]) if upper else 0,
    )


def _places(scaled: np.ndarray) -> np.ndarray:
    """Positions of the points leaf by leaf, ordered so that halves of halves of a leaf lie together; -1 fills the last."""
    order = leaf_order(scaled, LEAF)
    places = np.concatenate([order, np.full(-len(order) % LEAF, -1)])
    size = LEAF
    while size > 1:
        groups = places.reshape(-1, size)
        points = np.where(groups[:, :, None] >= 0, scaled[groups], np.nan)
        low, high = np.nanmin(points, axis=1, initial=np.inf), np.nanmax(points, axis=1, initial=-np.inf)
        side = np.argmax(high - low, axis=1)
        along = np.take_along_axis(points, side[:, None, None], axis=2)[:, :, 0]
        places = np.take_along_axis(groups, np.argsort(along, axis=1, kind="stable"), axis=1).ravel()  # NaN comes last
        size //= 2
    return places


def _taken(level: _Level, rows: slice | np.ndarray) -> _Level:
    return _Level(*(part[rows] for part in level))


def _merged(a: _Level, b: _Level) -> _Level:
    """Pairs of nodes as one each; points at one place keep a radius of exactly zero."""
    weight = a.weight + b.weight
    share = np.divide(b.weight, weight, out=np.zeros_like(weight), where=weight > 0)
    apart = b.centre - a.centre
    squares = a.squares + b.squares + a.weight * share * np.sum(apart**2, axis=1)
    low, high = np.minimum(a.low, b.low), np.maximum(a.high, b.high)
    return _Level(weight, a.centre + share[:, None] * apart, squares, a.total + b.total, low, high)


class _Upper(NamedTuple):
    """Nodes above the leaves at one depth: children, and the leaves [start, stop) below each."""

    left: np.ndarray
    right: np.ndarray
    ranges: np.ndarray


def _upper_nodes(n_leaves: int, offset: int) -> list[_Upper]:
    """By depth from the root, numbered from ``offset`` on, split where the leaves' own tree was."""
    ranges = np.array([[0, n_leaves]]) if n_leaves > 1 else np.zeros((0, 2), dtype=np.int64)
    result = []
    while len(ranges):
        start, stop = ranges.T
        middle = start + (stop - start) // 2
        children = np.stack([np.stack([start, middle], 1), np.stack([middle, stop], 1)], axis=1).reshape(-1, 2)
        inner = children[:, 1] - children[:, 0] > 1
        offset += len(ranges)
        numbers = np.where(inner, offset + np.cumsum(inner) - 1, children[:, 0]).reshape(-1, 2)
        result.append(_Upper(numbers[:, 0], numbers[:, 1], ranges))
        ranges = children[inner]
    return result


def _with_upper(lower: _Level, upper: list[_Upper]) -> _Level:
    """The sums of the nodes above, from the deepest up."""
    count, n_lower = sum(len(u.left) for u in upper), len(lower.weight)
    whole = _Level(*(np.concatenate([part, np.zeros((count, *part.shape[1:]))]) for part in lower))
    stop = n_lower + count
    for nodes in reversed(upper):
        start = stop - len(nodes.left)
        made = _merged(_taken(whole, nodes.left), _taken(whole, nodes.right))
        for part, new in zip(whole, made, strict=True):
            part[start:stop] = new
        stop = start
    return whole


def _leaf_spread(singles: _Level, size: int, covariance: ScaledCovariance) -> np.ndarray:
    """Var(mean f - f(centre)) of nodes of ``size`` points within leaves, from all pairs of these."""
    points = singles.centre.reshape(-1, size, singles.centre.shape[1])
    weight = singles.weight.reshape(-1, size)
    total = weight.sum(axis=1, keepdims=True)
    share = np.divide(weight, total, out=np.zeros_like(weight), where=total > 0)
    centre = np.einsum("gm,gmd->gd", share, points)[:, None]
    result = np.empty(len(points))
    step = max(1, AT_ONCE // size**2)
    for start in range(0, len(points), step):
        part = slice(start, start + step)
        K = covariance.within(points[part])
        near = covariance.between(points[part], centre[part])[:, :, 0]
        pairs = np.einsum("gm,gmn,gn->g", share[part], K, share[part], optimize=True)
        result[part] = pairs - 2.0 * np.sum(share[part] * near, axis=1) + (share[part].sum(axis=1)) ** 2
    return result


def _upper_spread(
    scaled: np.ndarray, places: np.ndarray, ranges: np.ndarray, centre: np.ndarray, covariance: ScaledCovariance
) -> np.ndarray:
    """The same for nodes above leaves, from a few points of each."""
    n_points = np.minimum(ranges[:, 1] * LEAF, len(scaled)) - ranges[:, 0] * LEAF
    fractions = (np.arange(SAMPLED) + 0.5) / SAMPLED
    chosen = places[ranges[:, :1] * LEAF + (n_points[:, None] * fractions).astype(np.int64)]
    result = np.empty(len(ranges))
    step = max(1, AT_ONCE // SAMPLED**2)
    for start in range(0, len(ranges), step):
        part = slice(start, start + step)
        points = scaled[chosen[part]]
        K = covariance.within(points)
        apart = (K.sum(axis=(1, 2)) - SAMPLED) / (SAMPLED * (SAMPLED - 1))
        near = covariance.between(points, centre[part][:, None]).mean(axis=(1, 2))
        result[part] = apart + (1.0 - apart) / n_points[part] - 2.0 * near + 1.0
    return result


def nodes_for_each(tree: AverageTree, points: np.ndarray, count: int) -> np.ndarray:
    """(n, count) nodes that together hold all data, opened around each of the points (n, D) alone; -1 where fewer do."""
    n = len(points)
    nodes = np.full((n, count), -1)
    scores = np.zeros((n, count))
    nodes[:, 0] = tree.root
    scores[:, 0] = _scores(tree, nodes[:, :1], points)[:, 0]
    rows = np.arange(n)
    for filled in range(1, count):
        worst = np.argmax(scores[:, :filled], axis=1)
        opened = nodes[rows, worst]
        # A node of radius zero is exact as it is: its children stay unseen.
        open_ = scores[rows, worst] > 0
        children = np.stack([tree.left[opened], tree.right[opened]], axis=1)
        values = _scores(tree, children, points)
        nodes[rows, worst] = np.where(open_, children[:, 0], opened)
        nodes[:, filled] = np.where(open_, children[:, 1], -1)
        scores[rows, worst] = np.where(open_, values[:, 0], 0.0)
        scores[:, filled] = np.where(open_, values[:, 1], 0.0)
    return nodes


def _scores(tree: AverageTree, nodes: np.ndarray, points: np.ndarray) -> np.ndarray:
    """How much opening each of the nodes (n, k) is worth at the points (n, D)."""
    squares, radius = np.sum((tree.centre[nodes] - points[:, None]) ** 2, axis=2), tree.radius[nodes]
    scores = radius / np.maximum(squares, NEAREST**2) ** (0.5 * FALL)
    which = np.nonzero(radius > WIDE)
    if len(which[0]):
        wide, there = nodes[which], points[which[0]]
        outside = np.maximum(np.maximum(tree.low[wide] - there, there - tree.high[wide]), 0.0)
        gap = np.maximum(np.sqrt(np.sum(outside**2, axis=1)), NEAREST)
        scores[which] = np.where(gap < radius[which], np.maximum(scores[which], GAP_SHARE / gap), scores[which])
    return np.asarray(scores)


def nodes_for_all(tree: AverageTree, points: np.ndarray, count: int) -> np.ndarray:
    """(k,) nodes, at most ``count``, that hold all data, opened for all points together."""
    nodes, scores = np.full(count, -1), np.zeros(count)
    nodes[0], scores[0] = tree.root, 1.0
    filled = 1
    while filled < count:
        worst = int(np.argmax(scores[:filled]))
        if not (scores[worst] > 0 and tree.left[nodes[worst]] >= 0):
            break
        pair = np.array([tree.left[nodes[worst]], tree.right[nodes[worst]]])
        values = _scores(tree, np.broadcast_to(pair, (len(points), 2)), points).max(axis=0)
        (nodes[worst], nodes[filled]), (scores[worst], scores[filled]) = pair, values
        filled += 1
    return nodes[:filled]
