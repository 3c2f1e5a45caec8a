"""Error against CPU time for one update: ours and every rival, each with as many particles as the time allows."""
