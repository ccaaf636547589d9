"""What a dataflow remembers: weights by identity (`table`) and weights over ranges of integers (`steps`).

State holds identities and exact integer weights, never a record and never a float.
"""
