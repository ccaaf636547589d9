"""Coq accepts every proof, and no theorem assumes anything."""

import coq
import pytest
from depth import deep


@deep
@pytest.mark.slow
def test_no_theorem_rests_on_an_axiom(place):
    assert coq.assumptions(place) == "Closed under the global context"
    assert sum(map(len, coq.theorems().values())) > 15


@deep
def test_a_theorem_that_does_not_hold_is_refused(tmp_path):
    coq.needed()
    (tmp_path / "Wrong.v").write_text("Theorem wrong : 1 = 2.\nProof. reflexivity. Qed.\n")
    with pytest.raises(AssertionError, match="Unable to unify"):
        coq.run(["coqc", "-q", "Wrong.v"], tmp_path)


WRONG = {
    "a tie compares the same word again": ("Sampler", "below limit (S depth) rest", "below limit depth rest"),
    "no word is below": ("Sampler", "[] => None\n  | word ", "[] => Some true\n  | word "),
    "a hit counts twice": ("Sampler", "match hits tail rest with Some h => Some (1 + h) | None => None end\n",
                           "match hits tail rest with Some h => Some (2 + h) | None => None end\n"),
    "a block is the one before": ("Gaussian", "match find more words with Some k => Some (1 + k)",
                                  "match find more words with Some k => Some k"),
    "zero is drawn twice": ("Gaussian", "if andb (width =? 1) (number =? 0) then", "if number =? 0 then"),
    "a place stays by its distance alone": ("Gaussian", "weight (offset * (2 * (block * width) + offset)) in",
                                            "weight (offset * offset) in"),
    "digits of three": ("Sampler", "Some (Z.b2z digit + 2 * k)\n", "Some (Z.b2z digit + 3 * k)\n"),
    "both sides are added": ("Sampler", "Some (a - b)", "Some (a + b)"),
    "a digit without its odds": ("Geometric", "x / (one + x) else one / (one + x)", "x else one - x"),
    "each digit has the chance of the first": ("Geometric", "chance digits (x * x)", "chance digits x"),
    "the tail stops by the wrong chance": ("Geometric", "one - x else zero", "one else zero"),
}  # fmt: skip


@deep
@pytest.mark.slow
@pytest.mark.parametrize("fault", WRONG)
def test_a_wrong_sampler_has_another_law(place, tmp_path, fault):
    """A definition that is changed, and its theorem with it, is refused."""
    file, right, wrong = WRONG[fault]
    text = (coq.PROOFS / f"{file}.v").read_text()
    assert text.count(right) == 1
    (tmp_path / "Changed.v").write_text(text.replace(right, wrong))
    with pytest.raises(AssertionError, match=r"Changed\.v"):
        coq.run(["coqc", "-q", "-Q", str(place), "Proofs", "Changed.v"], tmp_path)
