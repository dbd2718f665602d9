"""What a user may say about revisions. No source states these choices: all of them are ours."""

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic_core import PydanticCustomError

Credit = Literal["fewest_edits", "any_edit"]

TEMPLATE = """{prompt}

This answer to it is wrong:
{answer}

Another answer to the same question, to compare it with:
{reference}

Find the first step that goes wrong, and write the wrong answer again with as few changes as make it right."""

_FIELD = re.compile(r"\{(prompt|answer|reference)\}")


def _knows_the_question(template: str) -> str:
    if "{prompt}" not in template:
        what = f"is {template!r:.80}, which has no {{prompt}}: a revision would not know the question."
        instead = "Write {prompt} where the question stands; {answer} and {reference} show what is compared."
        raise PydanticCustomError("refused", "{what} {instead}", {"what": what, "instead": instead})
    return template


class RevisionOptions(BaseModel):
    """How wrong answers are revised; no value is converted, no key is ignored.

    Attributes:
        references: K − 1, how many siblings, and so revisions, a wrong answer gets; at most ``num_generations − 1``.
        need_correct: wrong answers of a group without a right one are left alone.
        credit: whose edits count where several revisions are right; see `credited_tokens`.
        template: the revision prompt, with ``{prompt}``, and ``{answer}`` and ``{reference}`` where it shows them. It
            takes the place of the prompt's last message (of the whole prompt where that is plain text). Other braces
            stay as they are.
    """

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    references: Annotated[int, Field(ge=1)] = 3
    need_correct: bool = True
    credit: Credit = "fewest_edits"
    template: Annotated[str, AfterValidator(_knows_the_question)] = TEMPLATE

    def revision_prompt(self, prompt: str, answer: str, reference: str) -> str:
        """The template with its fields replaced, once: braces in what is filled in stay as they are."""
        values = {"prompt": prompt, "answer": answer, "reference": reference}
        return _FIELD.sub(lambda field: values[field[1]], self.template)
