1 | warm sunny
2 0.5 | cold
