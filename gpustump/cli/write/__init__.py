"""The files that commands write: results, models, pictures, the report."""
