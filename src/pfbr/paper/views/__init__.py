"""From records to pages: one view an experiment; nothing here computes."""
