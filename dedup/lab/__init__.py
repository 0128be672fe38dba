"""What is measured of verdicts and of indexes: labelled pairs, and the skew of tables."""
