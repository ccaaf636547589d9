"""Continual release: a running histogram at every epoch, for ever, for one epsilon.

    tree       which nodes of a counting tree make up an epoch, and what each level may spend
    changes    what was counted up to each epoch
    spread     how far a sum of noises can be from zero
    release    the measurement

It is for plans that are linear for each record. Elsewhere one early event moves the whole stream of changes (one view
more, and every later degree step comes one epoch earlier), so its cost would grow with time: use windows there.
Source: privacy rules 5, 11, 12 and 36.
"""

from wpinq.continual.release import ContinualMeasurement

__all__ = ["ContinualMeasurement"]
