"""Keeps items that may be used to train a model."""

from collections.abc import Mapping
from dataclasses import dataclass

from scrapy.exceptions import DropItem


@dataclass(frozen=True)
class PageItem:
    """A page. `usage` is `response.meta["robotstxt_usage"]`: what the page says about its use."""

    url: str
    title: str
    usage: Mapping[str, bool]


class TrainingDataPipeline:
    """Drops items whose pages refuse to be used for training.

    If a page does not mention this use, the item is kept.
    """

    def process_item(self, item: PageItem) -> PageItem:
        refused = [use for use in ("train-ai", "tdm") if item.usage.get(use) is False]
        if refused:
            raise DropItem(f"its page refuses {', '.join(refused)}")
        return item
