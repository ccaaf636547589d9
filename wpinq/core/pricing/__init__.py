"""What a question costs, and the noise that this buys: sensitivity, privacy cost, quotes, thresholds."""
