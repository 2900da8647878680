"""Model files: arrays and JSON in one zip, versioned, nothing in them that runs."""

from sumgp.files.model import load, model_bytes, plain, save
from sumgp.files.writing import write_file, write_files
