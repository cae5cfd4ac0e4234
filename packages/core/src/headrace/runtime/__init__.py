"""The runtime: devices, state, rendezvous, plans and the executors that run them."""
