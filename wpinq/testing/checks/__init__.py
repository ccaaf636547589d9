"""Checks of wpinq itself, and planted faults that each of them must find; `wpinq audit --self` runs them.

A check runs in a process of its own: of the package as it is installed, or of a copy in which a fault was planted.
"""
