"""Runs to and from the Hugging Face hub: `adac push` and `adac pull`."""
