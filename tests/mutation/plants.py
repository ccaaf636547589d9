"""Faults that are put in by name, each found by a named test: the classes of Re:cord-play, one for each privacy rule,
and old bugs of this project.

Re:cord-play (arXiv 2602.17454) found 13 faults in 12 libraries, of these classes: domains that are inferred from data,
budgets that are spent twice, NaN that is let in, noise and sensitivity that are miscalibrated. `kind` names the class.
"""

# ruff: noqa: E501  texts of the code as they stand

from __future__ import annotations

from typing import NamedTuple

from wpinq.testing.checks.plants import PLANTS as SHIPPED


class Plant(NamedTuple):
    """A fault.

    Attributes:
        kind: "record-play" with the class, "rule" with its number, or "old".
        what: In a few words.
        file: Where it is.
        old: The text that is replaced, which is there once.
        new: What it is replaced by.
        test: The test that finds it.
    """

    kind: str
    what: str
    file: str
    old: str
    new: str
    test: str


def shipped(kind: str, name: str, test: str) -> Plant:
    """A plant that comes with the package, where `wpinq audit --self` finds it too."""
    plant = SHIPPED[name]
    return Plant(kind, plant.what, f"wpinq/{plant.file}", plant.old, plant.new, test)


AT = "tests/attacks/test_attack_"
BUDGET, NOISE, MEMO, FUNCTIONS = (f"{AT}{name}.py::" for name in ("budget", "noise", "memo", "functions"))
LIVE, WINDOWS = "tests/streaming/test_live.py::", "tests/streaming/test_windows.py::"
CONTINUAL, KEYS = "tests/measurements/test_continual.py::", "tests/measurements/test_continual_keys.py::"
GAUSSIAN = "tests/measurements/test_gaussian_measurement.py::"
CONTRACT, LEDGER = "tests/contracts/test_contracts.py::", "tests/ledger/"
MEASURED, PLAN, OPERATORS = "wpinq/core/measurements/", "wpinq/core/plan/", "wpinq/core/operators/"
PRICING, RUNS = "wpinq/core/pricing/", "wpinq/core/runs/"

RECORD_PLAY = {
    "domain: no threshold": shipped(
        "record-play: domain inferred from data", "no threshold", "tests/measurements/test_selection_release.py"),
    "domain: delta of one data set": Plant(
        "record-play: domain inferred from data", "a threshold for one bin where a unit is in several",
        "wpinq/core/noise/threshold.py", "    return [[(1, l1)], [(linf, full), (1, rest)],", "    return [[(1, 1)], [(linf, 1), (1, 0)],",
        "tests/measurements/test_selection_threshold.py"),
    "double spending: no charge": Plant(
        "record-play: double spending", "what is measured is not charged",
        f"{MEASURED}query.py", "    charge_all(distinct(request for quote in quotes for request in quote.charges), pins, changes)", "    ...",
        f"{BUDGET}test_rule_24_epsilon_is_what_it_costs"),
    "double spending: one by one": Plant(
        "record-play: double spending", "a query that does not fit is charged in part",
        "wpinq/core/ledger/several.py", "                charged[_charge_key(ledger, charge)] = transaction.charge(charge)\n",
        "                charged[_charge_key(ledger, charge)] = transaction.charge(charge)\n                transaction.commit()\n",
        "tests/ledger/test_ledger.py"),
    "double spending: two questions, one charge": Plant(
        "record-play: double spending", "a question is known without the parameters of its mechanism",
        f"{PRICING}quote.py", "    key = (values.FORMAT, FORMAT, about, plan, label, *fields, node.resolution, scale)",
        "    key = (values.FORMAT, FORMAT, about, plan, label, node.resolution, scale)",
        f"{NOISE}test_attack_09_two_measurements_have_independent_noise"),
    "nan: let in": Plant(
        "record-play: NaN injection", "numbers that are no number come through a reader",
        "wpinq/core/records/canonical.py", "    changed = [after for before, after in pairs if after is not before]", "    changed: list[pl.Series] = []",
        "tests/attacks/test_column_values.py"),
    "nan: an endless weight": Plant(
        "record-play: NaN injection", "an infinite weight comes through to where it fails",
        "wpinq/core/operators/contribution/weight.py", ".fill_nan(0.0).fill_null(0.0).clip(-bound, bound)",
        ".fill_nan(0.0).fill_null(0.0)", "tests/operators/test_weight.py"),
    "noise: half the scale": shipped(
        "record-play: noise miscalibration", "half the scale", f"{BUDGET}test_rule_24_epsilon_is_what_it_costs"),
    "noise: shares of levels": Plant(
        "record-play: noise miscalibration", "each level of a counting tree has all of epsilon",
        f"{MEASURED}epoch_noise.py", "self._law.scale / segment(number).shares[level]", "self._law.scale",
        "tests/measurements/test_continual.py"),
    "noise: the law": shipped(
        "record-play: noise miscalibration", "the law of a digit", "tests/noise/test_noise_digits.py"),
    "sensitivity: one path": Plant(
        "record-play: sensitivity miscalibration", "paths to a source do not add up",
        f"{PLAN}stability.py", "reached[(data, parts + part)] += stability * factor", "reached[(data, parts + part)] = stability * factor",
        f"{BUDGET}test_rule_25_paths_add_up_in_the_charge"),
    "sensitivity: the bound": Plant(
        "record-play: sensitivity miscalibration", "a person keeps one record more than the bound",
        f"{OPERATORS}contribution/sample.py", "users[user] <= int(self.most)", "users[user] <= int(self.most) + 1",
        "tests/testing/test_testing.py"),
    "sensitivity: clamping": shipped(
        "record-play: sensitivity miscalibration", "values beyond their bounds", "tests/aggregates"),
}  # fmt: skip

RULES = {
    "1": Plant("rule 1", "the K of a join is not subtracted", f"{OPERATORS}pairs.py",
               "return max(0, (self.scale or 0) ** 2 // total - self.cut)", "return max(0, (self.scale or 0) ** 2 // total)",
               "tests/operators/test_join.py"),
    "2": Plant("rule 2", "data that changed behind a version go on", "wpinq/core/ledger/transaction.py",
               "        differ = [entry for entry in seals if not", "        differ = [one for one in () if not",
               "tests/measurements/test_measurement.py"),
    "3": shipped("rule 3", "one noise for two measurements", f"{NOISE}test_attack_09_two_measurements_have_independent_noise"),
    "4": Plant("rule 4", "questions that differ in name are one", f"{PRICING}quote.py",
               "    key = (values.FORMAT, FORMAT, about, plan, label, *fields, node.resolution, scale)",
               "    key = (values.FORMAT, FORMAT, about, plan, *fields, node.resolution, scale)",
               f"{NOISE}test_attack_09_two_measurements_have_independent_noise"),
    "5": Plant("rule 5", "the nodes of a tree are drawn anew in each epoch", f"{MEASURED}epoch_noise.py",
               "self._blocks(number, level, index, ids)", "self._blocks(number, level, index + (epoch << 20), ids)",
               f"{CONTINUAL}test_attack_08_rule_05_averaging_over_epochs_gains_nothing"),
    "6": shipped("rule 6", "one key for two words",
                 "tests/noise/test_noise_words.py::test_no_bin_shares_words_with_another_bin_or_number"),
    "7": Plant("rule 7", "a digest is of the bins and not of their weights", "wpinq/core/noise/digest.py",
               "words.pair(words.pair(blocks, half) ^ masks, half)", "words.pair(blocks, half)", "tests/noise/test_noise_digest.py"),
    "8": shipped("rule 8", "noise drawn twice", f"{MEMO}test_rule_08_the_same_question_is_free_and_numbers_do_not_count"),
    "9": Plant("rule 9", "a histogram is computed anew for each answer", f"{RUNS}run.py",
               "    if query.settled:\n        return\n    with query.key_owner.turn:\n        if query.settled:\n            return\n",
               "    with query.key_owner.turn:\n", f"{MEMO}test_rule_09_a_release_keeps_the_histogram_of_its_version"),
    "10": Plant("rule 10", "dates have the identities of timestamps", "wpinq/core/records/identity.py",
                '    Kind.DATE: _times("d"),', '    Kind.DATE: _times("t"),',
                f"{NOISE}test_rule_10_typed_and_untyped_columns_give_a_value_one_identity"),
    "11": Plant("rule 11", "steps that combine records have continual release", f"{MEASURED}continual.py",
                "        if not isinstance(node, First) and combines_records(node):", "        if False:",
                f"{CONTINUAL}test_rule_11_steps_in_which_records_meet_are_refused"),
    "12": Plant("rule 12", "a bound that takes records back has continual release", f"{OPERATORS}contribution/first.py",
                "    if node.unit.per is not None:", "    if False:", f"{CONTINUAL}test_rule_12_bounds_that_retract_are_refused"),
    "13": Plant("rule 13", "a watermark goes back", "wpinq/core/records/log.py",
                "else max(before, watermark)", "else watermark", "tests/streaming/test_windows.py"),
    "14": Plant("rule 14", "a field that does not fit fails the run", "wpinq/core/records/text.py",
                "        return text.cast(polars_type(kind), strict=False)", "        return text.cast(polars_type(kind))",
                f"{FUNCTIONS}test_rule_14_one_bad_line_changes_no_other_bin_and_raises_nothing"),
    "15": Plant("rule 15", "expressions that see other records are admitted", "wpinq/core/functions/admit.py",
                "    elif name not in TABLE:", "    elif False:", f"{FUNCTIONS}test_rule_15_expressions_that_see_other_records_are_refused"),
    "16": Plant("rule 16", "records beyond the mask are lost", "wpinq/core/functions/traced/columnar.py",
                "    return marked.filter(pl.col(SAFE)), marked.filter(~pl.col(SAFE))",
                "    return marked.filter(pl.col(SAFE)), None",
                "tests/functions/test_functions_trace.py"),
    "17": Plant("rule 17", "the shares of outputs are rounded up", f"{OPERATORS}flat_map.py",
                "yield output, Fraction((self.parts + index) // len(made), self.parts)", "yield output, Fraction(-(-self.parts // len(made)), self.parts)",
                "tests/operators/test_flat_map.py"),
    "18": Plant("rule 18", "groups of signed weights are prefixes of all", f"{OPERATORS}group_by.py",
                "        for sign in (1, -1):", "        for sign in (1,):", "tests/operators/test_group_by.py"),
    "19": Plant("rule 19", "weights are not clamped", f"{OPERATORS}contribution/weight.py",
                "        units = whole.cast(pl.Int64).clip(-top, top)", "        units = whole.cast(pl.Int64)", "tests/operators/test_weight.py"),
    "20": Plant("rule 20", "weights below zero stay", f"{OPERATORS}distinct.py",
                "min(max(weight, Fraction(0)), self.at_most)", "min(weight, self.at_most)", f"{CONTRACT}test_changes"),
    "21": Plant("rule 21", "records that push others out are 1-stable", f"{OPERATORS}semijoin.py",
                "return (Fraction(2), Fraction(1))[: len(self.sides)]", "return (Fraction(1), Fraction(1))[: len(self.sides)]",
                f"{CONTRACT}test_stable"),
    "22": Plant("rule 22", "a function that raises fails the run", "wpinq/core/functions/isolate.py",
                "    except BaseException:  # noqa: BLE001\n        return None", "    except KeyError:\n        return None",
                "tests/functions/test_functions_plain.py"),
    "23": Plant("rule 23", "code with jumps is traced", "wpinq/core/functions/traced/trace.py",
                "if step.opname not in STRAIGHT or (", "if (", "tests/functions/test_functions_trace.py"),
    "24": Plant("rule 24", "a charge has the bound left out", f"{PRICING}quote.py",
                "Cost(move / scale, Fraction(0), parts, times=times, curve=curve)",
                "Cost(move / (data.unit.bound or 1) / scale, Fraction(0), parts, times=times, curve=curve)", "tests/operators/test_units_people.py"),
    "25": Plant("rule 25", "the smallest part of a group counts", "wpinq/core/ledger/sums/cost.py",
                "            growth = max(amount - largest, ZERO)", "            growth = min(max(amount - largest, ZERO), ZERO)",
                "tests/ledger/test_cost.py::test_total_is_the_recursion"),
    "26": Plant("rule 26", "a person's records are ranked without the secret", f"{OPERATORS}contribution/sample.py",
                "        sampling_key = self.data.sampling_key\n",
                "        sampling_key = bytes(16)\n",
                "tests/operators/test_units_bound.py"),
    "27": Plant("rule 27", "shares of a person are rounded up", f"{OPERATORS}contribution/share.py",
                "Fraction(int(RESOLUTION // count[unit_key.of(record)]), RESOLUTION)", "Fraction(-int(-RESOLUTION // count[unit_key.of(record)]), RESOLUTION)",
                "tests/operators/test_units_share.py"),
    "28": Plant("rule 28", "another unit opens the ledger", "wpinq/core/ledger/open.py",
                "    if held is not None and held != unit:", "    if False:", f"{BUDGET}test_rule_28_versions_share_one_budget_and_units_do_not_change"),
    "29": Plant("rule 29", "a database may have a ledger in memory", "wpinq/protection.py",
                'if path is None and getattr(reader, "lasting", False):', "if False:", "tests/sources"),
    "30": Plant("rule 30", "a threshold counts one bin too few", "wpinq/core/noise/threshold.py",
                "    full, rest = divmod(l1, linf)", "    full, rest = divmod(l1 - 1, linf)", "tests/measurements/test_selection_threshold.py"),
    "31": Plant("rule 31", "a second delta is free", f"{MEASURED}measurement.py",
                '        pay([self.quote.publishing("release", lost)])\n', "", "tests/measurements/test_selection_release.py"),
    "32": Plant("rule 32", "a fine resolution has the scale of whole weights", f"{PRICING}privacy_cost.py",
                "return mechanism(self.noise, survey.scale(self.epsilon) * survey.root.resolution)", "return mechanism(self.noise, survey.scale(self.epsilon))",
                f"{BUDGET}test_rule_32_scales_in_resolution_units_are_drawn_or_refused_before_the_charge"),
    "33": Plant("rule 33", "digits stop early", "wpinq/core/noise/words.py",
                "-(-45 * scale.numerator // scale.denominator)", "-(-20 * scale.numerator // scale.denominator)",
                "tests/noise/test_noise_digits.py::test_number_of_digits"),
    "34": Plant("rule 34", "bounds are taken without guard bits", "wpinq/core/noise/words.py",
                "        if low >> guard == high >> guard:", "        if True:", "tests/noise/test_noise_digits.py::test_every_word_of_every_digit"),
    "35": Plant("rule 35", "a source has no limit of records", "wpinq/core/records/log.py",
                "> CAPACITY:", "> CAPACITY**2:", "tests/attacks/test_attack_weights.py"),
    "36": Plant("rule 36", "the last level of a tree has no share", "wpinq/core/noise/counting_tree.py",
                "tuple(Fraction(root, total) for root in roots)", "tuple(Fraction(root, total - roots[0]) for root in roots)",
                f"{CONTINUAL}test_rule_36_every_segment_there_will_ever_be_spends_epsilon_and_no_more"),
    "37": Plant("rule 37", "an engine knows the noise", "wpinq/core/engines/job.py",
                "from wpinq.core.state.histogram import Histogram", "import wpinq.core.noise\nfrom wpinq.core.state.histogram import Histogram", "tests/house/test_layers.py"),
    "38": Plant("rule 38", "a row is committed after the head", "wpinq/core/ledger/stores/file.py",
                "        self._connection.execute(\"COMMIT\")\n        self.adopt(head)\n", "        self.adopt(head)\n        self._connection.execute(\"COMMIT\")\n",
                "tests/ledger/test_damage.py"),
    "39": Plant("rule 39", "rows that were taken away are not missed", "wpinq/core/ledger/rows/chain.py",
                "        raise RefusedError(OLDER)\n    acts", "        return False\n    acts", "tests/ledger/test_damage.py"),
    "40": Plant("rule 40", "an interval for many bins is that for one", f"{MEASURED}times.py",
                "level_of_each(level, bins)", "level_of_each(level, 1)",
                "tests/measurements/test_selection_accuracy.py"),
    "41": Plant("rule 41", "post-processing looks at a file", "wpinq/postprocess/margins.py", "from __future__ import annotations\n",
                "from __future__ import annotations\n\nimport wpinq.sources\n", "tests/house/test_layers.py::test_imports_go_down"),
    "42": Plant("rule 42", "what a function raises is told", "wpinq/core/functions/isolate.py",
                "    except BaseException:  # noqa: BLE001\n        return None",
                "    except BaseException as error:  # noqa: BLE001\n        sys.__stderr__.write(str(error))\n        return None",
                "tests/attacks/test_leaks.py"),
    "43": Plant("rule 43", "the secret is a constant", "wpinq/core/ledger/rows/secret.py",
                "        return cls(os.urandom(SIZE))", "        return cls(bytes(SIZE))", f"{NOISE}test_attack_05_no_seed_and_no_switch"),
    "44": Plant("rule 44", "each look costs all of delta", "wpinq/core/noise/tails.py",
                "    return Fraction(gap, (segment.number + 1) * (segment.number + 2) * segment.length)", "    return Fraction(1)",
                f"{KEYS}test_who_is_alone_in_a_bin_is_seen_with_probability_delta_over_all_epochs"),
    "45": Plant("rule 45", "squares of one bin in place of all", f"{PRICING}privacy_cost.py",
                "Fraction(unit.l1 * unit.linf) for unit", "Fraction(unit.linf * unit.linf) for unit", f"{GAUSSIAN}test_what_is_charged_covers_the_squares_of_all_moves"),
    "46": Plant("rule 46", "a rejected round has its words again", "wpinq/core/noise/gaussian.py",
                "drawn, state = words.pair(rows, number(turn))", "drawn, state = words.pair(rows, number(0))",
                "tests/noise/test_gaussian.py::test_the_work_depends_on_the_words_alone"),
    "47": Plant("rule 47", "where divergences are kept, every charge fits", "wpinq/core/ledger/sums/privacy_filter.py",
                "        return pure or (spent.curves and spent.divergence <= self.limit)", "        return pure or spent.curves",
                "tests/ledger/test_promise.py::test_no_ledger_forgets_a_charge_or_admits_beyond_both_sums"),
}  # fmt: skip

POSTGRES, DATABASE = "wpinq/core/ledger/stores/postgres.py", "tests/ledger/test_postgres"
STORES = {
    "no lock": Plant("store", "the head is read without a lock", POSTGRES, ".head FOR UPDATE", ".head", f"{DATABASE}.py"),
    "no turn": Plant("store", "a thread goes on while another one settles what it has committed", POSTGRES,
                     "with self._trouble(), self._turn():", "with self._trouble():", f"{DATABASE}.py"),
    "no anchor": Plant("store", "what this client has seen is not compared", POSTGRES,
                       "                self._anchor.check(pages, secret, seen)\n", "", f"{DATABASE}_damage.py"),
    "anchor back": Plant("store", "an anchor goes back", "wpinq/core/ledger/stores/anchor.py",
                         "seen is None or (head.number, head.turn) > (seen.number, seen.turn)", "True", f"{DATABASE}_damage.py"),
    "anchor first": Plant("store", "the anchor is ahead of the database", POSTGRES,
                          "        _commit(self._connection)\n        self._anchor.keep(head)\n\n    def adopt",
                          "        self._anchor.keep(head)\n        _commit(self._connection)\n\n    def adopt", f"{DATABASE}_cuts.py"),
    "taken for confirmed": Plant("store", "a commit of which nothing was heard is one", POSTGRES,
                                 "        if server.lost(error, connection):\n            raise RefusedError(_UNSURE) from None\n        raise\n",
                                 "        if server.lost(error, connection):\n            return\n        raise\n", f"{DATABASE}_cuts.py"),
    "warning": Plant("store", "a commit that a standby lacks is one", POSTGRES, ' or doubts:', ":", f"{DATABASE}_servers.py"),
    "read": Plant("store", "what was only read is not durable", POSTGRES,
                  "            self._open = False\n            _commit(self._connection)\n",
                  "            self._open = False\n            self._connection.execute(\"ROLLBACK\")\n", f"{DATABASE}_servers.py"),
    "adopted": Plant("store", "a head that is behind is adopted", POSTGRES, "        raise RefusedError(_BEHIND)", "        self._head = head",
                     f"{DATABASE}_damage.py"),
    "asynchronous": Plant("store", "a standby that does not confirm is none", "wpinq/core/ledger/stores/server.py",
                          "sync_state NOT IN ('sync', 'quorum')", "sync_state NOT IN ('sync', 'quorum', 'async')", f"{DATABASE}_servers.py"),
    "triggers": Plant("store", "triggers are not looked at", "wpinq/core/ledger/stores/server.py",
                      "WHERE t.tgrelid = c.oid AND NOT t.tgisinternal", "WHERE false", f"{DATABASE}_damage.py"),
    "table edited": Plant("store", "a side table is read whatever its digest says", "wpinq/core/ledger/rows/side.py",
                          "        if digest is not None and not compare_digest(", "        if False and not compare_digest(", f"{LEDGER}test_side.py"),
    "table of the past": Plant("store", "a turn that is older than the head is taken", "wpinq/core/ledger/rows/chain.py",
                               "or stored.turn > max(turns):", "or False:", f"{LEDGER}test_side.py"),
    "table apart": Plant("store", "rows of one moment go with tables of another", "wpinq/core/ledger/rows/chain.py",
                         'secret.mac("ledger head", encode(number, mac, turn, code))', 'secret.mac("ledger head", encode(number, mac))',
                         f"{LEDGER}test_side.py"),
    "table decided": Plant("store", "two that decided by one state both write", "wpinq/core/ledger/transaction.py",
                           "        if change.basis is not None and change.basis !=", "        if False and change.basis !=", f"{LEDGER}test_side.py"),
    "table first": Plant("store", "a table is written where its charge does not fit", "wpinq/core/ledger/several.py",
                         "        charged: dict[ChargeKey, bool] = {}\n",
                         "        for ledger, change in changes:\n            transactions[ledger._store.key].change(change)\n            transactions[ledger._store.key].commit()\n        charged: dict[ChargeKey, bool] = {}\n",
                         f"{LEDGER}test_side.py"),
}  # fmt: skip
"""Of a ledger in PostgreSQL."""

PLANTS = {
    **RECORD_PLAY,
    **{f"rule {number}": plant for number, plant in RULES.items()},
    **{f"store {name}": plant for name, plant in STORES.items()},
}
