"""What is published of a period: its files, the evidence beside them, and the page of all periods."""
