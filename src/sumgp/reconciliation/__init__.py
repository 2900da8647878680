"""Forecasts made by any other tool, moved onto a law."""

from sumgp.reconciliation.given import shrunk_covariance
from sumgp.reconciliation.onto_law import Reconciled, reconcile
