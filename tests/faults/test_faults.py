"""The faults can be planted in the code as it is."""

import pytest

from tests.faults import FAULTS, Fault
from tests.paths import ROOT


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_the_text_stands_once_in_its_file_and_the_tests_are_there(fault: Fault):
    compile(fault.text_of(ROOT).replace(fault.right, fault.wrong), fault.file, "exec")
    assert fault.wrong != fault.right
    assert all((ROOT / tests).exists() for tests in fault.tests)
