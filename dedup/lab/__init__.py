"""Is the verdict right?  Labelled pages, measures, figures; `papers` holds the exhibits."""
