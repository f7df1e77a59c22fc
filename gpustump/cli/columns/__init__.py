"""How the columns of a table become features, target, weights and offsets."""
