"""The files that commands write: results, models, pictures, pages."""
