"""The vocabularies for the use of content: which versions are read, and their names.

When a new version of one of them is published, change its row here and its row on the conformance
page. A test compares the two.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import NamedTuple


class Vocabulary(NamedTuple):
    """A document that defines how a site states what may be done with its content."""

    name: str
    version: str
    date: str
    """The day or the month of the version, in ISO 8601."""
    status: str
    """``standard``, ``draft``, ``report`` of a W3C Community Group, or ``vendor``."""


VOCABULARIES = (
    Vocabulary("AIPREF vocabulary", "draft-ietf-aipref-vocab-08", "2026-09-13", "draft"),
    Vocabulary("Content-Usage", "draft-ietf-aipref-attach-05", "2026-08-18", "draft"),
    Vocabulary("Content-Signal", "with a path and `use`", "2026-07", "vendor"),
    Vocabulary("RSL", "1.0", "2025-12-10", "vendor"),
    Vocabulary("Robots-Tag", "draft-illyes-repext-03", "2026-04-18", "draft"),
    Vocabulary("TDM reservation", "TDMRep", "2024-05", "report"),
    Vocabulary("noml", "noml.info", "2023-10", "vendor"),
    Vocabulary("crawler-price", "Cloudflare pay per crawl", "2026-04-23", "vendor"),
    Vocabulary("PAYMENT-REQUIRED", "x402 2.0", "2025-12-09", "vendor"),
    Vocabulary("nocache and noarchive", "Bing's reading", "2023-09", "vendor"),
)
"""The versions that are read."""

TRAIN_AI, AI_USE, SEARCH = AIPREF = ("train-ai", "ai-use", "search")
"""The labels of AIPREF. They are case-sensitive (draft-ietf-aipref-vocab)."""

AIPREF_EARLIER = frozenset(
    ["ai", "ai-output", "all", "bots", "genai", "inference", "tdm", "train-genai"]
)
"""Labels that only earlier drafts of AIPREF define. They are listed, and evaluated for nothing."""

AI_TRAIN, AI_INPUT = ("ai-train", "ai-input")
SIGNALS = (SEARCH, AI_INPUT, AI_TRAIN)
"""The names of Content-Signal that take ``yes`` or ``no``."""

USE = "use"
"""The name of Content-Signal that takes one of `USE_LEVELS`."""
USE_LEVELS = ("immediate", "reference", "full")
"""How much of the content may be used, the most restrictive level first."""

TDM = "tdm"
"""The name of the use that a TDM reservation refuses. No label of AIPREF is evaluated as it."""

SAME_USE = {AI_TRAIN: TRAIN_AI, AI_INPUT: AI_USE}
"""Content-Signal's names, and AIPREF's names for what they refuse."""

GRANTS = frozenset([*AIPREF, AI_TRAIN])
"""The names whose grant counts. AI input is only a part of AI use, so ``ai-input=yes`` grants
nothing that AIPREF has a name for."""

REQUIRABLE = (*AIPREF, TDM, AI_TRAIN, AI_INPUT)
"""The names that a crawl can require."""

_EARLIER_NAMES = {
    "ai": TRAIN_AI,
    "ai-output": AI_USE,
    "genai": TRAIN_AI,
    "inference": AI_USE,
    "train-genai": TRAIN_AI,
}
"""Labels of earlier drafts of AIPREF, and the labels that are nearest to them now."""


def nearest_use(name: str) -> str | None:
    """Return the name that a crawl can require and that is meant by a name, or None."""
    plain = name.strip().lower().replace("_", "-")
    if name in REQUIRABLE:
        return name
    if plain in _EARLIER_NAMES:
        return _EARLIER_NAMES[plain]
    return next(iter(get_close_matches(plain, REQUIRABLE, 1)), None)
