"""Public data with known laws: cases of their protocols, competitors, scores, tables."""

from sumgp_studies.public.case import Case, Part
from sumgp_studies.public.catalogue import SETS as PUBLIC_SETS
from sumgp_studies.public.catalogue import PublicSet, sets_named
from sumgp_studies.public.compositions import gemas_gap
from sumgp_studies.public.hierarchies import PERIODS as HIERARCHIES
from sumgp_studies.public.hierarchies import hierarchy_scores, read_hierarchy
from sumgp_studies.public.methods import METHODS, Gaussians, independent, predicted, splines
from sumgp_studies.public.page import write_page
from sumgp_studies.public.real import SETS, cases
from sumgp_studies.public.run import plan, run_public, unfinished
from sumgp_studies.public.scores import scored
from sumgp_studies.public.table import page, summary
