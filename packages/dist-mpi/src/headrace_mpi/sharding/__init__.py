"""Into how many shards to divide variables: what transfers and updates cost, and what follows."""
