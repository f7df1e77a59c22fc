"""What the commands print and write: text, tables of results, pictures, a report."""
