"""A Scrapy project that obeys robots.txt, with a small web of its own to show it on."""
