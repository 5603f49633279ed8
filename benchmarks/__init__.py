"""Speed and memory of the package, compared with Scrapy's own middleware and Protego."""
