"""Measurements of speed: CPU times side by side in one run, with the limit that LAPACK sets."""

from sumgp_studies.speed.evidence import KRONECKER_SIZES, QUICK_SIZES, dense_section, fit_section, kronecker_section
from sumgp_studies.speed.fits import many_section, oscillator_section
from sumgp_studies.speed.map_accuracy import accuracy_section
from sumgp_studies.speed.map_rivals import compositions_section, gpboost_section, satellite_section
from sumgp_studies.speed.maps import maps_section
from sumgp_studies.speed.page import write_results
from sumgp_studies.speed.series import long_section, markov_section
from sumgp_studies.speed.timing import Bar, Section, cpu_seconds
