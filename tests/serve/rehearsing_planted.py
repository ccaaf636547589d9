"""The process of rehearsals with questions that take too much: by what their text says."""

import os

from wpinq.apps.serve import rehearsing


def main():
    real = rehearsing.rehearse

    def planted(line, catalogue):
        text = "" if line.sql is None else line.sql.query
        if "slow" in text:
            while True:
                pass
        if "large" in text:
            [bytes(1 << 28) for _ in range(64)]
        if "dies" in text:
            os._exit(3)
        real(line, catalogue)

    rehearsing.rehearse, rehearsing.SECONDS = planted, 0.3
    rehearsing.main()


if __name__ == "__main__":
    main()
