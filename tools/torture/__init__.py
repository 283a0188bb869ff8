"""Attacks on adac's own promises, counted: `make torture`, an hour on two cores."""
