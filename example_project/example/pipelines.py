"""What becomes of items: the training data of a model, without what must not train one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from scrapy.exceptions import DropItem

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Text:
    """A page, with what was said of its use: `response.meta["usage"]` where it was found."""

    url: str
    title: str
    usage: Mapping[str, bool]
    noai: bool = False


class TrainingData:
    """Leaves out the pages that must not train a model, and lets the others pass.

    A use that is not mentioned is neither granted nor refused. This project takes what is not
    refused; to take only what is granted, ask for `is not True` instead.
    """

    def process_item(self, item: Text) -> Text:
        refused = [use for use in ("train-ai", "tdm") if item.usage.get(use) is False]
        if item.noai:
            refused.append("noai")
        if refused:
            raise DropItem(f"its page refuses {', '.join(refused)}")
        return item
