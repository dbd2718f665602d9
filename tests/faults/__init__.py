"""Twenty mistakes that an engineer could make in the product: what the fast tests have to notice."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ruamel.yaml import YAML


@dataclass(frozen=True)
class Fault:
    """In ``file`` the text ``right`` becomes ``wrong``; one of the fast ``tests``, asked in this order, has to fail."""

    name: str
    file: str
    right: str
    wrong: str
    harm: str
    tests: list[str]

    def text_of(self, checkout: Path) -> str:
        """The file's text, which holds ``right`` once."""
        text = (checkout / self.file).read_text()
        found = text.count(self.right)
        assert found == 1, f"{self.name!r}: {self.file} holds {self.right!r} {found} times. Mend faults.yaml."
        return text

    @contextmanager
    def planted(self, checkout: Path) -> Iterator[None]:
        """Inside, the checkout has the fault."""
        text = self.text_of(checkout)
        _write(checkout / self.file, text.replace(self.right, self.wrong))
        try:
            yield
        finally:
            _write(checkout / self.file, text)


def _write(file: Path, text: str) -> None:
    file.write_text(text)
    for compiled in file.parent.glob(f"__pycache__/{file.stem}.*"):  # valid for one of the two texts, by time and size
        compiled.unlink()


FAULTS = {
    name: Fault(name, **fields)
    for name, fields in YAML(typ="safe").load(Path(__file__).with_name("faults.yaml")).items()
}
