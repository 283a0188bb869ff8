"""What runs an agent in environments: compiled functions, replay, the loop, the learner."""
