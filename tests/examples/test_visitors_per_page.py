"""What a bound before the question loses, and after it does not: the example's claim, in its figures."""

from examples import visitors_per_page as story
from wpinq.ledger.secret import Secret

ONE = Secret(bytes(range(32)))


def test_visitors_are_within_noise_of_the_truth_only_where_the_bound_comes_last():
    """The secret is fixed, so nothing is random; with another one, early fails with a chance of 6 exp(-5) at most."""
    log, pages = story.made_up(), story.PAGES[: story.SHOWN]
    true = story.truth(log, pages)
    early, late = story.early(log, ONE), story.late(log, ONE)
    assert max(abs(n - m) for n, m in zip(early.observe_many(pages).tolist(), true, strict=True)) <= 100
    lost = [1 - n / m for n, m in zip(late.observe_many(pages).tolist(), true, strict=True)]
    assert max(lost) > 0.2, "a fifth of the visitors of some page, whatever the noise"
    assert early.epsilon == late.epsilon == 1
