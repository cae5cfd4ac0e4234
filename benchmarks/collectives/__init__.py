"""Programs that ranks run to measure collectives."""
