"""Who is in the job: how its ranks meet, how one is seen to be lost, and what follows."""
