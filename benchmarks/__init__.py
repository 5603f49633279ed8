"""Speed and memory of the package, beside that of Scrapy's own middleware and of Protego."""
