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
