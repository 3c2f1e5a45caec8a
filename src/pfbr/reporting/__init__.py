"""Records to pages and figures; nothing here computes."""
