"""Problems whose unknown moves, each with streams from a seed and the true posterior after every step."""
