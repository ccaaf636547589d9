"""Runs on many cores: what other processes are told of a plan, and the engines that run it there. See README.md."""
