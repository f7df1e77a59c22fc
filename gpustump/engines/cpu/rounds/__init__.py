"""Many rounds in one call, without Python between them."""
