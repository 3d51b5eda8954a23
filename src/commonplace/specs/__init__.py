"""Run Open Agent Spec tasks: load, template, check, chain. They know no store."""
