"""Pure ground: values, the fold and the decision. No file, clock, random, environment, network or logging here."""
