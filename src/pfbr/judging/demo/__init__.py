"""The demonstration, scene by scene: each computes and writes records; `pfbr.reporting` draws from them."""
