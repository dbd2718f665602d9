"""What docs/scale.md says of several machines is its arithmetic, worked by hand, and the page is what is printed."""

import json
from dataclasses import replace

import pytest

from evenkeel.trainer.run.config import load_config
from scripts import scale
from tests.paths import ROOT
from tests.trainer.run.check.test_memory import SMALL

DEVICE = scale.Device("slow", memory=1e7, peak=1e6, bandwidth=1e6, link=4e9, network=0.25e9)
RECIPE = scale.Recipe(sequences=32, update=16, rows=4, group=8, limit=2000, forwards=2, passes=1, reference=True)


def test_traffic_of_weights_and_gradients():
    """2 steps of 4 micro-batches, 3 scored; 1,000 parameters of 2 bytes in 2 layers and the rest."""
    traffic, sync = scale.training_traffic, scale.sync_traffic
    found = {each: (traffic(SMALL, each, 2, 4, 3), sync(SMALL, each)) for each in scale.SHARDINGS}
    assert found == {
        "zero2": ((2000 * (8 + 2), 8 + 2), (0, 0)),
        "zero3": ((2000 * (2 * 8 + 3 + 8), 3 * 27), (2000, 339)),
        "fsdp2": ((2000 * (2 * 8 + 3 + 2), 3 * 21), (4000, 339)),
    }


def test_seconds():
    assert scale.ring_seconds(8e9, 3, 8, DEVICE) == pytest.approx(3 * (8.4 + 7 * 3.4) * 1e-6 + 8e9 * 7 / 8 / 4e9)
    assert scale.ring_seconds(8e9, 1, 16, DEVICE) == pytest.approx((8.4 + 14 * 3.4 + 9.6) * 1e-6 + 8e9 * 15 / 16 / 2e9)
    assert scale.crossing_seconds(SMALL, 8, DEVICE) == pytest.approx(339 * 41.8e-6 + 2000 / 0.25e9)
    # 2,000 tokens × 2,000 bytes + 8 rows × 40 bytes a token × (400 · 1,000 + 1,000² / 2), at .6e6 a second
    assert scale.decoding_seconds(SMALL, RECIPE, 4, DEVICE) == pytest.approx((4e6 + 288e6) / 0.6e6)
    # 2,000 operations × 32 rows × 1,400 tokens × (4 + 2) passes on 4 devices of .4e6 a second
    assert scale.computing_seconds(SMALL, RECIPE, 4, DEVICE) == pytest.approx(537.6e6 / 1.6e6)


def test_counts_recipes_and_the_page():
    assert scale.predicted(scale.terms([86, 142, 222], 2, 2), 3, 3) == 30 + 3 * (8 + 3 * 10)
    recipe = scale.recipe_of(load_config(ROOT / "configs/knights_knaves/grpo_7b.yaml"))
    assert recipe == replace(RECIPE, sequences=512, update=256, limit=4096)
    assert scale.page(json.loads(scale.COUNTS.read_text())) == scale.PAGE.read_text()
