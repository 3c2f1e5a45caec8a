"""What training lowers: each objective draws a problem and says how wrong an operator is on it."""
