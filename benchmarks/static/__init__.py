"""Problems with static unknowns that a newcomer might bring, each with its true posterior at rows 1, 5, 20 and all."""
