"""The record of a period for the public registry of deployments of differential privacy.

Its fields are those of the registry's schema (opendp/deployments-registry-data, `schemas/deployments-schema.yaml`):
what a ledger knows is filled in, and what only people know comes from `[about]` in the release file.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from wpinq.apps.publish.evidence.report import law
from wpinq.apps.publish.file.declared import Words
from wpinq.apps.publish.price import Price
from wpinq.core import RENYI, RHO

FILTERED = "Rows that are left out by a threshold on noisy counts; sums and orders of released numbers."


def entry(facts: Mapping[str, Any], words: Words) -> dict[str, Any]:
    """The record, of tier 3.

    Args:
        facts: What is known of the period; see `edition.compose`.
        words: What the release file says about itself.
    """
    asked = f"{facts['release']}: " + "; ".join(one["asked"] for one in facts["questions"])
    sector = {"data_product_sector": words.sector} if words.sector else {}
    notes = {"additional_information": words.notes} if words.notes else {}
    return {
        "status": "Draft",
        "registry_authors": words.authors,
        "tier": 3,
        "deployment": {
            "name": facts["title"],
            "data_curator": words.curator,
            "description": words.description or asked,
            "intended_use": words.purpose,
            "data_product_type": "Summary statistics",
            "data_product_region": words.region,
            "publication_date": facts["at"][:10],
            **sector,
            **_guarantee(facts, words),
            "model": _model(facts),
            "accounting": {
                "post_processing": FILTERED,
                "composition": f"Sequential, over questions and periods, as exact sums of {_added(facts)} in a ledger. "
                + facts["budget"]["in words"],
            },
            "implementation": _implementation(facts, words),
            **notes,
        },
    }


def _guarantee(facts: Mapping[str, Any], words: Words) -> dict[str, Any]:
    cost, period, alone = Price.read(facts["cost"]), facts["period"], facts["by itself"]
    concentrated = cost.rho and facts["budget"]["accounting"] == RHO
    delta = float(cost.delta if concentrated else Fraction(alone["delta"]))
    flavor = "Zero-concentrated DP" if concentrated else "Approximate DP" if delta else "Pure DP"
    loss = {"rho": float(cost.concentrated)} if concentrated else {"epsilon": float(Fraction(alone["epsilon"]))}
    return {
        "dp_flavor": {
            "name": flavor,
            "data_domain": f"Collections of records {facts['columns']} of {period['start']} to {period['end']}.",
            "unprotected_quantities": words.unprotected or "None but what is declared: keys, bounds, this record.",
        },
        "privacy_loss": {
            "privacy_unit": facts["protects"],
            "privacy_unit_description": f"Adjacent collections differ in the records of one unit: {facts['unit']}.",
            "privacy_parameters": {**loss, **({"delta": delta} if delta else {})},
            "privacy_parameters_description": facts["budget"]["in words"],
        },
    }


def _added(facts: Mapping[str, Any]) -> str:
    """What the ledger adds up."""
    return {RENYI: "Renyi divergences at one order, and of epsilons,", RHO: "zero-concentrated losses"}.get(
        facts["budget"]["accounting"], "epsilons"
    )


def _model(facts: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "model_name": "Central",
        "model_name_description": "A curator holds the records and publishes noisy numbers.",
        "actors": "The curator sees records; everybody may see what is published.",
        "release_type": "Many releases",
        "release_type_description": f"One for each period such as {facts['period']['name']}. "
        + facts["budget"]["in words"],
        "data_source_type": "Dynamic",
        "access_type": "Non-interactive",
    }


def _implementation(facts: Mapping[str, Any], words: Words) -> dict[str, Any]:
    steps = {name: step for name, step in facts["before the bound"].items() if step}
    before = f"Steps on single records before the bound: {steps or 'none'}. Bounds and keys are declared; the curator"
    noise = [
        f"- {one['name']}: {law(item)}, on integers, by a keyed pseudorandom function of the bin"
        for one in facts["questions"]
        for item in one["noise"]
    ]
    return {
        "pre_processing_eda_hyperparameter_tuning": f"{before} has to say whether data were looked at.",
        "mechanisms": "\n".join([*noise, f"- wpinq {facts['wpinq']}; no floats in samplers."]),
        "justification": words.justification,
    }
