"""What all pictures look like, and the files that they are written to."""

SUFFIXES = (".png", ".svg", ".pdf")
INK, GRID, FAINT = "#222222", "#dddddd", "#666666"
NOISY, FITTED, BAND, TRUE = "#e69f00", "#0072b2", "#56b4e9", "#000000"  # Okabe and Ito: safe for the colour-blind
