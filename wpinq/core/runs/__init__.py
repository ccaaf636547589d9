"""When what was charged is computed: which epoch answers, one run for all that wait, and what a log may forget."""
