"""From the JSON of requests to arrays, and from arrays to the JSON of answers."""
