"""Commands that repeat the tables of the papers, on their data and on sets that stand in for them."""
