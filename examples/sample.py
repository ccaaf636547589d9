"""Make up a web log: views of pages by users, heavy-tailed as real ones are, the same for the same seed.

python -m examples.sample OUT.csv --views 30000 --seed 1
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import numpy.typing as npt

PAGES, USERS = 4000, 2500


def sample(views: int = 30_000, seed: int = 1) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Draw who viewed what: pages by a power law with a bend at its head, users by a log-normal law.

    Returns:
        Users and pages, numbered from 1, one of each for every view.
    """
    rng = np.random.default_rng(seed)
    popularity = 1 / (np.arange(1, PAGES + 1) + 5) ** 1.1
    activity = rng.lognormal(0, 1.2, USERS)
    pages = rng.choice(PAGES, views, p=popularity / popularity.sum())
    users = rng.choice(USERS, views, p=activity / activity.sum())
    return users + 1, pages + 1


def write(path: Path, views: int = 30_000, seed: int = 1) -> None:
    """Write a sample as CSV, unless it stands there already."""
    users, pages = sample(views, seed)
    rows = (f"user {user},Page {page}\n" for user, page in zip(users.tolist(), pages.tolist(), strict=True))
    text = ("user,page\n" + "".join(rows)).encode()
    if path.exists() and path.read_bytes() == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text)


def main() -> None:
    """Write a sample where the command line says."""
    parser = argparse.ArgumentParser(description=write.__doc__)
    parser.add_argument("path", type=Path, metavar="OUT.csv")
    parser.add_argument("--views", type=int, default=30_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    write(options.path, options.views, options.seed)
    print(f"{options.path}: {options.views:,} made-up views, seed {options.seed}")


if __name__ == "__main__":
    main()
