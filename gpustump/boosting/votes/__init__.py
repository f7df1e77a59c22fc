"""What a round's regions vote, decided on the host from exact integers."""
