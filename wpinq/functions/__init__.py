"""A user's functions and expressions, bound to the columns of a collection.

bind         one call for all of them: what `map`, `filter` and `flat_map` hand over
binding      which columns the parameters are given
function     what a bound function can do, in records and in columns
outputs      how many outputs there are, and what they are called
kinds        between stored values and plain Python
plain        the plain way: Python, once for each distinct record
many         the same for several outputs of one record
isolate      how Python runs, so that nothing but results comes out
columnar     the column way, and the plain way where the two differ
trace        whether a function is straight, and what it does to stand-ins
standin      columns that do not say what is in them
tree, rules  what a traced function becomes, and where that is Python
probe        both ways compared on fixed values
expressions  Polars expressions
admit        which of them are functions of one record
elementwise  their names
predicate    SQL text
terms        SQL expressions with types
sqlrules     operators of SQL
sqlcalls     functions and casts of SQL
capture      a function as it is when the plan is written, with all that it holds
fingerprint  what is covered of it: functions that mean the same, in any process
pure         what of Python's library is a function of its arguments
bytecode     what can be said of a function without calling it
"""

from __future__ import annotations

from wpinq.functions.bind import bind, bind_many
from wpinq.functions.function import Dropped, Function
from wpinq.functions.isolate import running
from wpinq.functions.many import Many

__all__ = ["Dropped", "Function", "Many", "bind", "bind_many", "running"]
