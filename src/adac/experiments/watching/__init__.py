"""A run while it goes on, in a browser: `adac watch`."""
