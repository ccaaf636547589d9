"""What people see of plans, quotes, measurements, answers and budgets: text, notebooks, pictures."""
