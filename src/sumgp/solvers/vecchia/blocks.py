"""Points in blocks, blocks in an order from coarse to fine, and for each block the nearest earlier points.

Leaves of a k-d tree are the blocks. Taken in bit-reversed order they fill the region evenly at every stage, nearly as
an exact maximin order does.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.spatial import cKDTree

FURTHER = 3  # times as many candidates as neighbours wanted are looked at first: at least half of all points are earlier


class BlockGroup(NamedTuple):
    """Blocks with as many neighbours and points each: positions (B, k + n) of the k neighbours, then the n points."""

    members: np.ndarray
    n_new: int


def leaf_order(x: np.ndarray, size: int) -> np.ndarray:
    """(N,) positions of the points so that each run of ``size`` is a leaf of a k-d tree; the last leaf may be shorter.

    Nodes are cut across their widest side, at a multiple of ``size``.
    """
    order = np.arange(len(x))
    stack = [(0, len(x))]
    while stack:
        start, stop = stack.pop()
        leaves = -(-(stop - start) // size)
        if leaves < 2:
            continue
        here = order[start:stop]
        points = x[here]
        side = points[:, int(np.argmax(np.ptp(points, axis=0)))]
        left = (leaves // 2) * size
        order[start:stop] = here[np.argpartition(side, left)]
        stack += [(start, start + left), (start + left, stop)]
    return order


def coarse_to_fine(count: int) -> np.ndarray:
    """(count,) the numbers below ``count`` by their reversed bits: each beginning of them is spread evenly."""
    bits = max(int(count - 1).bit_length(), 1)
    numbers = np.arange(count)
    reversed_bits = np.zeros(count, dtype=np.int64)
    for bit in range(bits):
        reversed_bits |= ((numbers >> bit) & 1) << (bits - 1 - bit)
    return np.argsort(reversed_bits, kind="stable")


def make_blocks(x: np.ndarray, size: int, neighbours: int) -> tuple[BlockGroup, ...]:
    """Blocks of ``size`` points of x (N, D), scaled by the lengthscales, each with its nearest earlier points."""
    order = leaf_order(x, size)
    starts = np.arange(0, len(x), size)[coarse_to_fine(-(-len(x) // size))]
    blocks = [order[start : start + size] for start in starts]
    rank = np.empty(len(x), dtype=np.int64)
    for place, block in enumerate(blocks):
        rank[block] = place
    sequence = np.concatenate(blocks)
    ends = np.cumsum([len(block) for block in blocks])
    centres = np.stack([x[block].mean(axis=0) for block in blocks])
    found: dict[tuple[int, int], list[np.ndarray]] = {(0, len(blocks[0])): [blocks[0]]}
    stage = 1
    while stage < len(blocks):
        numbers = np.arange(stage, min(2 * stage, len(blocks)))
        candidates = sequence[: ends[numbers[-1]]]
        nearest = _earlier_neighbours(x, candidates, rank, (centres[numbers], numbers), ends, neighbours)
        for number, chosen in zip(numbers, nearest, strict=True):
            block = blocks[number]
            found.setdefault((len(chosen), len(block)), []).append(np.concatenate([chosen, block]))
        stage *= 2
    return tuple(BlockGroup(np.stack(members), n_new) for (_, n_new), members in found.items())


def _earlier_neighbours(
    x: np.ndarray,
    candidates: np.ndarray,
    rank: np.ndarray,
    wanted: tuple[np.ndarray, np.ndarray],
    ends: np.ndarray,
    neighbours: int,
) -> list[np.ndarray]:
    """Positions of the points nearest each centre whose block comes before it; ``wanted``: centres and their numbers."""
    centres, numbers = wanted
    tree = cKDTree(x[candidates])
    result: list[np.ndarray] = [np.zeros(0, dtype=np.int64)] * len(numbers)
    counts = np.minimum(neighbours, ends[numbers - 1])
    left, k = np.arange(len(numbers)), min(FURTHER * neighbours, len(candidates))
    while len(left):
        near = candidates[np.reshape(tree.query(centres[left], k=k)[1], (len(left), k))]
        earlier = rank[near] < numbers[left, None]
        enough = earlier.sum(axis=1) >= counts[left]
        for i in np.flatnonzero(enough):
            result[left[i]] = near[i][earlier[i]][: counts[left[i]]]
        left, k = left[~enough], min(2 * k, len(candidates))
    return result
