"""Commands that convert data of other formats to VW text."""
