"""A choice of columns is the same question however it is written."""

import polars as pl

import wpinq


def test_a_choice_of_columns_is_one_question_however_it_is_written():
    pages = wpinq.protect([("ann", "home")], budget=0.1).map(lambda user, page: page)
    one = pages.shave().map(lambda page, index: index).measure(0.1)
    for same in (pages.shave().map(lambda index: index), pages.shave().map(pl.col("index")), wpinq.degrees.cdf(pages)):
        again = same.measure(0.1)  # a second charge would be refused
        assert again.observe_many(range(1, 50)).tolist() == one.observe_many(range(1, 50)).tolist()
