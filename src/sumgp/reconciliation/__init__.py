"""Forecasts made by any other tool, moved onto a law."""

from sumgp.reconciliation.given import shrunk_covariance
from sumgp.reconciliation.onto_law import reconcile
from sumgp.reconciliation.result import Reconciled
