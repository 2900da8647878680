"""Transforms h of single outputs, f' = h(f), with every branch of their inverse."""

from sumgp.transforms.base import NAMED_POWERS, Absolute, Branches, Identity, Power, Square, Transform, WholePower
from sumgp.transforms.custom import CustomTransform
from sumgp.transforms.elementary import Affine, Cos, Exp, Log, Relaxed, Sin, Tan
