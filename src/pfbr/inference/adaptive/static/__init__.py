"""Static unknowns: weigh while that is enough, otherwise rejuvenate against the kept past."""
