"""Post-processing: functions of released numbers alone. See README.md in this folder."""
