"""Transforms h of single outputs, f' = h(f), with every branch of their inverse."""

from sumgp.transforms.base import Absolute, Branches, Identity, Power, Square, Transform, WholePower, whole_power
from sumgp.transforms.custom import CustomTransform
from sumgp.transforms.elementary import Affine, Cos, Exp, Log, Relaxed, Sin, Tan
