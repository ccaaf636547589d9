"""The programs: the command line, publishing, the server and its client, and scripts."""
