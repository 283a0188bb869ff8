"""Better settings for a task: `adac tune`."""
