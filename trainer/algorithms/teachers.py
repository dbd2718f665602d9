"""The privileged prompt of a teacher: the policy itself, shown the gold answer beside the question."""

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict
from pydantic_core import PydanticCustomError

from evenkeel.trainer.algorithms.revisions import filled

TEMPLATE = """{prompt}

The right answer is:
{reference}

Solve the problem in your own words, step by step, and arrive at this answer."""


def _shows_both(template: str) -> str:
    missing = [name for name in ("{prompt}", "{reference}") if name not in template]
    if missing:
        what = f"is {template!r:.80}, which has no {' and no '.join(missing)}: a teacher knows question and answer."
        instead = "Write {prompt} where the question stands and {reference} where the gold answer does."
        raise PydanticCustomError("template-of-a-teacher", "{what} {instead}", {"what": what, "instead": instead})
    return template


class TeacherOptions(BaseModel):
    """How completions are scored a second time for the signal ``teacher_logps``."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, use_attribute_docstrings=True)

    template: Annotated[str, AfterValidator(_shows_both)] = TEMPLATE
    """The teacher's prompt, with ``{prompt}`` and ``{reference}``. It takes the place of the prompt's last message (of
    the whole prompt where that is plain text). Other braces stay as they are.
    """

    def privileged_prompt(self, prompt: str, reference: str) -> str:
        """The template with its fields replaced."""
        return filled(self.template, prompt=prompt, reference=reference)
