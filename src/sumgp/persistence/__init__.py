"""Model files: arrays and JSON in one zip, versioned, nothing in them that runs."""

from sumgp.persistence.model import load, model_bytes, save

__all__ = ["load", "model_bytes", "save"]
