"""What a step sees when it starts: each strategy is a pure function from a view to edits."""
