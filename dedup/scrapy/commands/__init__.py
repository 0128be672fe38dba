"""The commands that Scrapy offers where this library is installed.

Scrapy imports all of them whenever it runs any command, so each is light, and imports the module that does its
work when it is run.
"""
