"""States given what came later."""
