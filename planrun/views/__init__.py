"""What people and machines look at: everything here is made from records and the state that they fold to."""
