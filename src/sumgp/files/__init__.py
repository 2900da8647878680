"""Model files: arrays and JSON in one zip, versioned, nothing in them that runs."""

from sumgp.files.archive import write_file, write_files
from sumgp.files.model import load, model_bytes, plain, save
