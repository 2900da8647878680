"""Small data sets for examples, each with its law: ``sumgp.datasets.oscillator()`` and others."""

from sumgp.datasets.catalogue import Dataset, all_datasets, electricity, epidemic, mars, oscillator, tourism
