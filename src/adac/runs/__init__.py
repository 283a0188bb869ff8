"""What a run leaves on disk: its folder, checkpoints, tables; and what a person sees of it."""
