"""Messages between ranks of one host, through memory that both of them have mapped."""
