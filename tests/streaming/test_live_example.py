"""The live page of a web log runs, closes its hours, and stays within its budget."""

import processes


def test_live_web_log(tmp_path):
    said = processes.printed("-W", "error", "-m", "examples.live_web_log", tmp_path)
    for hour in ("09", "10", "11"):
        assert (tmp_path / f"degrees-{hour}.png").read_bytes().startswith(b"\x89PNG")
    quarters = [line.replace(",", "").split() for line in said.splitlines() if line[2:3] == ":"]
    assert len(quarters) == 12
    errors = [abs(int(line[1]) - int(line[3])) for line in quarters]
    assert max(errors) < 700, "levels up to 1 or 2 at epsilon 0.1: off by this with a probability below e^-10"
    assert len({line[3] for line in quarters}) == 12
    for line in quarters[3::4]:
        pages, views = int(line[5]), int(line[7])
        assert 0 < pages < 4000
        assert abs(views - 12_000) < 1200
