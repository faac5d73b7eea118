"""Whether Spark can be tested here, and a session for tests that ends with its JVM.

As a program it says what is not tested, and why.
"""

import os
import re
import shutil
import subprocess
import sys
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

SOURCE = str(Path(__file__).parents[2] / "src")
CONF = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "1g",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
    # Tiny jobs: what is compiled is hardly used.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.warehouse.dir": "/nonexistent",
}


def missing():
    """What is missing for tests of Spark; empty if nothing is."""
    if find_spec("pyspark") is None:
        return "pyspark is not installed: pip install 'dynhac[spark]'"
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=f"{home}/bin" if home else None)
    if java is None:
        return "there is no Java: install openjdk-17-jre-headless"
    said = subprocess.run([java, "-version"], capture_output=True, text=True).stderr
    version = re.search(r'version "(\d+)', said)
    if version is None or int(version[1]) < 17:
        return f"Java 17 or later is needed, not {said.splitlines()[:1]}"
    return ""


def start():
    """A session on two cores that tries a failing task three times."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable  # of the workers
    paths = [SOURCE, *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    os.environ["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
    builder = SparkSession.builder.master("local[2,3]").appName("tests of dynhac")
    for key, value in CONF.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


def stop(spark):
    """End the session and its JVM."""
    from pyspark import SparkContext

    spark.stop()
    gateway = SparkContext._gateway
    gateway.shutdown()
    gateway.proc.stdin.close()  # it ends when nobody can write to it
    gateway.proc.wait(timeout=60)
    SparkContext._gateway = SparkContext._jvm = None


@contextmanager
def cloudpickle_by_value(module):
    """Send the functions of a test module to the workers, which cannot import it."""
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[module])
    try:
        yield
    finally:
        cloudpickle.unregister_pickle_by_value(sys.modules[module])


if __name__ == "__main__" and missing():
    print(f"==> NOT TESTED: hierarchies on Spark. {missing()}")
