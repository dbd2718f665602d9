"""Every row of the table of gates is on record, with a rule for each of its values."""

from tests.gates.gate import records
from tests.gates.rows import GATES


def test_every_row_is_on_record_with_a_rule_for_each_value():
    by_name = {each.name: each for each in GATES}
    assert records().keys() == by_name.keys()
    for name, entry in records().items():
        for value in entry["values"]:
            by_name[name].rule(value)
