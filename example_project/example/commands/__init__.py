"""Commands of this project, in place of Scrapy's of the same name."""
