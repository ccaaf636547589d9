"""The record for the public registry has the fields of its schema, and no other. Its facts are written down here.

Source: opendp/deployments-registry-data, `schemas/deployments-schema.yaml` at 617ad178, and the names that changed by
73874c1a (`release_type`, `data_source_type` and `access_type` for three yes-or-no fields).
"""

import copy
import datetime as dt
import json
from typing import Any

import pytest

from tests.publish.test_release import given, release, wrote

TEXT, NUMBER = str, (int, float)
MODELS = {"Local", "Central", "Shuffle", "Federated", "Varies"}
MODEL = {
    "model_name!": MODELS, "model_name_description": TEXT, "actors": TEXT,
    "release_type": {"One release", "Many releases"}, "release_type_description": TEXT,
    "data_source_type": {"Static", "Dynamic"}, "data_source_type_description": TEXT,
    "access_type": {"Interactive", "Non-interactive"}, "access_type_description": TEXT,
}  # fmt: skip
FLAVOR = {
    "name!": {"Pure DP", "Approximate DP", "Zero-concentrated DP", "Renyi DP", "Custom"},
    "input_metric": TEXT, "bound_on_input_distance": TEXT, "output_measure": TEXT, "bound_on_output_distance": TEXT,
    "data_domain!": TEXT, "unprotected_quantities!": TEXT,
}  # fmt: skip
LOSS = {
    "privacy_unit!": TEXT, "privacy_unit_description": TEXT, "privacy_parameters_description": TEXT,
    "privacy_parameters!": {"epsilon": NUMBER, "rho": NUMBER, "delta": NUMBER},
}  # fmt: skip
DEPLOYMENT = {
    "name!": TEXT, "data_curator!": TEXT, "description!": TEXT, "intended_use!": TEXT,
    "data_product_type!": {"Summary statistics", "Machine learning model", "Dataset"},
    "data_product_region!": TEXT, "publication_date!": dt.date,
    "data_product_sector": {"Technology", "Healthcare", "Education", "Government"},
    "dp_flavor": FLAVOR, "privacy_loss": LOSS, "model": MODEL,
    "accounting": {"post_processing!": TEXT, "composition!": TEXT},
    "implementation": {"pre_processing_eda_hyperparameter_tuning!": TEXT, "mechanisms!": TEXT, "justification!": TEXT},
    "additional_information": TEXT,
}  # fmt: skip
STATUS = {"Converted", "Draft", "Pending", "Changes Required", "Approved", "Approved (Update Requested)",
          "Approved (Pending)"}  # fmt: skip
SCHEMA = {"status!": STATUS, "registry_authors!": [TEXT], "tier!": {1, 2, 3}, "deployment!": DEPLOYMENT}
"""Fields of each object; those with `!` are required, a set is an enumeration."""


def faults(value: Any, schema: Any, place: str = "record") -> list[str]:
    """Where a record is not as the schema has it."""
    if isinstance(schema, set):
        return [] if value in schema and not isinstance(value, bool) else [f"{place}: {value!r} is none of the values"]
    if isinstance(schema, list):
        right = isinstance(value, list) and value and all(isinstance(one, schema[0]) for one in value)
        return [] if right else [f"{place}: no list of at least one text"]
    if schema is dt.date:
        return [] if isinstance(value, str) and dt.date.fromisoformat(value) else [f"{place}: no date"]
    if not isinstance(schema, dict):
        return [] if isinstance(value, schema) and not isinstance(value, bool) else [f"{place}: {type(value).__name__}"]
    fields = {name.rstrip("!"): inner for name, inner in schema.items()}
    found = [f"{place}: unknown {name}" for name in value.keys() - fields.keys()]
    found += [f"{place}: without {name[:-1]}" for name in schema if name.endswith("!") and name[:-1] not in value]
    return found + [one for name in value.keys() & fields.keys()
                    for one in faults(value[name], fields[name], f"{place}.{name}")]  # fmt: skip


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    """Of a release with nothing said, and of one with everything and a delta."""
    about = {"title": "Views", "curator": "a site", "purpose": "news", "description": "views a day", "region": "here",
             "sector": "Technology", "authors": ["someone"], "justification": "why", "unprotected": "none",
             "notes": "more"}  # fmt: skip
    question = {"name": "found", "counts": ["page"], "delta": "1e-6", "epsilon": 9, "plot": False}
    more = {"about": about, "question": [*given()["question"], question], "budget": {"epsilon": 30, "delta": "1e-5"}}
    result = []
    for changes in ({}, more):
        home = tmp_path_factory.mktemp("registry")
        wrote(home, 21)
        release(home, **changes).run()
        result.append(json.loads((home / "out" / "2026-11-21" / "registry.json").read_text()))
    return result


def test_the_record_is_as_the_schema_has_it(records):
    assert [faults(record, SCHEMA) for record in records] == [[], []]
    plain, full = (record["deployment"] for record in records)
    assert (plain["dp_flavor"]["name"], full["dp_flavor"]["name"]) == ("Pure DP", "Approximate DP")
    assert plain["privacy_loss"]["privacy_parameters"] == {"epsilon": 3}
    assert full["privacy_loss"]["privacy_parameters"] == {"epsilon": 12, "delta": 1e-6}
    assert plain["publication_date"] == "2026-11-22"
    tiers = {name.rstrip("!") for name in DEPLOYMENT}
    assert full.keys() == tiers, "with everything said, no field is left out"


def test_a_field_too_many_or_too_few_or_another_value_is_found(records):
    def faulty(change) -> list[str]:
        record = copy.deepcopy(records[1])
        change(record["deployment"])
        return faults(record, SCHEMA)

    assert faulty(lambda one: one.update(short_name="x")) == ["record.deployment: unknown short_name"]
    assert faulty(lambda one: one["accounting"].pop("composition")) == [
        "record.deployment.accounting: without composition"
    ]
    assert len(faulty(lambda one: one["model"].update(model_name="central"))) == 1
    assert len(faulty(lambda one: one["privacy_loss"]["privacy_parameters"].update(epsilon="1"))) == 1
