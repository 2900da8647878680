"""Ways to impose a law, from ignoring it to conditioning on it."""

from sumgp.strategies.averaging import LARGEST_INTEGRATED, Candidates, Score, fit_candidates, mix, one_by_one
from sumgp.strategies.collocated import Collocated
from sumgp.strategies.conditioned import Conditioned
from sumgp.strategies.eliminated import CONTRADICTED
from sumgp.strategies.left_out import LeftOut as RowsLeftOut
from sumgp.strategies.left_out import RowNoise, TrainingRows, component_left_out, mixed
from sumgp.strategies.linearized import LawEngine, Linearized, law_spacing
from sumgp.strategies.open_constants import warn_of_open_constants
from sumgp.strategies.own_outputs import Cells, OwnComponent, with_own_noises
from sumgp.strategies.problem import (
    DEFAULT_RESTARTS,
    MANY_PARAMETERS,
    FitProblem,
    Fitted,
    LocalPosterior,
    Marginals,
    PosteriorComponent,
    SeriesPlan,
    Strategy,
    closed_imbalance,
    typical_range,
)
from sumgp.strategies.projected import Projected, Unconstrained
from sumgp.strategies.rough_series import fit_if_rough
from sumgp.strategies.vecchia_fits import Asked, choose_map_solver
from sumgp.strategies.weight_component import Component, Unprojected, join_points, plain_component, with_soft_errors
