"""What plugins fill: a registry for each kind of thing that they bring."""
