"""How much of a collection one privacy unit can be."""
