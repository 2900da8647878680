"""The paper's experiments: problems, published numbers, methods, and the runner that compares them."""

from sumgp_studies.experiments.approximations import Approximations
from sumgp_studies.experiments.catalogue import all_problems
from sumgp_studies.experiments.double_pendulum import N_ROWS, TRAINING_ROWS, DoublePendulum
from sumgp_studies.experiments.free_fall import FreeFall
from sumgp_studies.experiments.log_sine import LogSine
from sumgp_studies.experiments.methods import Method, Settings, all_methods, method_named, order
from sumgp_studies.experiments.oscillators import DampedOscillator, HarmonicOscillator
from sumgp_studies.experiments.pendulum_data import (
    FOLDER,
    download_recordings,
    find_recordings,
    read_recording,
    warn_if_altered,
)
from sumgp_studies.experiments.pendulum_simulation import SimulatedPendulum
from sumgp_studies.experiments.problem import Cell, Dataset, Problem, length_errors
from sumgp_studies.experiments.published import LABELS, counterpart, published_scores, published_source, record_field
from sumgp_studies.experiments.records import Record, RecordFile
from sumgp_studies.experiments.runner import FIT_FAILURES, Task, plan, records_path, run, unfinished
from sumgp_studies.experiments.triangle import Triangle
