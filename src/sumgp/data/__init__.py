"""Validated inputs and outputs, their names, and the scaling that makes them unit-free."""

from sumgp.data.table import Data, Scaling, choose_scaling, is_frame, merged_groups, output_groups, read_inputs, read_outputs

__all__ = [
    "Data",
    "Scaling",
    "choose_scaling",
    "is_frame",
    "merged_groups",
    "output_groups",
    "read_inputs",
    "read_outputs",
]
