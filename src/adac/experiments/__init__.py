"""Trials, sweeps, figures: what is run with the library, apart from the library."""
