"""The loop and everything that acts: `loop` is the centre, the other modules perform one kind of action each."""
