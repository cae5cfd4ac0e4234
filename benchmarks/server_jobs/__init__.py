"""Jobs of workers and parameter servers, of several participants, measured alike."""
