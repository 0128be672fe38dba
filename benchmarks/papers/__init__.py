"""Methods of the source papers that no crawl uses, each with its source.

`sampling` chooses shingles by 0 mod m and by winnowing, `signatures` makes sketches in four other ways, `bbit`
stores them in few bits, `designs` counts the tables of the paper's own designs, `compression` stores a table in
Huffman's code, and `packed` stores it in fewer bits still.
"""
