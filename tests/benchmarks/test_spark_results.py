"""The guide shows the committed results of Spark, and their quality is that of one machine."""

import json

import pytest

from benchmarks import spark
from benchmarks.common.markdown import filled

FOUND = json.loads(spark.RESULTS.read_text())


def test_guide_shows_the_committed_results():
    text = spark.GUIDE.read_text()
    assert filled(text, spark.tables(FOUND)) == text


@pytest.mark.parametrize("name", spark.QUALITY)
def test_default_options_have_the_quality_of_one_machine(name):
    row = FOUND["quality"][name]
    assert row["default"]["options"].keys() == {"epsilon", "threshold"}
    assert abs(row["default"]["nmi"] - row["nmi_graphhac"][str(spark.EPSILON)]) <= 0.005
