from	to	mean_forecast	observed	weight
