"""An exported model on the Hugging Face Hub: on request, and private by default."""

from pathlib import Path

from evenkeel.errors import Refusal
from evenkeel.trainer.run.library_errors import in_words


def push(folder: Path, repository: str, *, public: bool = False) -> str:
    """Upload an exported folder to the model repository ``repository``, which is made private where it is new.

    Returns:
        Where it is now.

    Raises:
        Refusal: no token, no network, no permission; or the repository is public and ``public`` is false. The
            export itself is complete.
    """
    import httpx
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, OfflineModeIsEnabled

    api = HfApi()
    try:
        # What exists keeps its visibility: creating it again would not make it private.
        if api.repo_exists(repository) and not public and not api.model_info(repository).private:
            raise Refusal(
                f"{repository} exists and is public, and would show {folder} to everybody. Name another repository, or "
                "say --public."
            )
        api.create_repo(repository, private=not public, exist_ok=True)
        uploaded = api.upload_folder(repo_id=repository, folder_path=folder, commit_message=f"Export of {folder.name}")
    except (HfHubHTTPError, HFValidationError, OfflineModeIsEnabled, httpx.TransportError) as error:
        raise Refusal(
            f"Nothing was pushed to {repository}: {in_words(error)} The export in {folder} is complete. Later:\n"
            f"  hf upload {repository} {folder} --private"
        ) from error
    return str(uploaded.commit_url)
