"""The pretrained model that trains on a CPU: `python -m scripts.real_model.make`."""

import scripts._installed  # noqa: F401
