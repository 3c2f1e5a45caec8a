"""The operators of the paper's experiments, trained by `pfbr reproduce NAME --retrain`."""
