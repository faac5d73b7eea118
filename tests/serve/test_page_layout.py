"""The modules that arrange the hierarchy, tested in the browser on hierarchies of many shapes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from browser import NEEDS_BROWSER, NO_SELENIUM, Page, groups, insert

pytest.importorskip("selenium.webdriver", reason=NO_SELENIUM)
pytestmark = NEEDS_BROWSER


def test_each_large_cluster_is_one_block(page: Page) -> None:
    insert(page, groups(2, 4))
    page.open()
    page.until_text("#status", "live")
    script = """
        const done = arguments[arguments.length - 1];
        Promise.all([import('/layout.js'), import('/rows.js')]).then(([layout, rows]) => {
          const root = layout.visible(arguments[0], 600, 0);
          const cuts = layout.rowsOf(root, null);
          const { blocks, places } = layout.layout(root, cuts, new Map());
          const again = layout.layout(root, cuts, places);
          done({
            cuts,
            tops: blocks.filter((b) => b.node.cluster !== null && b.depth === 0)
              .map((b) => [b.node.cluster, b.node.size]),
            same: blocks.every((b, i) => b.x === again.blocks[i].x),
            inside: blocks.every((b) => b.x >= 0 && b.x + b.width <= 1 + 1e-9),
            round: rows.rowIn(0.123, 0.34),
          });
        }, (error) => done({ error: String(error) }));
    """
    for seed in range(20):
        tree, sizes = a_tree(seed)
        found = page.driver.execute_async_script(script, tree)
        assert "error" not in found, found
        assert found["cuts"] == sorted(found["cuts"])
        assert len(found["cuts"]) <= 15
        assert found["same"]
        assert found["inside"]
        assert found["round"] == 0.2
        tops = [cluster for cluster, _ in found["tops"]]
        for cluster, size in sizes.items():
            if size >= 0.1 * tree["size"]:
                assert tops.count(cluster) == 1, (seed, found)


def test_a_size_below_a_name_from_the_right_is_read_from_the_left(page: Page) -> None:
    points = groups(2, 4)
    for point in points[:4]:
        point["payload"] = {"text": "ارتفاع أسعار القهوة"}
    insert(page, points)
    page.open()
    page.until_text("#twin tbody", "القهوة")
    written = page.driver.execute_async_script(
        """
        const [done] = arguments;
        const { set } = await import("/state.js");
        const written = [];
        const { fillText } = CanvasRenderingContext2D.prototype;
        CanvasRenderingContext2D.prototype.fillText = function (text, ...place) {
          written.push([text, this.direction, this.textAlign]);
          fillText.call(this, text, ...place);
        };
        set({ highlight: 0 });
        setTimeout(() => done(written), 500);
        """
    )
    assert ["4 points", "ltr", "right"] in written
    assert {direction for text, direction, _ in written if "points" in text} == {"ltr"}


def a_tree(seed: int) -> tuple[dict[str, Any], dict[int, int]]:
    """A hierarchy as the service answers it, and the sizes of its clusters."""
    rng = np.random.default_rng(seed)
    sizes: dict[int, int] = {}
    number = iter(range(10**6))

    def node(size: int, above: float, cluster: int | None, depth: int) -> dict[str, Any]:
        held = above * float(1.05 + rng.random())
        if cluster is None and ((depth > 1 and rng.random() < 0.5) or size < 20):
            cluster = len(sizes)
            sizes[cluster] = size
        children = []
        if size > 3 and depth < 8:
            part = int(rng.integers(1, size))
            children = [node(n, held, cluster, depth + 1) for n in (part, size - part)]
            children.sort(key=lambda child: -child["size"])
        id = next(number)
        leaf = size == 1
        return {
            "node": None if leaf else id,
            "point": id if leaf else None,
            "size": size,
            "together_up_to": None if leaf else held,
            "cluster": cluster,
            "hidden": 0,
            "children": children,
        }

    tree = node(400, 1e-4, None, 0)
    top = {"node": None, "point": None, "together_up_to": None, "cluster": None, "hidden": 0}
    return top | {"size": 400, "children": [tree]}, sizes
