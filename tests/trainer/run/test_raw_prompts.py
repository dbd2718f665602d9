"""The authors' rows are read unchanged, and the recipes write the same bytes around a question."""

from pathlib import Path
from string import Formatter
from typing import Any

import pyarrow.parquet as parquet
import pytest

from evenkeel.trainer.run.config import Source, load_config
from evenkeel.trainer.run.data.rows import load_rows
from tests.paths import ROOT, SHARED_DATA

RECIPES = {
    "knights_knaves/grpo_3b": "kk_train",
    "knights_knaves/grpo_7b": "kk_train",
    "math/grpo_orz_7b": "dsr_uniform_train",
}


@pytest.mark.parametrize("count", [20, pytest.param(None, marks=pytest.mark.slow)])
@pytest.mark.parametrize("recipe", RECIPES)
def test_a_recipe_trains_the_bytes_of_the_authors(recipe: str, count: int | None, tmp_path: Path):
    file = SHARED_DATA / f"{RECIPES[recipe]}.parquet"
    if not file.exists():
        pytest.skip(f"{file.name} is not in shared/data beside the repository")
    table = parquet.read_table(file).slice(0, count)
    authors = [prompt[0]["content"] for prompt in table["prompt"].to_pylist()]
    config = load_config(ROOT / "configs" / f"{recipe}.yaml")
    for _, source in config.data.placed_sources:
        parts = [*Formatter().parse(source.columns.prompt)]
        field = next(name for _, name, *_ in parts if name is not None)
        before, after = parts[0][0], "".join(text for text, *_ in parts[1:])
        questions = [text.removeprefix(before).removesuffix(after) for text in authors]
        parquet.write_table(table.append_column("question", [questions]), tmp_path / "rows.parquet")
        for prompt in ("prompt", source.columns.prompt.replace(f"{{{field}}}", "{question}")):
            columns = {"prompt": prompt, "reference": "reward_model.ground_truth"}
            asked = Source.model_validate({"path": str(tmp_path / "rows.parquet"), "columns": columns})
            options: Any = {"system_prompt": config.data.system_prompt, "raw": config.model.raw_prompts}
            rows = load_rows([asked], generators={}, base_dir=tmp_path, **options)
            assert rows["prompt"][:] == authors
