"""What learns: pure functions over values. Knows no Gymnasium and no files."""
