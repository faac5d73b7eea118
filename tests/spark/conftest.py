"""The session of all tests of Spark, on two cores. Without Java and pyspark they are skipped."""

import pytest
import spark_session


@pytest.fixture(scope="session")
def spark():
    lacking = spark_session.missing()
    if lacking:
        pytest.skip(f"SPARK IS NOT TESTED: {lacking}")
    session = spark_session.start()
    yield session
    spark_session.stop(session)
