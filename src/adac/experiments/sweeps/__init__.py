"""Many trials: what they are, where they run, what is kept of them."""
