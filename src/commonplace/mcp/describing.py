"""The forms in which the protocol lists what a server offers. It knows field names, and nothing of requests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from commonplace.mcp.registry import Prompt, Registry, Resource, ResourceTemplate, ServerInfo, Tool, ToolAnnotations


def server_form(info: ServerInfo) -> dict[str, Any]:
    """Return what a server says it is."""
    return {"name": info.name, "title": info.title, "version": info.version}


def capabilities_form(registry: Registry) -> dict[str, Any]:
    """Return the kinds of things that a server offers; none of its lists is announced when it changes."""
    return {kind: {} for kind in ("tools", "resources", "prompts") if offers(registry, kind)}


def offers(registry: Registry, kind: str) -> bool:
    """Tell whether a server offers things of a kind: tools, resources or prompts."""
    if kind == "resources":
        return registry.resources is not None or bool(registry.templates)
    return bool(registry.tools if kind == "tools" else registry.prompts)


def tool_form(tool: Tool) -> dict[str, Any]:
    """Return a tool as it is listed."""
    form: dict[str, Any] = {
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "inputSchema": tool.input_schema,
    }
    if tool.output_schema is not None:
        form["outputSchema"] = tool.output_schema
    if tool.annotations is not None:
        form["annotations"] = _hints(tool.annotations)
    return form


def resource_form(resource: Resource) -> dict[str, Any]:
    """Return a resource as it is listed."""
    form = {"uri": resource.uri, **_described(resource)}
    return form if resource.size is None else {**form, "size": resource.size}


def template_form(template: ResourceTemplate) -> dict[str, Any]:
    """Return a template of resources as it is listed."""
    return {"uriTemplate": template.uri_template, **_described(template)}


def prompt_form(prompt: Prompt) -> dict[str, Any]:
    """Return a prompt as it is listed."""
    arguments = [
        {"name": one.name, "description": one.description, "required": one.is_required} for one in prompt.arguments
    ]
    return {
        "name": prompt.name,
        "title": prompt.title,
        "description": prompt.description,
        "arguments": arguments,
    }


def _hints(annotations: ToolAnnotations) -> dict[str, bool]:
    """Return the hints that differ from the protocol's defaults and mean something: a model reads them all."""
    if annotations.read_only:
        return {"readOnlyHint": True} | ({} if annotations.open_world else {"openWorldHint": False})
    hints = {
        "destructiveHint": (annotations.destructive, True),
        "idempotentHint": (annotations.idempotent, False),
        "openWorldHint": (annotations.open_world, True),
    }
    return {name: value for name, (value, default) in hints.items() if value is not default}


def _described(thing: Resource | ResourceTemplate) -> Mapping[str, Any]:
    return {
        "name": thing.name,
        "title": thing.title,
        "description": thing.description,
        "mimeType": thing.mime_type,
    }
