"""Transforms h of single outputs, f' = h(f), with every branch of their inverse."""

from sumgp.transforms.base import Absolute, Branches, Power, Square, Transform
from sumgp.transforms.custom import CustomTransform
from sumgp.transforms.elementary import Affine, Cos, Exp, Identity, Log, Relaxed, Sin, Tan
