"""Small data sets for examples, each with its law: ``sumgp.datasets.oscillator()`` and others."""

from sumgp.datasets.catalogue import all_datasets, electricity, epidemic, mars, oscillator, tourism
from sumgp.datasets.dataset import Dataset
