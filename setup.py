"""Which folders the wheel holds, and under which names. Everything else about it is in pyproject.toml.

The folders lie at the top of the repository; installed they are parts of the package `evenkeel`, so that no
`rewards.py` or `trainer.py` of a user, and no published package of those names, can take their place.
"""

from setuptools import find_packages, setup

FOLDERS = {"evenkeel.trainer": "trainer", "evenkeel.rewards": "rewards", "evenkeel.configs": "configs"}
inside = [f"{name}.{package}" for name, folder in FOLDERS.items() for package in find_packages(folder)]
inside.remove("evenkeel.trainer.public")  # is `evenkeel` itself

setup(
    packages=["evenkeel", *FOLDERS, *inside],
    package_dir={"evenkeel": "trainer/public", **FOLDERS},
    package_data={
        "evenkeel.trainer": ["**/*.jinja", "**/templates/*"],
        "evenkeel.rewards": ["**/*.json"],
        "evenkeel.configs": ["**/*"],
    },
)
