"""Engines run plans. They see five shapes, not operators; they know no budgets and draw no random numbers."""
