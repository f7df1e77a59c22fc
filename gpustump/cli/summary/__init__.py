"""What commands print: the summary of a training, rules, rows in words."""
