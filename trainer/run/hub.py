"""The hub, asked once whether it answers: without network every file of an id would be asked for six times."""

import os
from functools import cache

SECONDS_TO_ANSWER = 2.0


@cache
def use_offline_mode() -> bool:
    """Take the hub's offline mode where it does not answer; returns whether it is taken.

    huggingface_hub tries each file of an id again for some 25 seconds, whatever is set. Offline, a wrong id is refused
    at once, and one in the cache loads. Nothing happens where the mode was chosen already.
    """
    import httpx
    from huggingface_hub import constants

    if constants.is_offline_mode():
        return True
    try:
        httpx.head(constants.ENDPOINT, timeout=SECONDS_TO_ANSWER)
    except (httpx.HTTPError, OSError):
        import datasets

        constants.HF_HUB_OFFLINE = True
        datasets.config.HF_HUB_OFFLINE = True
        os.environ["HF_HUB_OFFLINE"] = "1"  # for what this process starts
        return True
    return False
