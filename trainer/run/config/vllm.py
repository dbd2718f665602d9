"""How far vLLM is trusted to answer with the policy that is trained: `trainer.step.options.Engine`, as a section."""

from trainer.run.config.section import Section
from trainer.step.options import Engine


class _OfARun(Engine):
    """Where a run differs from the drop-in, which checks nothing that TRL does not."""

    check_agreement_every = 1


class VLLMSection(Section, _OfARun):  # type: ignore[misc]  # frozen
    """The section ``vllm``: fields, types and meanings are those of `Engine`."""

    @property
    def options(self) -> Engine:
        """What `RLVRTrainer` takes."""
        return Engine(**self.model_dump())
