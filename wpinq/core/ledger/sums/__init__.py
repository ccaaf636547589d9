"""What charges add up to: costs, the orders of their divergences, and what a budget allows."""
