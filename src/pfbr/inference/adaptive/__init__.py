"""The default method: weigh where that is enough, flow where that is all but exact, temper the rest."""
