"""Validated inputs and outputs, their names, and the scaling that makes them unit-free."""

from sumgp.data.calendar import UNITS, Calendar, Dates, text_as_dates
from sumgp.data.roughness import seen_by_kernels
from sumgp.data.table import (
    DIFFERENT,
    FEWEST_OF_A_GROUP,
    Data,
    Scaling,
    choose_scaling,
    group_medians,
    in_bulk,
    is_frame,
    is_series,
    merged_groups,
    noise_reach,
    output_groups,
    read_columns,
    read_inputs,
    read_outputs,
)
