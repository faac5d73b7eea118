"""The OpenAPI document as a page: plain HTML without scripts, made here."""

from __future__ import annotations

import json
import re
from html import escape
from typing import Any

CODE = re.compile(r"`+([^`]+)`+")


def reference_page(document: dict[str, Any]) -> str:
    """Return a page that lists all routes with their parameters, bodies and answers."""
    routes: dict[str, list[str]] = {}
    for path, methods in document["paths"].items():
        for method, about in methods.items():
            routes.setdefault(about["tags"][0], []).append(_route(path, method, about))
    parts = [f"<h2>{escape(tag.capitalize())}</h2>{''.join(some)}" for tag, some in routes.items()]
    schemas = document.get("components", {}).get("schemas", {})
    answers = [
        f'<section id="{escape(name)}"><h3>{escape(name)}</h3><pre>'
        f"{escape(json.dumps(schema, indent=1, ensure_ascii=False))}</pre></section>"
        for name, schema in sorted(schemas.items())
    ]
    title = f"{document['info']['title']} {document['info']['version']}: API"
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<title>{escape(title)}</title><link rel="icon" href="/icon.svg">'
        '<link rel="stylesheet" href="/reference.css"></head><body>'
        f"<h1>{escape(title)}</h1><p>{_prose(document['info']['description'])}</p>"
        '<p><a href="/v1/openapi.json">The OpenAPI document</a> · <a href="/">The page</a></p>'
        f"{''.join(parts)}<h2>Schemas</h2>{''.join(answers)}</body></html>"
    )


def _route(path: str, method: str, about: dict[str, Any]) -> str:
    rows = [
        f"<tr><td><code>{escape(each['name'])}</code></td><td>{escape(each['in'])}</td>"
        f"<td>{escape(_kind(each['schema']))}</td>"
        f"<td>{_prose(each.get('description', ''))}</td></tr>"
        for each in about.get("parameters", ())
    ]
    table = f"<table>{''.join(rows)}</table>" if rows else ""
    bodies = about.get("requestBody", {}).get("content", {})
    taken = f"<p>Body: {escape(', '.join(bodies))}</p>" if bodies else ""
    return (
        f"<section><h3><code>{method.upper()} {escape(path)}</code></h3>"
        f"<p><b>{escape(about.get('summary', ''))}.</b> {_prose(about.get('description', ''))}</p>"
        f"{table}{taken}<p>Answers: {_answers(about['responses'])}</p></section>"
    )


def _prose(text: str) -> str:
    """Return a text as HTML: what stands between backticks is code."""
    return CODE.sub(r"<code>\1</code>", escape(text))


def _answers(responses: dict[str, Any]) -> str:
    parts = []
    for status, response in responses.items():
        names = []
        for kind, content in response.get("content", {}).items():
            name = content.get("schema", {}).get("$ref", "").rpartition("/")[2]
            names.append(f'<a href="#{escape(name)}">{escape(name)}</a>' if name else escape(kind))
        parts.append(f"{escape(str(status))} {', '.join(names)}")
    return "; ".join(parts)


def _kind(schema: dict[str, Any]) -> str:
    kinds = [each.get("type", "") for each in schema.get("anyOf", [schema])]
    limits = [
        f"{name} {schema[name]}" for name in ("minimum", "maximum", "default") if name in schema
    ]
    return ", ".join([" or ".join(kinds), *limits])
