"""An exported model on the Hugging Face Hub: on request, and private by default."""

from pathlib import Path

from evenkeel.errors import Refusal


def push(folder: Path, repository: str, *, public: bool = False) -> str:
    """Upload an exported folder to the model repository ``repository``, which is made private where it is new.

    Returns:
        Where it is now.

    Raises:
        Refusal: no token, no network, no permission; or the repository is public and ``public`` is false. The
            export itself is complete.
    """
    import httpx
    from huggingface_hub import HfApi, get_token
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, OfflineModeIsEnabled

    if get_token() is None:
        raise _failed(folder, repository, "no token is set", "Run `hf auth login`, or set HF_TOKEN")
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
    except HFValidationError as error:
        raise _failed(folder, repository, str(error).splitlines()[0], "Write USER/NAME") from error
    except (OfflineModeIsEnabled, httpx.TransportError) as error:
        reason = f"the Hub cannot be reached ({type(error).__name__}: {str(error).splitlines()[0][:200]})"
        raise _failed(folder, repository, reason, "With a network, and without HF_HUB_OFFLINE") from error
    except HfHubHTTPError as error:
        reason = str(error).strip().splitlines()[0]
        raise _failed(folder, repository, reason, "With a token that may write there") from error
    return str(uploaded.commit_url)


def _failed(folder: Path, repository: str, reason: str, instead: str) -> Refusal:
    return Refusal(
        f"Nothing was pushed to {repository}: {reason}. The export in {folder} is complete. {instead}:\n"
        f"  hf upload {repository} {folder} --private"
    )
