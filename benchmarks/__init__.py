"""Headrace beside its peers: workloads, participants and the tables made of them."""
