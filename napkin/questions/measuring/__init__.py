"""What `bench` makes of what it measured: an answer, doubts, and what is kept of it."""
