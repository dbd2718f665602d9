"""What a release of the trainer must have proved: `scripts/gates.sh` runs it and prints a table."""
