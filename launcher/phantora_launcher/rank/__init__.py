"""What runs at the start of every Python of the job, before the user's first line."""
