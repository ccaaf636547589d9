"""The state of dataflows: identities and exact integer weights, and of a record only the columns that are needed.

table      weights by identity
steps      weights over ranges of integers
dense      counts of integers that lie dense
repeats    equal values of a column, added up before they are hashed
waiting    changes that wait to be taken in
pointwise  the state of a step that maps weights of one record
bykey      the state of a step whose output is found key by key
histogram  what a measurement adds noise to
dither     rounding that is fixed for each record
states     what the state of a step can do
"""
