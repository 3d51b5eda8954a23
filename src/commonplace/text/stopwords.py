"""The English words that are too common to find anything by; knows nothing of how they are used."""

from __future__ import annotations

_COMMON = """
a about after again all also am an and any are as at be because been before being both but by can could did do does
doing don down during each few for from further had has have having he her here hers him his how i if in into is it
its itself just ll me more most my no nor not of off on once only or other our ours out over own re s same she should
so some such t than that the their theirs them then there these they this those through to too under until up ve very
was we were what when where which while who whom why will with would you your yours d m
"""
STOP_WORDS = frozenset(_COMMON.split())
