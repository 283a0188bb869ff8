"""Roboschool's walkers on PyBullet: `robots` are values, the `walker` is shared."""
