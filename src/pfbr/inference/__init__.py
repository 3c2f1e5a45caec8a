"""One observation: methods, operators, sessions, posteriors."""
