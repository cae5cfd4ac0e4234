"""Variables on parameter servers: tables in shards, and networks beside one process."""
