"""A Scrapy project that obeys robots.txt, and a small web on this machine for its demo."""
