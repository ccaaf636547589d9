"""What the command lines of benchmarks begin with."""

import argparse


def flags(text: str | None, smoke: str = "a run of seconds, to see that it works") -> argparse.ArgumentParser:
    """A parser that knows `--smoke`.

    Args:
        text: What the benchmark measures.
        smoke: What is left out then.
    """
    made = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--smoke", action="store_true", help=smoke)
    return made
