"""On disk: whole files, named arrays, records."""
