"""Keeps the pages that may train a model."""

from collections.abc import Mapping
from dataclasses import dataclass

from scrapy.exceptions import DropItem


@dataclass(frozen=True)
class Text:
    """A page, with what it says about its use: `response.meta["usage"]`."""

    url: str
    title: str
    usage: Mapping[str, bool]


class TrainingData:
    """Drops the items whose pages refuse to train a model.

    A use that is not mentioned is neither granted nor refused; this pipeline keeps such items.
    """

    def process_item(self, item: Text) -> Text:
        refused = [use for use in ("train-ai", "tdm") if item.usage.get(use) is False]
        if refused:
            raise DropItem(f"its page refuses {', '.join(refused)}")
        return item
