"""Measurements for `mbi` (Private-PGM), which fits a model to noisy marginals and draws synthetic tables from it.

Source: McKenna, Sheldon, Miklau, Graphical-model based estimation and inference for differential privacy, ICML 2019.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np
import polars as pl
from mbi import Domain, LinearMeasurement

from wpinq.core.measurements.measurement import Measurement
from wpinq.errors import PlanError
from wpinq.query.crosstabs.plan import PlannedTables

MOST = 1 << 24
"""Cells of a marginal."""


def domain(values: Mapping[str, Sequence[Any]]) -> Domain:
    """The domain of a table whose columns have these values; they are declared, and none is looked for in records.

    Args:
        values: For each column its values, in the order in which mbi numbers them.
    """
    lists = [list(labels) for labels in values.values()]
    return Domain(list(values), [len(labels) for labels in lists], labels=lists)


def marginal(measurement: Measurement, values: Mapping[str, Sequence[Any]]) -> LinearMeasurement:
    """The noisy counts of all cells that a measurement's columns can make, as mbi takes them; it costs nothing more.

    Each cell is observed, whether there is such a record or not. Records of other values are in no cell.

    Args:
        measurement: Of some of the columns: `people.map(pl.col("age", "sex")).measure(epsilon=1)`.
        values: For each column its values, as in `domain`.

    Raises:
        PlanError: A column has no values here, or there are more than 2^24 cells.
        BinError: The collection could never hold a value.
        SourceError, EngineError, LedgerError: The first question runs the dataflow, which failed.
    """
    names = measurement.node.schema.names
    if missing := [name for name in names if not len(values.get(name, ()))]:
        raise PlanError(f"marginal(values=...): there are no values for {', '.join(missing)}.")
    shape = [len(values[name]) for name in names]
    if prod(shape) > MOST:
        raise PlanError(f"marginal(...): {prod(shape):,} cells are more than 2^24; measure fewer columns together.")
    indices = np.indices(shape).reshape(len(shape), -1)
    columns = zip(names, indices, strict=True)
    cells = pl.DataFrame([pl.Series(name, list(values[name])).gather(index) for name, index in columns])
    return LinearMeasurement(measurement.observe_many(cells).astype(float), names, measurement.stddev())


def marginals(tables: PlannedTables) -> list[LinearMeasurement]:
    """All that was measured for planned tables, as mbi takes it; it costs nothing more.

    A total that was measured by itself is the marginal of no columns. Of Gaussian noise it is residuals: the query of
    each takes away from a marginal what smaller ones tell.

    Args:
        tables: What `plan.measure()` gave; `domain(tables.plan.categories)` is their domain.

    Raises:
        SourceError, EngineError, LedgerError: The first question runs the dataflow, which failed.
    """
    result = []
    for names, measured in tables.measurements.items():
        cells = tables.cells(names)
        more = {"query": partial(_centred, cells.shape)} if tables.plan.residual and names else {}
        result.append(LinearMeasurement(cells.ravel(), names, measured.stddev(), **more))
    return result


def _centred(shape: tuple[int, ...], marginal: Any) -> Any:
    """The residual of a marginal: its cells, less their mean along each axis."""
    cells = marginal.datavector().reshape(shape)
    for axis in range(len(shape)):
        cells = cells - cells.mean(axis=axis, keepdims=True)
    return cells.ravel()


def table(synthetic: Any) -> pl.DataFrame:
    """A data set that a model drew (`model.synthetic_data()`), with the values of `domain` instead of their numbers."""
    labels = zip(synthetic.domain.attributes, synthetic.domain.labels, strict=True)
    return pl.DataFrame([pl.Series(name, list(values)).gather(synthetic.data[name]) for name, values in labels])
