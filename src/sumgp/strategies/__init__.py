"""Ways to impose a law, from ignoring it to conditioning on it."""

from sumgp.strategies.base import Fitted, Strategy
from sumgp.strategies.conditioned import Conditioned
from sumgp.strategies.linearized import Linearized
from sumgp.strategies.projected import Projected
from sumgp.strategies.transformed import Transformed
from sumgp.strategies.unconstrained import Unconstrained

__all__ = ["Conditioned", "Fitted", "Linearized", "Projected", "Strategy", "Transformed", "Unconstrained"]
